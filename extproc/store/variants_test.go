package store

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirproxy/weir/extproc/httpcache"
)

// variant returns an entry called by its URI.
func variant(name, encoding string, lifetime time.Duration, birth uint64) *Entry {
	e := &Entry{URI: name, ResponseTime: noon(), Lifetime: lifetime, Birth: birth, Body: WholeBody(nil)}
	if encoding != "" {
		e.Vary = httpcache.Vary{Names: []string{"accept-encoding"}}
		e.VaryValues = []string{encoding}
	}
	return e
}

func names(entries []*Entry) (out []string) {
	for _, e := range entries {
		out = append(out, e.URI)
	}
	return out
}

func TestSelect(t *testing.T) {
	t.Parallel()
	gzip := httpcache.Fields{{Name: "accept-encoding", Value: "gzip"}}
	star := variant("star", "", time.Minute, 0)
	fresh := func(name, encoding string) *Entry { return variant(name, encoding, time.Minute, 0) }
	star.Vary.Any = true
	for _, c := range []struct {
		name     string
		variants []*Entry // newest first
		want     string
	}{
		{"none", nil, ""},
		{"match", []*Entry{fresh("a", "br"), fresh("b", "gzip")}, "b"},
		{"the newest of two that match", []*Entry{fresh("a", "gzip"), fresh("b", "gzip")}, "a"},
		{"expired does not match", []*Entry{variant("a", "gzip", 0, 0), fresh("b", "")}, "b"},
		{"star matches nothing", []*Entry{star}, ""},
		{"a default gives way to a fresh match", []*Entry{fresh("d", ""), fresh("b", "gzip")}, "b"},
		{"an older default does not win", []*Entry{fresh("b", "gzip"), fresh("d", "")}, "b"},
		{"a match from before an invalidation does not hide the default",
			[]*Entry{variant("d", "", time.Minute, 2), variant("b", "gzip", time.Minute, 1)}, "d"},
		{"no match, a default", []*Entry{fresh("a", "br"), fresh("d", "")}, "d"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if e := Select(c.variants, gzip, noon()); e != nil {
				got = e.URI
			}
			if got != c.want {
				t.Errorf("selected %q, want %q", got, c.want)
			}
		})
	}
}

func TestInsert(t *testing.T) {
	t.Parallel()
	stored := []*Entry{
		variant("new gzip", "gzip", time.Minute, 5), variant("dead", "dead", 0, 5),
		variant("br", "br", time.Minute, 5), variant("old", "old", time.Minute, 5),
	}
	for _, c := range []struct {
		name string
		e    *Entry
		max  int
		want [4][]string // kept, replaced, expired, capped
	}{
		{"another variant", variant("e", "de", time.Minute, 5), 16,
			[4][]string{{"e", "new gzip", "br", "old"}, nil, {"dead"}, nil}},
		{"same variant", variant("e", "br", time.Minute, 5), 16,
			[4][]string{{"e", "new gzip", "old"}, {"br"}, {"dead"}, nil}},
		{"over the cap", variant("e", "de", time.Minute, 5), 2,
			[4][]string{{"e", "new gzip"}, nil, {"dead"}, {"br", "old"}}},
		{"no cap is one", variant("e", "de", time.Minute, 5), 0,
			[4][]string{{"e"}, nil, {"dead"}, {"new gzip", "br", "old"}}},
		{"outlived", variant("e", "br", time.Minute, 4), 16,
			[4][]string{{"new gzip", "br", "old"}, nil, {"dead"}, nil}},
		{"nothing useless outlives", variant("e", "dead", time.Minute, 4), 16,
			[4][]string{{"e", "new gzip", "br", "old"}, nil, {"dead"}, nil}},
		{"useless on arrival", variant("e", "br", 0, 5), 16,
			[4][]string{{"new gzip", "old"}, {"br"}, {"dead"}, nil}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := Insert(stored, c.e, c.max, noon())
			lists := [4][]string{names(got.Kept), names(got.Replaced), names(got.Expired), names(got.Capped)}
			if diff := cmp.Diff(c.want, lists); diff != "" {
				t.Errorf("kept, replaced, expired, capped (-want +got):\n%s", diff)
			}
		})
	}
}

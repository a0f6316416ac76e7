package popularity

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirproxy/weir/extproc/httpcache"
)

// read reads key n so many times at now, and describes it when asked.
func read(s *Sketch, n uint64, times int, now time.Time) {
	key := keyOf(n)
	for range times {
		if s.Touch(&key, now) {
			s.Describe(&key, Description{URI: strconv.FormatUint(n, 10)}, now)
		}
	}
}

func names(top []Hot) (uris []string) {
	for _, h := range top {
		uris = append(uris, h.URI)
	}
	return uris
}

func TestTop(t *testing.T) {
	t.Parallel()
	s := seeded(Options{HalfLife: time.Hour, Keys: 3})
	for n := range uint64(5) {
		read(s, n, int(10*(n+1)), start())
	}
	if diff := cmp.Diff([]string{"4", "3", "2", "1", "0"}, names(s.Top(0, start()))); diff != "" {
		t.Errorf("all (-want +got):\n%s", diff)
	}
	read(s, 5, 5, start()) // the sixth name: only three stay
	if diff := cmp.Diff([]string{"4", "3", "2"}, names(s.Top(0, start()))); diff != "" {
		t.Errorf("after pruning (-want +got):\n%s", diff)
	}
	read(s, 6, 30, start()) // as hot as the last that stayed, not hotter
	if diff := cmp.Diff([]string{"4", "3"}, names(s.Top(2, start()))); diff != "" || s.Len() != 3 {
		t.Errorf("%d names; two of them (-want +got):\n%s", s.Len(), diff)
	}
	read(s, 6, 100, start())
	if diff := cmp.Diff([]string{"6", "4", "3", "2"}, names(s.Top(0, start()))); diff != "" {
		t.Errorf("a hotter key (-want +got):\n%s", diff)
	}
}

// TestHotKeysChange: names go to what is hot now, and go when it falls silent.
func TestHotKeysChange(t *testing.T) {
	t.Parallel()
	s := seeded(Options{HalfLife: time.Minute, Keys: 3})
	for n := range uint64(6) {
		read(s, n, 1000, start())
	}
	later := start().Add(10 * time.Minute)
	for n := range uint64(3) {
		read(s, 100+n, 20, later)
	}
	if diff := cmp.Diff([]string{"100", "101", "102"}, sorted(names(s.Top(3, later)))); diff != "" {
		t.Errorf("ten minutes later (-want +got):\n%s", diff)
	}
	if top := s.Top(0, later.Add(24*time.Hour)); len(top) != 0 {
		t.Errorf("a day later %d keys are hot", len(top))
	}
}

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }

// TestScan: keys that are read once drive no hot one out, and hardly leave names:
// only those do that share all their counters.
func TestScan(t *testing.T) {
	t.Parallel()
	s := seeded(Options{Keys: 10})
	for n := range uint64(5) {
		read(s, n, 50, start())
	}
	now := start()
	for n := range uint64(20_000) {
		read(s, 1000+n, 1, now)
		now = now.Add(time.Millisecond)
	}
	if diff := cmp.Diff([]string{"0", "1", "2", "3", "4"}, sorted(names(s.Top(5, now)))); diff != "" || s.Len() > 20 {
		t.Errorf("%d names; the hottest (-want +got):\n%s", s.Len(), diff)
	}
}

// TestDescribeAgain: a description is asked for anew once a half-life, not more.
func TestDescribeAgain(t *testing.T) {
	t.Parallel()
	s, key := seeded(Options{HalfLife: time.Minute}), keyOf(1)
	asked := 0
	for second := range 600 {
		now := start().Add(time.Duration(second) * time.Second)
		if s.Touch(&key, now) {
			asked++
			s.Describe(&key, Description{URI: fmt.Sprint(asked)}, now)
		}
	}
	if asked < 9 || asked > 11 {
		t.Errorf("asked %d times in ten half-lives", asked)
	}
	if top := s.Top(1, start().Add(10*time.Minute)); len(top) != 1 || top[0].URI != fmt.Sprint(asked) {
		t.Errorf("top is %v, want the last description", top)
	}
}

// TestDescriptionBounds: what is too long is not kept, and what is kept holds on
// to nothing.
func TestDescriptionBounds(t *testing.T) {
	t.Parallel()
	s, key := seeded(Options{}), keyOf(1)
	s.Describe(&key, Description{URI: strings.Repeat("x", maxDescription+1)}, start())
	s.Describe(&key, Description{URI: "u", Cookies: []string{strings.Repeat("x", maxDescription)}}, start())
	if s.Len() != 0 {
		t.Fatalf("%d names, want none", s.Len())
	}
	d := Description{URI: "http://a/", Policy: "shop/catalog", Route: "r", Cookies: []string{"sid"},
		Header: httpcache.Fields{{Name: "accept-encoding", Value: "gzip"}}}
	s.Describe(&key, d, start())
	d.Header[0].Value, d.Cookies[0] = "changed", "changed"
	s.Touch(&key, start())
	got, err := json.Marshal(s.Top(0, start())[0].Description)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"uri":"http://a/","policy":"shop/catalog","route":"r",` +
		`"header":[{"Name":"accept-encoding","Value":"gzip"}],"cookies":["sid"]}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

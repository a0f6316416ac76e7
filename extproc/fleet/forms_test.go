package fleet

import (
	"strings"
	"testing"
	"time"
)

// without returns the forms by rules that leave one query parameter, the last, out.
func without(parameter string) func(string, string) []string {
	return func(namespace, uri string) []string {
		kept, _, _ := strings.Cut(uri, "?"+parameter+"=")
		if namespace == "blog" || !strings.Contains(uri, "://") {
			return []string{uri}
		}
		return []string{kept}
	}
}

// TestFormsOfURLs: a stamp of a URL holds for what this replica's rules take for the same, whenever it learns of them,
// and not for what they make of a form.
func TestFormsOfURLs(t *testing.T) {
	t.Parallel()
	s := NewStamps(0)
	born := s.Position()
	want := func(when, namespace, uri string, want Verdict) {
		t.Helper()
		if got := s.Check(Covered{Birth: born, URI: uri, Namespace: namespace}); got != want {
			t.Errorf("%s: %s in %s: %v, want %v", when, uri, namespace, got, want)
		}
	}
	s.Add(ByURL, "shop", "https://a.test/p?utm=1", Hard, time.Time{})
	want("no rules", "shop", "https://a.test/p?utm=1", Refused)
	want("no rules", "shop", "https://a.test/p", Valid)
	s.Forms(without("utm"))
	want("rules came", "shop", "https://a.test/p", Refused)
	s.Apply([]Stamp{{Kind: ByURL, Namespace: "shop", Value: "https://a.test/q?utm=2", Mode: Soft, Position: 9}},
		9, time.Time{})
	want("from the fleet", "shop", "https://a.test/q", SoftStale)
	want("from the fleet", "shop", "https://a.test/q?utm=2", SoftStale)
	s.Add(ByURL, "blog", "https://a.test/b?utm=1", Hard, time.Time{})
	want("another namespace", "blog", "https://a.test/b", Valid)
	s.Add(ByURL, "shop", "https://a.test/r?x=1?utm=2", Hard, time.Time{})
	s.Forms(without("x"))
	want("other rules", "shop", "https://a.test/r", Refused)
	s.Add(ByURL, "shop", "https://a.test/s?x=1", Hard, time.Time{})
	s.Forms(without("s"))
	want("what was a form only is made no others of", "shop", "https://a.test/", Valid)
	if n := s.Probe().Add(ByAll, "", "", Hard, time.Time{}); n != 1 {
		t.Errorf("a probe stamps at %d, want positions of its own", n)
	}
}

// TestFormsOfLongURLs: others get the forms of a URL that is too long to be told.
func TestFormsOfLongURLs(t *testing.T) {
	t.Parallel()
	s := NewStamps(0)
	s.Forms(without("utm"))
	long := "https://a.test/" + strings.Repeat("p", maxName)
	short := []Invalidation{{Kind: ByURL, Namespace: "shop", Value: "https://a.test/?utm=1"}}
	if got := s.spellOut(short); len(got) != 1 {
		t.Errorf("a short URL: %v", got)
	}
	got := s.spellOut([]Invalidation{{Kind: ByURL, Namespace: "shop", Value: long + "?utm=1"}, {Kind: ByAll}})
	if len(got) != 3 || got[2].Value != long || got[2].Kind != ByURL {
		t.Errorf("spelled out: %v", got)
	}
	born := s.Position()
	s.Add(ByURL, "shop", long+"?utm=1", Hard, time.Time{})
	if got := s.Check(Covered{Birth: born, URI: long, Namespace: "shop"}); got != Refused {
		t.Errorf("the form of a long URL here: %v", got)
	}
}

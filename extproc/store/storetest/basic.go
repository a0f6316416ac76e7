package storetest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store"
)

func testMiss(t *testing.T, s store.Store) {
	if r := wantMiss(t, s, "/", nil, Epoch()); r.Known || len(r.Vary.Names) > 0 {
		t.Errorf("an empty store says %+v", r)
	}
}

func testPutThenGet(t *testing.T, s store.Store) {
	e := Variant("/a", "gzip", strings.Repeat("long ", 40_000))
	e.Header = append(e.Header, httpcache.Field{Name: "cache-control", Value: "public"}) // a second line
	e.InitialAge, e.WhileRevalidate, e.IfError = 3*time.Second, 10*time.Second, 20*time.Second
	e.ValidateAlways, e.Negative, e.Unreachable = true, true, true
	e.Cost, e.Tags, e.Birth = 123*time.Microsecond, []string{"a", "b"}, 7
	put(t, s, e)
	put(t, s, Entry("/b", "b"))
	r := get(t, s, "/a", Accepting("gzip"), Epoch())
	if r.Entry == nil || !r.Known {
		t.Fatalf("Get after Put: %+v", r)
	}
	ignore := cmp.Options{
		cmpopts.IgnoreFields(store.Entry{}, "Body", "Wire", "Shared"), cmpopts.EquateEmpty(), cmpopts.EquateApproxTime(0),
	}
	if diff := cmp.Diff(e, r.Entry, ignore); diff != "" {
		t.Errorf("stored entry differs (-put +got):\n%s", diff)
	}
	if Content(r.Entry) != Content(e) {
		t.Error("stored body differs")
	}
	if diff := cmp.Diff(e.Vary, r.Vary); diff != "" {
		t.Errorf("Result.Vary differs (-put +got):\n%s", diff)
	}
	wantContent(t, s, "/b", nil, Epoch(), "b")
}

func testReplace(t *testing.T, s store.Store) {
	for _, content := range []string{"one", "two", "three"} {
		put(t, s, Entry("/a", content))
		wantContent(t, s, "/a", nil, Epoch(), content)
	}
}

// testLateFill: a response whose fetch began before an invalidation must not
// push out one that was fetched after it (cases.md 26).
func testLateFill(t *testing.T, s store.Store) {
	fresh, late := Entry("/a", "after the purge"), Entry("/a", "before the purge")
	fresh.Birth, late.Birth = 2, 1
	put(t, s, fresh)
	put(t, s, late)
	wantContent(t, s, "/a", nil, Epoch(), "after the purge")
}

func testWholeOrNothing(t *testing.T, s store.Store) {
	put(t, s, Entry("/a", "whole"))
	open, short, trimmed := store.NewBody(-1), store.NewBody(100), store.NewBody(-1)
	for _, b := range []*store.Body{open, short, trimmed} {
		if err := b.Append([]byte("part")); err != nil {
			t.Fatal(err)
		}
	}
	short.End()
	trimmed.Trim(1)
	trimmed.End()
	for name, b := range map[string]*store.Body{"open": open, "short": short, "trimmed": trimmed} {
		e := Entry("/a", "")
		e.Body = b
		if err := s.Put(t.Context(), e, 16, Epoch()); !errors.Is(err, store.ErrNotWhole) {
			t.Errorf("Put of an entry with a body that is %s: %v, want ErrNotWhole", name, err)
		}
	}
	wantContent(t, s, "/a", nil, Epoch(), "whole")
}

func testTooLarge(t *testing.T, s store.Store) {
	put(t, s, Entry("/a", "small"))
	e := Entry("/a", "")
	e.Body = Whole(make([]byte, MaxRoom+1))
	if err := s.Put(t.Context(), e, 16, Epoch()); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("Put = %v, want ErrTooLarge", err)
	}
	wantContent(t, s, "/a", nil, Epoch(), "small")
}

// testStoredFieldsDoNotChange: what the caller does with its slices afterwards
// does not reach the store.
func testStoredFieldsDoNotChange(t *testing.T, s store.Store) {
	e := Variant("/a", "gzip", "a")
	e.Tags = []string{"tag"}
	put(t, s, e)
	e.Header[0].Value, e.VaryValues[0], e.Tags[0], e.Vary.Names[0] = "text/evil", "br", "other", "cookie"
	wantUnchanged := func(after string) {
		t.Helper()
		r := get(t, s, "/a", Accepting("gzip"), Epoch())
		if r.Entry == nil {
			t.Fatalf("after %s the stored entry is gone", after)
		}
		if got := r.Entry.Header.Get("content-type"); got != "text/plain" || r.Entry.Tags[0] != "tag" {
			t.Errorf("content-type %q, tags %q after the caller of %s changed its own", got, r.Entry.Tags, after)
		}
	}
	wantUnchanged("Put")
	updated := Variant("/a", "gzip", "a")
	updated.Tags = []string{"tag"}
	key := Key("/a")
	err := s.Update(t.Context(), &key, Epoch(), func([]*store.Entry) []*store.Entry { return []*store.Entry{updated} })
	if err != nil {
		t.Fatal(err)
	}
	updated.Header[0].Value, updated.VaryValues[0], updated.Tags[0] = "text/evil", "br", "other"
	wantUnchanged("Update")
}

// testHashCollision: two keys with one hash are two keys (cases.md 11).
func testHashCollision(t *testing.T, s store.Store) {
	put(t, s, Entry("/a", "a"))
	other := Entry("/b", "b")
	other.Key.Hash = Key("/a").Hash
	lookup := func() string {
		r, err := s.Get(t.Context(), &other.Key, nil, Epoch())
		if err != nil {
			t.Fatal(err)
		}
		if r.Entry == nil {
			return ""
		}
		return Content(r.Entry)
	}
	if got := lookup(); got != "" {
		t.Errorf("a key with another's hash found %q", got)
	}
	if err := s.Delete(t.Context(), &other.Key); err != nil {
		t.Fatal(err)
	}
	wantContent(t, s, "/a", nil, Epoch(), "a")
	put(t, s, other)
	if got := lookup(); got != "b" && got != "" {
		t.Errorf("after Put: %q", got)
	}
	if r := get(t, s, "/a", nil, Epoch()); r.Entry != nil && Content(r.Entry) != "a" {
		t.Errorf("the first key now has content %q", Content(r.Entry))
	}
}

func testExpiry(t *testing.T, s store.Store) {
	plain, stale, validator := Entry("/plain", "p"), Entry("/stale", "s"), Entry("/validator", "v")
	stale.WhileRevalidate, stale.IfError = time.Minute, 5*time.Minute
	validator.Header = append(validator.Header, httpcache.Field{Name: "etag", Value: `"v"`})
	aged := Entry("/aged", "g")
	aged.InitialAge = 50 * time.Second
	for _, e := range []*store.Entry{plain, stale, validator, aged} {
		put(t, s, e)
	}
	for path, life := range map[string]time.Duration{
		"/plain": time.Minute, "/stale": 6 * time.Minute,
		"/validator": time.Minute + store.ValidatorGrace, "/aged": 10 * time.Second,
	} {
		if r := get(t, s, path, nil, Epoch().Add(life-time.Nanosecond)); r.Entry == nil {
			t.Errorf("%s is gone before its end at %v", path, life)
		}
	}
	// In the order of their ends: a store may sweep what it finds expired.
	for _, c := range []struct {
		path string
		life time.Duration
	}{
		{"/aged", 10 * time.Second}, {"/plain", time.Minute}, {"/stale", 6 * time.Minute},
		{"/validator", time.Minute + store.ValidatorGrace},
	} {
		if r := wantMiss(t, s, c.path, nil, Epoch().Add(c.life)); r.Known {
			t.Errorf("%s is still known after its end", c.path)
		}
	}
}

func testExpiredOnArrival(t *testing.T, s store.Store) {
	put(t, s, Entry("/a", "old"))
	e := Entry("/a", "useless")
	e.Lifetime = 0
	put(t, s, e)
	wantMiss(t, s, "/a", nil, Epoch())
}

func testDelete(t *testing.T, s store.Store) {
	put(t, s, Variant("/a", "gzip", "a gzip"))
	put(t, s, Variant("/a", "br", "a br"))
	put(t, s, Entry("/b", "b"))
	key := Key("/a")
	for range 2 { // the second finds nothing, which is no error
		if err := s.Delete(t.Context(), &key); err != nil {
			t.Fatalf("Delete: %v", err)
		}
	}
	wantMiss(t, s, "/a", Accepting("gzip"), Epoch())
	wantMiss(t, s, "/a", Accepting("br"), Epoch())
	wantContent(t, s, "/b", nil, Epoch(), "b")
}

package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store"
)

func testVariants(t *testing.T, s store.Store) {
	put(t, s, Variant("/a", "gzip", "gzip"))
	put(t, s, Variant("/a", "br", "br"))
	wantContent(t, s, "/a", Accepting("gzip"), Epoch(), "gzip")
	wantContent(t, s, "/a", Accepting("br"), Epoch(), "br")
	put(t, s, Variant("/a", "gzip", "gzip 2"))
	wantContent(t, s, "/a", Accepting("gzip"), Epoch(), "gzip 2")
	wantContent(t, s, "/a", Accepting("br"), Epoch(), "br")

	absent := Entry("/a", "absent")
	absent.Vary = httpcache.Vary{Names: []string{"accept-encoding"}}
	absent.VaryValues = absent.Vary.Select(nil)
	put(t, s, absent)
	wantContent(t, s, "/a", nil, Epoch(), "absent")
	wantMiss(t, s, "/a", Accepting(""), Epoch()) // empty differs from absent
}

// testDefaultVariant: a response without Vary beside ones with it
// (RFC 9111 §4.1, last paragraph).
func testDefaultVariant(t *testing.T, s store.Store) {
	put(t, s, Variant("/a", "gzip", "gzip"))
	put(t, s, Entry("/a", "default"))
	wantContent(t, s, "/a", Accepting("br"), Epoch(), "default")
	wantContent(t, s, "/a", Accepting("gzip"), Epoch(), "gzip")

	// Once the better variant is stale, the newest answer counts.
	newer := Entry("/b", "newer default")
	newer.ResponseTime = Epoch().Add(50 * time.Second)
	gzip := Variant("/b", "gzip", "gzip")
	gzip.WhileRevalidate = time.Hour
	put(t, s, gzip)
	put(t, s, newer)
	wantContent(t, s, "/b", Accepting("gzip"), Epoch().Add(59*time.Second), "gzip")
	wantContent(t, s, "/b", Accepting("gzip"), Epoch().Add(60*time.Second), "newer default")

	// So it does when the better variant was fetched before an invalidation.
	purged, after := Variant("/c", "gzip", "gzip"), Entry("/c", "default")
	after.Birth = 1
	put(t, s, purged)
	put(t, s, after)
	wantContent(t, s, "/c", Accepting("gzip"), Epoch(), "default")
}

func testVaryMiss(t *testing.T, s store.Store) {
	put(t, s, Variant("/a", "gzip", "gzip"))
	newest := Entry("/a", "en")
	newest.Vary = httpcache.Vary{Names: []string{"accept-encoding", "accept-language"}}
	newest.VaryValues = newest.Vary.Select(httpcache.Fields{{Name: "accept-language", Value: "en"}})
	put(t, s, newest)
	r := wantMiss(t, s, "/a", Accepting("br"), Epoch())
	if diff := cmp.Diff(newest.Vary, r.Vary); diff != "" || !r.Known {
		t.Errorf("Known %v, Vary differs from the newest variant's (-want +got):\n%s", r.Known, diff)
	}
}

func testVaryStar(t *testing.T, s store.Store) {
	e := Entry("/a", "star")
	e.Vary = httpcache.Vary{Any: true}
	if err := s.Put(t.Context(), e, 16, Epoch()); err != nil {
		t.Fatal(err)
	}
	wantMiss(t, s, "/a", nil, Epoch())
}

// testVariantCap: the oldest variants go (cases.md 34).
func testVariantCap(t *testing.T, s store.Store) {
	const n, maxVariants = 200, 4
	encoding := func(i int) string { return fmt.Sprintf("x-%d", i) }
	for i := range n {
		if err := s.Put(t.Context(), Variant("/a", encoding(i), encoding(i)), maxVariants, Epoch()); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n - maxVariants {
		wantMiss(t, s, "/a", Accepting(encoding(i)), Epoch())
	}
	for i := n - maxVariants; i < n; i++ {
		wantContent(t, s, "/a", Accepting(encoding(i)), Epoch(), encoding(i))
	}
	// A replaced variant is the newest.
	oldest := encoding(n - maxVariants)
	put(t, s, Variant("/a", oldest, "again"))
	if err := s.Put(t.Context(), Variant("/a", "last", "last"), maxVariants, Epoch()); err != nil {
		t.Fatal(err)
	}
	wantContent(t, s, "/a", Accepting(oldest), Epoch(), "again")
	wantMiss(t, s, "/a", Accepting(encoding(n-maxVariants+1)), Epoch())
	// No cap means one.
	if err := s.Put(t.Context(), Entry("/a", "only"), 0, Epoch()); err != nil {
		t.Fatal(err)
	}
	wantContent(t, s, "/a", Accepting(oldest), Epoch(), "only")
}

// testUpdate freshens all variants at once, as a 304 does (RFC 9111 §4.3.4).
func testUpdate(t *testing.T, s store.Store) {
	put(t, s, Variant("/a", "gzip", "gzip"))
	put(t, s, Variant("/a", "br", "br"))
	before := get(t, s, "/a", Accepting("gzip"), Epoch()).Entry
	later := Epoch().Add(30 * time.Second)
	key := Key("/a")
	var contents []string
	err := s.Update(t.Context(), &key, later, func(entries []*store.Entry) []*store.Entry {
		contents = nil
		fresh := make([]*store.Entry, 0, len(entries))
		for _, e := range entries {
			contents = append(contents, Content(e))
			c := *e
			c.ResponseTime = later
			c.Header = httpcache.Fields{{Name: "content-type", Value: "text/new"}}
			fresh = append(fresh, &c)
		}
		return fresh
	})
	if err != nil {
		t.Fatalf("Update: %v", err)
	}
	if diff := cmp.Diff([]string{"br", "gzip"}, contents); diff != "" {
		t.Errorf("fn was given (-want +got, newest first):\n%s", diff)
	}
	for _, encoding := range []string{"gzip", "br"} {
		wantContent(t, s, "/a", Accepting(encoding), later.Add(59*time.Second), encoding)
		e := get(t, s, "/a", Accepting(encoding), later).Entry
		if got := e.Header.Get("content-type"); got != "text/new" {
			t.Errorf("%s has content-type %q after the update", encoding, got)
		}
	}
	if got := before.Header.Get("content-type"); got != "text/plain" {
		t.Errorf("an entry that was handed out before has changed: content-type %q", got)
	}
}

func testUpdateDeletes(t *testing.T, s store.Store) {
	put(t, s, Variant("/a", "gzip", "gzip"))
	put(t, s, Variant("/a", "br", "br"))
	key := Key("/a")
	keep := func(n int) func([]*store.Entry) []*store.Entry {
		return func(entries []*store.Entry) []*store.Entry { return entries[:n] }
	}
	if err := s.Update(t.Context(), &key, Epoch(), keep(1)); err != nil {
		t.Fatal(err)
	}
	wantContent(t, s, "/a", Accepting("br"), Epoch(), "br")
	wantMiss(t, s, "/a", Accepting("gzip"), Epoch())
	if err := s.Update(t.Context(), &key, Epoch(), keep(0)); err != nil {
		t.Fatal(err)
	}
	if r := wantMiss(t, s, "/a", Accepting("br"), Epoch()); r.Known {
		t.Error("the resource is still known after its last variant went")
	}
}

func testUpdateOfNothing(t *testing.T, s store.Store) {
	key := Key("/a")
	err := s.Update(t.Context(), &key, Epoch(), func(entries []*store.Entry) []*store.Entry {
		t.Errorf("fn was called with %d entries", len(entries))
		return entries
	})
	if err != nil {
		t.Errorf("Update: %v", err)
	}
}

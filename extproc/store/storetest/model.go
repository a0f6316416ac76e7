package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirproxy/weir/extproc/store"
)

// model is the plain description of a store that is never full: a list of
// entries per path, newest first.
type model struct {
	t   *testing.T
	s   store.Store
	now time.Time
	n   int // entries put so far
	all map[string][]*store.Entry
}

func drawPath(rt *rapid.T) string {
	return rapid.SampledFrom([]string{"/a", "/b", "/c"}).Draw(rt, "path")
}

func drawEncoding(rt *rapid.T) string {
	return rapid.SampledFrom([]string{"gzip", "br", "identity"}).Draw(rt, "encoding")
}

// testModel drives a store and the model with the same random operations and
// compares every answer.
func testModel(t *testing.T, newStore New) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{t: t, s: newStore(t), now: Epoch(), all: map[string][]*store.Entry{}}
		rt.Repeat(map[string]func(*rapid.T){
			"put": m.put, "get": m.get, "delete": m.delete, "update": m.update,
			"wait": func(rt *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.IntRange(1, 20).Draw(rt, "seconds")) * time.Second)
			},
		})
	})
}

func (m *model) put(rt *rapid.T) {
	path := drawPath(rt)
	m.n++
	e := Variant(path, drawEncoding(rt), fmt.Sprint(m.n))
	e.ResponseTime = m.now
	e.Lifetime = time.Duration(rapid.IntRange(0, 30).Draw(rt, "lifetime")) * time.Second
	maxVariants := rapid.IntRange(1, 3).Draw(rt, "maxVariants")
	if err := m.s.Put(m.t.Context(), e, maxVariants, m.now); err != nil {
		rt.Fatal(err)
	}
	kept := slices.DeleteFunc(m.live(path), e.SameVariant)
	if e.Lifetime > 0 {
		kept = append([]*store.Entry{e}, kept...)
	}
	m.all[path] = kept[:min(len(kept), maxVariants)]
}

func (m *model) get(rt *rapid.T) {
	path := drawPath(rt)
	encoding := drawEncoding(rt)
	key, want := Key(path), ""
	for _, e := range m.live(path) {
		if e.VaryValues[0] == e.Vary.Select(Accepting(encoding))[0] {
			want = Content(e)
		}
	}
	r, err := m.s.Get(m.t.Context(), &key, Accepting(encoding), m.now)
	if err != nil {
		rt.Fatal(err)
	}
	got := ""
	if r.Entry != nil {
		got = Content(r.Entry)
	}
	if known := len(m.live(path)) > 0; got != want || r.Known != known {
		rt.Fatalf("Get %s %s: content %q, known %v; want %q, %v", path, encoding, got, r.Known, want, known)
	}
}

func (m *model) delete(rt *rapid.T) {
	path := drawPath(rt)
	key := Key(path)
	if err := m.s.Delete(m.t.Context(), &key); err != nil {
		rt.Fatal(err)
	}
	delete(m.all, path)
}

// update makes all variants fresh for another ten seconds.
func (m *model) update(rt *rapid.T) {
	path := drawPath(rt)
	key := Key(path)
	freshen := func(old []*store.Entry) []*store.Entry {
		fresh := make([]*store.Entry, 0, len(old))
		for _, e := range old {
			c := *e
			c.ResponseTime, c.Lifetime = m.now, 10*time.Second
			fresh = append(fresh, &c)
		}
		return fresh
	}
	if err := m.s.Update(m.t.Context(), &key, m.now, freshen); err != nil {
		rt.Fatal(err)
	}
	if live := m.live(path); len(live) > 0 {
		m.all[path] = freshen(live)
	}
}

// live returns the entries of a path that are of use now.
func (m *model) live(path string) []*store.Entry {
	return slices.DeleteFunc(slices.Clone(m.all[path]), func(e *store.Entry) bool { return !e.Useful(m.now) })
}

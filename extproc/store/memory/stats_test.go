package memory

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/store/storetest"
)

// TestEvictionReasons counts each reason once or more, in one history.
func TestEvictionReasons(t *testing.T) {
	t.Parallel()
	now := storetest.Epoch()
	m := New(Options{Limit: room(20)})
	key := storetest.Key("/a")
	put := func(e *store.Entry, maxVariants int) {
		t.Helper()
		if err := m.Put(t.Context(), e, maxVariants, now); err != nil {
			t.Fatal(err)
		}
	}
	put(storetest.Entry("/a", "1"), 16)
	put(storetest.Entry("/a", "2"), 16)                 // replaced: 1
	put(storetest.Variant("/a", "gzip", "3"), 1)        // variants: 1
	if err := m.Delete(t.Context(), &key); err != nil { // deleted: 1
		t.Fatal(err)
	}
	put(storetest.Variant("/a", "gzip", "4"), 16)
	put(storetest.Variant("/a", "br", "5"), 16)
	err := m.Update(t.Context(), &key, now, func(old []*store.Entry) []*store.Entry {
		c := *old[0]
		return []*store.Entry{&c} // replaced: 2, deleted: 2
	})
	if err != nil {
		t.Fatal(err)
	}
	late, useless := storetest.Variant("/a", "br", "6"), storetest.Entry("/u", "7")
	useless.Lifetime = 0
	put(useless, 16) // rejected: 1
	fresh := storetest.Variant("/a", "br", "8")
	fresh.Birth = 1
	put(fresh, 16) // replaced: 3
	put(late, 16)  // rejected: 2
	huge := storetest.Entry("/h", "")
	huge.Body = storetest.Whole(make([]byte, room(20)))
	if err := m.Put(t.Context(), huge, 16, now); !errors.Is(err, store.ErrTooLarge) { // rejected: 3
		t.Fatal(err)
	}
	now = now.Add(2 * time.Minute)
	m.Sweep(now) // expired: 1
	for i := range 25 {
		e := storetest.Entry(fmt.Sprintf("/full/%d", i), kibibyte())
		e.ResponseTime = now
		put(e, 16) // capacity: at least 5
	}
	s := m.Stats()
	if s.Evicted.Capacity < 5 {
		t.Errorf("capacity evictions: %d, want at least 5", s.Evicted.Capacity)
	}
	s.Evicted.Capacity = 0
	want := Evictions{Replaced: 3, Variants: 1, Deleted: 2, Expired: 1}
	if diff := cmp.Diff(want, s.Evicted); diff != "" || s.Rejected != 3 {
		t.Errorf("rejected %d, want 3; evictions (-want +got):\n%s", s.Rejected, diff)
	}
}

// TestAccountModel drives a store that is always full with random operations:
// account, queues and table agree at every step, and what is found is the last
// that was put.
func TestAccountModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m := New(Options{Limit: 40 << 10})
		now := storetest.Epoch()
		last := map[string]string{}
		n := 0
		path := func(rt *rapid.T) string { return fmt.Sprintf("/%d", rapid.IntRange(0, 40).Draw(rt, "path")) }
		rt.Repeat(map[string]func(*rapid.T){
			"put": func(rt *rapid.T) {
				p := path(rt)
				n++
				content := fmt.Sprintf("%d %s", n, make([]byte, rapid.IntRange(0, 8<<10).Draw(rt, "size")))
				e := storetest.Variant(p, rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "encoding"), content)
				e.ResponseTime = now
				e.Lifetime = time.Duration(rapid.IntRange(1, 60).Draw(rt, "lifetime")) * time.Second
				if err := m.Put(t.Context(), e, 2, now); err != nil {
					rt.Fatal(err)
				}
				last[p+e.VaryValues[0]] = content
			},
			"get": func(rt *rapid.T) {
				p, encoding := path(rt), rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "encoding")
				key := storetest.Key(p)
				r, _ := m.Get(t.Context(), &key, storetest.Accepting(encoding), now)
				if r.Entry != nil && storetest.Content(r.Entry) != last[p+encoding] {
					rt.Fatalf("%s %s is not what was put last", p, encoding)
				}
			},
			"delete": func(rt *rapid.T) {
				key := storetest.Key(path(rt))
				if err := m.Delete(t.Context(), &key); err != nil || m.table.Load().find(&key) != nil {
					rt.Fatal("the key is still there", err)
				}
			},
			"sweep": func(rt *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 30).Draw(rt, "seconds")) * time.Second)
				m.Sweep(now)
			},
			"": func(rt *rapid.T) {
				if err := check(m); err != nil {
					rt.Fatal(err)
				}
			},
		})
	})
}

package storetest

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/weirproxy/weir/extproc/store"
)

// testConcurrency races all operations on a few keys. An entry that is found
// must be one that was put: its body belongs to its headers.
func testConcurrency(t *testing.T, s store.Store) {
	const workers, rounds, keys = 8, 300, 4
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range rounds {
				path := fmt.Sprintf("/%d", i%keys)
				encoding := []string{"gzip", "br"}[i%2]
				key := Key(path)
				var err error
				switch (w + i) % 8 {
				case 0, 1:
					e := Variant(path, encoding, strings.Repeat(fmt.Sprintf("%s %s %d.%d;", path, encoding, w, i), 50))
					e.URI = e.URI + "#" + Content(e)[:strings.Index(Content(e), ";")]
					err = s.Put(t.Context(), e, 2, Epoch())
				case 2:
					err = s.Delete(t.Context(), &key)
				case 3:
					err = s.Update(t.Context(), &key, Epoch(), func(old []*store.Entry) []*store.Entry {
						c := *old[0]
						return append([]*store.Entry{&c}, old[1:]...)
					})
				default:
					err = checkHit(t, s, path, encoding)
				}
				if err != nil {
					t.Errorf("worker %d, round %d: %v", w, i, err)
				}
			}
		})
	}
	wg.Wait()
}

func checkHit(t *testing.T, s store.Store, path, encoding string) error {
	key := Key(path)
	r, err := s.Get(t.Context(), &key, Accepting(encoding), Epoch())
	if err != nil || r.Entry == nil {
		return err
	}
	_, label, _ := strings.Cut(r.Entry.URI, "#")
	ours := strings.HasPrefix(label, path+" "+encoding+" ")
	if !ours || Content(r.Entry) != strings.Repeat(label+";", 50) {
		return fmt.Errorf("a hit for %s %s is labelled %q and has %d bytes", path, encoding, label, r.Entry.Body.Len())
	}
	return nil
}

// testConcurrentUpdates counts in an entry: no update may be lost.
func testConcurrentUpdates(t *testing.T, s store.Store) {
	const workers, rounds = 8, 50
	put(t, s, Entry("/a", "a"))
	key := Key("/a")
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range rounds {
				err := s.Update(t.Context(), &key, Epoch(), func(old []*store.Entry) []*store.Entry {
					c := *old[0]
					c.Birth++
					return []*store.Entry{&c}
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := get(t, s, "/a", nil, Epoch()).Entry.Birth; got != workers*rounds {
		t.Errorf("after %d updates the entry counts %d", workers*rounds, got)
	}
}

package memory

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/store"
)

// ErrForeignKey refuses an Update whose function returned an entry of another key.
var ErrForeignKey = errors.New("update returned an entry of another key")

// Update implements [store.Store].
func (m *Memory) Update(
	_ context.Context, key *cachepolicy.Key, now time.Time, fn func([]*store.Entry) []*store.Entry,
) error {
	for {
		old := m.table.Load().find(key)
		if old == nil {
			return nil
		}
		useful := usefulOf(old, now)
		if len(useful) == 0 {
			return nil
		}
		updated, err := pack(key, useful, fn)
		if err != nil {
			return err
		}
		if m.swap(key, old, useful, updated) {
			return nil
		}
	}
}

// swap replaces the node old by one with the updated entries, unless another
// writer came between.
func (m *Memory) swap(key *cachepolicy.Key, old *node, useful, updated []*store.Entry) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.table.Load().find(key) != old {
		return false
	}
	m.stats.Evicted.Expired += uint64(len(old.variants()) - len(useful))
	m.stats.countUpdate(useful, updated)
	m.replace(key, old, updated)
	return true
}

// usefulOf returns the variants that are of use, newest first.
func usefulOf(n *node, now time.Time) []*store.Entry {
	useful := make([]*store.Entry, 0, len(n.variants()))
	for _, e := range n.variants() {
		if e.Useful(now) {
			useful = append(useful, e)
		}
	}
	return useful
}

// pack returns what fn makes of the entries, in the form that is stored.
func pack(
	key *cachepolicy.Key, entries []*store.Entry, fn func([]*store.Entry) []*store.Entry,
) ([]*store.Entry, error) {
	var packed []*store.Entry
	for _, e := range fn(slices.Clone(entries)) {
		switch {
		case e.Key.Canonical != key.Canonical || e.Key.Hash != key.Hash:
			return nil, ErrForeignKey
		case !e.Body.Whole():
			return nil, store.ErrNotWhole
		case !slices.Contains(entries, e):
			e = e.Packed()
		}
		packed = append(packed, e)
	}
	return packed, nil
}

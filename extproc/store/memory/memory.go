// Package memory is the store of one process.
package memory

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store"
)

// Options are the settings of a [Memory].
type Options struct {
	// Limit is what the store may hold, in bytes: headers, bodies, keys, overhead.
	Limit int64
}

// Memory is a [store.Store] in the memory of this process.
type Memory struct {
	limit int64
	mu    sync.Mutex
	bytes int64
	byKey map[string][]*store.Entry
	order []string
}

// New returns an empty store.
func New(o Options) *Memory {
	return &Memory{limit: o.Limit, byKey: map[string][]*store.Entry{}}
}

// Get implements [store.Store].
func (m *Memory) Get(_ context.Context, key *cachepolicy.Key, req httpcache.Fields, now time.Time) (store.Result, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return store.Look(m.byKey[key.Canonical], req, now), nil
}

// Put implements [store.Store].
func (m *Memory) Put(_ context.Context, e *store.Entry, maxVariants int, now time.Time) error {
	if !e.Body.Whole() {
		return store.ErrNotWhole
	}
	e = e.Packed()
	if e.Size() > m.limit {
		return store.ErrTooLarge
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	kept := store.Insert(m.byKey[e.Key.Canonical], e, maxVariants, now).Kept
	m.set(e.Key.Canonical, kept)
	for m.bytes > m.limit {
		m.set(m.order[0], nil)
	}
	return nil
}

// Update implements [store.Store].
func (m *Memory) Update(_ context.Context, key *cachepolicy.Key, now time.Time, fn func([]*store.Entry) []*store.Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := slices.DeleteFunc(slices.Clone(m.byKey[key.Canonical]), func(e *store.Entry) bool { return !e.Useful(now) })
	if len(old) > 0 {
		old = fn(old)
	}
	m.set(key.Canonical, old)
	return nil
}

// Delete implements [store.Store].
func (m *Memory) Delete(_ context.Context, key *cachepolicy.Key) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.set(key.Canonical, nil)
	return nil
}

func (m *Memory) set(key string, entries []*store.Entry) {
	for _, e := range m.byKey[key] {
		m.bytes -= e.Size()
	}
	delete(m.byKey, key)
	m.order = slices.DeleteFunc(m.order, func(k string) bool { return k == key })
	if len(entries) == 0 {
		return
	}
	for _, e := range entries {
		m.bytes += e.Size()
	}
	m.byKey[key] = entries
	m.order = append(m.order, key)
}

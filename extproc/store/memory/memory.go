package memory

import (
	"context"
	"sync"
	"sync/atomic"
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
	table atomic.Pointer[table]

	mu          sync.Mutex
	bytes       int64 // of all nodes
	entries     int
	small, main queue
	swept       int // the slot that sweep looks at next
	epoch       time.Time
	stats       Stats // counters only
}

var _ store.Store = (*Memory)(nil)

// New returns an empty store.
func New(o Options) *Memory {
	m := &Memory{limit: o.Limit}
	m.table.Store(newTable(0))
	return m
}

// Get implements [store.Store]. It takes no lock and allocates nothing.
func (m *Memory) Get(
	_ context.Context, key *cachepolicy.Key, req httpcache.Fields, now time.Time,
) (store.Result, error) {
	n := m.table.Load().find(key)
	if n == nil {
		return store.Result{}, nil
	}
	r := store.Look(n.variants(), req, now)
	if r.Entry != nil {
		n.visit()
	}
	return r, nil
}

// Put implements [store.Store].
func (m *Memory) Put(_ context.Context, e *store.Entry, maxVariants int, now time.Time) error {
	if !e.Body.Whole() {
		return store.ErrNotWhole
	}
	e = e.Packed()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweep(sweepPerWrite, now)
	if e.Size()+nodeSize > m.limit {
		m.stats.Rejected++
		return store.ErrTooLarge
	}
	old := m.table.Load().find(&e.Key)
	var variants []*store.Entry
	if old != nil {
		variants = old.variants()
	}
	c := store.Insert(variants, e, maxVariants, now)
	if len(c.Kept) == 0 || c.Kept[0] != e {
		m.stats.Rejected++
	}
	m.stats.Evicted.Replaced += uint64(len(c.Replaced))
	m.stats.Evicted.Expired += uint64(len(c.Expired))
	m.stats.Evicted.Variants += uint64(len(c.Capped))
	m.replace(&e.Key, old, c.Kept)
	return nil
}

// Delete implements [store.Store].
func (m *Memory) Delete(_ context.Context, key *cachepolicy.Key) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.table.Load().find(key); n != nil {
		m.stats.Evicted.Deleted += uint64(len(n.variants()))
		m.drop(n)
	}
	return nil
}

// replace puts the entries in place of old, the node with this key or nil. What
// is accounted for stays within the limit all the while, and readers find either
// the old node or the new one. The caller holds mu.
func (m *Memory) replace(key *cachepolicy.Key, old *node, entries []*store.Entry) {
	n := newNode(entries)
	for n.size > m.limit && len(entries) > 0 { // the variants alone are too many
		entries = entries[:len(entries)-1]
		m.stats.Evicted.Capacity++
		n = newNode(entries)
	}
	if len(entries) == 0 {
		if old != nil {
			m.drop(old)
		}
		return
	}
	var in *queue
	if old != nil {
		in = old.in
		n.visits.Store(old.visits.Load())
		m.unlink(old)
	}
	m.makeRoom(n.size)
	if in == nil {
		in = m.admit(key)
		m.grow()
	}
	in.push(n)
	m.bytes += n.size
	m.entries += len(entries)
	m.table.Load().set(n, m.expirySecond(n))
}

// grow replaces a table that cannot take another key. The caller holds mu.
func (m *Memory) grow() {
	if t := m.table.Load(); t.full() {
		m.table.Store(t.rebuilt())
		m.swept = 0
	}
}

// drop removes a node. The caller holds mu.
func (m *Memory) drop(n *node) {
	m.unlink(n)
	m.table.Load().remove(n.key())
}

// unlink takes a node out of its queue and out of the account, but leaves it in
// the table. The caller holds mu.
func (m *Memory) unlink(n *node) {
	n.in.remove(n)
	m.bytes -= n.size
	m.entries -= len(n.variants())
}

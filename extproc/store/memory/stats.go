package memory

import (
	"slices"

	"github.com/weirproxy/weir/extproc/store"
)

// Stats is the state of a [Memory]. Each variant counts as one entry.
type Stats struct {
	Bytes    int64 // held, as accounted: headers, bodies, keys, overhead
	Limit    int64
	Entries  int
	Keys     int
	Evicted  Evictions
	Rejected uint64 // entries that Put did not keep: too large, outlived, or expired on arrival
}

// Evictions counts the entries that left the store, by reason.
type Evictions struct {
	Capacity uint64 // the store was full
	Expired  uint64 // past the last window
	Replaced uint64 // by an entry of the same variant
	Variants uint64 // over the cap of variants
	Deleted  uint64 // by Delete, or left out by an Update
}

// countUpdate counts what an Update took out: replaced if the variant is still
// there, else deleted.
func (s *Stats) countUpdate(before, after []*store.Entry) {
	for _, old := range before {
		switch {
		case slices.Contains(after, old):
		case slices.ContainsFunc(after, old.SameVariant):
			s.Evicted.Replaced++
		default:
			s.Evicted.Deleted++
		}
	}
}

// Stats returns the state of the store.
func (m *Memory) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.stats
	s.Bytes, s.Limit, s.Entries, s.Keys = m.bytes, m.limit, m.entries, m.table.Load().live
	return s
}

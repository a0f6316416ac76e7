package memory

import (
	"errors"
	"slices"
	"strconv"

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

// ErrCursor refuses a cursor that no Page returned.
var ErrCursor = errors.New("malformed cursor")

// Page lists entries in an order of no meaning: all variants of the keys after
// the cursor, "" for the first, until there are limit or a few more. It returns
// the cursor of the next page, or "" at the end. Entries that are there during
// the whole of a listing are listed once; others may be or not. No lock is taken.
func (m *Memory) Page(after string, limit int) (entries []*store.Entry, next string, err error) {
	from, err := parseCursor(after)
	if err != nil {
		return nil, "", err
	}
	t := m.table.Load()
	begin := int(from >> t.shift)
	for i := begin; i < len(t.slots); i++ {
		n := t.slots[i].Load()
		switch {
		case n == nil && len(entries) >= limit:
			// Nothing from before this slot lies behind it, in this table or the next.
			return entries, strconv.FormatUint(uint64(i)<<t.shift, 16), nil
		case n == nil || n == t.gone || hashOf(n.key()) < from || t.home(n.key()) > i:
			continue
		}
		entries = append(entries, n.variants()...)
	}
	for i := range t.slots { // what wrapped around from the end
		n := t.slots[i].Load()
		if n == nil {
			break
		}
		if n != t.gone && t.home(n.key()) > i && hashOf(n.key()) >= from {
			entries = append(entries, n.variants()...)
		}
	}
	return entries, "", nil
}

func parseCursor(s string) (uint64, error) {
	if s == "" {
		return 0, nil
	}
	from, err := strconv.ParseUint(s, 16, 64)
	if err != nil {
		return 0, ErrCursor
	}
	return from, nil
}

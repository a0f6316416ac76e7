package memory

import (
	"errors"
	"strconv"

	"github.com/weirproxy/weir/extproc/store"
)

// ErrCursor refuses a cursor that no Page returned.
var ErrCursor = errors.New("malformed cursor")

// MaxPage bounds the limit of [Memory.Page].
const MaxPage = 1000

// Page lists entries in an order of no meaning: all variants of the keys after
// the cursor, "" for the first, until there are limit (1 to MaxPage) or a few
// more. It returns the cursor of the next page, or "" at the end. Entries that are
// there during the whole of a listing are listed once; others may be or not. No
// lock is taken.
func (m *Memory) Page(after string, limit int) (entries []*store.Entry, next string, err error) {
	from, err := parseCursor(after)
	if err != nil {
		return nil, "", err
	}
	limit = min(max(limit, 1), MaxPage)
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

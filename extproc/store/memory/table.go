package memory

import (
	"math/bits"
	"sync/atomic"

	"github.com/weirproxy/weir/cachepolicy"
)

// minSlots is the size of the smallest table.
const minSlots = 64

// table maps keys to nodes: open addressing, linear probing from the slot that
// the hash's first bits name. One writer at a time changes it; readers take no
// lock. A slot once used never becomes nil again, and nodes do not move within a
// table, so a reader finds every key that is there throughout its look-up. The
// writer replaces a table that has too few nil slots.
//
// Slots being in the order of hashes, a listing can go on in a later table.
type table struct {
	slots []atomic.Pointer[node]
	shift int // of a hash, to get its home slot

	// Of the writer.
	expires []uint32 // by slot: second in which a variant expires, or 0
	ghosts  ghosts
	gone    *node // in the slot of a removed node
	used    int   // slots that are not nil
	live    int   // slots with a node
}

// newTable returns an empty table that takes live nodes and as many again before
// it is full.
func newTable(live int) *table {
	size := minSlots
	for size*3 < live*8 {
		size *= 2
	}
	return &table{
		slots: make([]atomic.Pointer[node], size), shift: 64 - bits.TrailingZeros(uint(size)),
		expires: make([]uint32, size), ghosts: make(ghosts, size), gone: &node{},
	}
}

// find returns the node of the key, or nil.
func (t *table) find(key *cachepolicy.Key) *node {
	_, n := t.locate(key)
	return n
}

// locate returns the node of the key and its slot, or the nil slot that ends the
// search.
func (t *table) locate(key *cachepolicy.Key) (int, *node) {
	for i := t.home(key); ; i = (i + 1) & (len(t.slots) - 1) {
		n := t.slots[i].Load()
		if n == nil || n != t.gone && n.is(key) {
			return i, n
		}
	}
}

func (t *table) home(key *cachepolicy.Key) int { return int(hashOf(key) >> t.shift) }

// full reports whether one more node needs a new table.
func (t *table) full() bool { return (t.used+1)*4 > len(t.slots)*3 }

// set puts n in place of the node with its key, or into a new slot. The table
// must not be full.
func (t *table) set(n *node, expires uint32) {
	i, old := t.locate(n.key())
	if old == nil {
		t.used++
		t.live++
	}
	t.expires[i] = expires
	t.slots[i].Store(n)
}

// remove takes the node with this key out of the table.
func (t *table) remove(key *cachepolicy.Key) {
	i, old := t.locate(key)
	if old == nil {
		return
	}
	t.live--
	t.expires[i] = 0
	t.slots[i].Store(t.gone)
}

// rebuilt returns a table of the right size with the same nodes.
func (t *table) rebuilt() *table {
	out := newTable(t.live)
	for i := range t.slots {
		if n := t.slots[i].Load(); n != nil && n != t.gone {
			out.set(n, t.expires[i])
		}
	}
	out.ghosts.copyFrom(t.ghosts)
	return out
}

package memory

import (
	"encoding/binary"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/store"
)

// maxVisits is where a node's count of hits saturates: two bits, as in S3-FIFO.
// A hot node is then only read.
const maxVisits = 3

// node is a resource: its variants, newest first. All but visits and the links
// is immutable; a change of the variants makes a new node.
type node struct {
	one    [1]*store.Entry // the newest
	many   *[]*store.Entry // all, if there is more than one
	size   int64           // what the node and its entries occupy
	visits atomic.Uint32   // hits since admission or the last reprieve, at most maxVisits

	// Guarded by Memory.mu.
	in         *queue
	prev, next *node
}

// nodeSize is what a node costs beside its entries: itself, and its share of the
// table, of the expiry times and of the ghosts, at the table's mean load.
const nodeSize = int64(unsafe.Sizeof(node{})) + 32

func newNode(entries []*store.Entry) *node {
	n := &node{size: nodeSize}
	copy(n.one[:], entries)
	if len(entries) > 1 {
		n.many = &entries
		n.size += int64(unsafe.Sizeof(entries)) + int64(cap(entries))*int64(unsafe.Sizeof(entries[0]))
	}
	for _, e := range entries {
		n.size += e.Size()
	}
	return n
}

// variants returns the entries of the node, which nobody may change.
func (n *node) variants() []*store.Entry {
	if n.many != nil {
		return *n.many
	}
	return n.one[:]
}

func (n *node) key() *cachepolicy.Key { return &n.one[0].Key }

// is compares the whole key: equal hashes alone prove nothing about requests
// that an attacker may choose.
func (n *node) is(key *cachepolicy.Key) bool {
	k := n.key()
	return k.Hash == key.Hash && k.Canonical == key.Canonical
}

// visit counts a hit. A count that is lost to a race is no loss.
func (n *node) visit() {
	if v := n.visits.Load(); v < maxVisits {
		n.visits.CompareAndSwap(v, v+1)
	}
}

// expiresAt returns when the first of the variants is of no more use.
func (n *node) expiresAt() time.Time {
	first := n.one[0].ExpiresAt()
	for _, e := range n.variants()[1:] {
		if at := e.ExpiresAt(); at.Before(first) {
			first = at
		}
	}
	return first
}

// hashOf returns the part of a key's SHA-256 that places it in the table.
func hashOf(key *cachepolicy.Key) uint64 { return binary.LittleEndian.Uint64(key.Hash[:8]) }

// markOf returns another part, by which the ghosts remember it; never 0.
func markOf(key *cachepolicy.Key) uint32 { return binary.LittleEndian.Uint32(key.Hash[8:12]) | 1 }

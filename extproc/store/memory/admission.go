package memory

import "github.com/weirproxy/weir/cachepolicy"

// smallShare is the share of the limit, as a divisor, that the small queue is
// brought down to: enough for a key to be asked for again, too little for a scan
// of one-time keys to displace what is in use.
const smallShare = 10

// maxReprieves bounds the work of one eviction: how many nodes with visits it
// passes over before it takes the next.
const maxReprieves = 256

// admit returns the queue for a new key. One that left the small queue not long
// ago has shown that it comes again.
func (m *Memory) admit(key *cachepolicy.Key) *queue {
	if m.table.Load().ghosts.take(key) {
		return &m.main
	}
	return &m.small
}

// makeRoom evicts until size more bytes fit.
func (m *Memory) makeRoom(size int64) {
	for m.bytes+size > m.limit {
		n := m.victim()
		if n == nil {
			return
		}
		if n.in == &m.small {
			m.table.Load().ghosts.add(n.key())
		}
		m.stats.Evicted.Capacity += uint64(len(n.variants()))
		m.drop(n)
	}
}

// victim returns the node to evict next, or nil if there is none: the oldest of
// the small queue while that is over its share, else of main. A node that was
// visited is passed over: from small it goes to the head of main for good, in
// main it has another turn for each visit.
func (m *Memory) victim() *node {
	for range maxReprieves {
		n := m.small.tail
		if n == nil || m.small.bytes <= m.limit/smallShare && m.main.tail != nil {
			n = m.main.tail
		}
		if n == nil {
			return nil
		}
		visits := n.visits.Load()
		switch {
		case n.in == &m.small && visits > 0:
			n.visits.Store(0)
		case n.in == &m.main && visits > 0:
			n.visits.Store(visits - 1)
		default:
			return n
		}
		n.in.remove(n)
		m.main.push(n)
	}
	if m.main.tail != nil {
		return m.main.tail
	}
	return m.small.tail
}

package memory

import "github.com/weirproxy/weir/cachepolicy"

// ghosts remember keys that left the small queue unvisited, about as many as the
// table has slots: a mark for each, in the place that the hash names, where a
// younger one overwrites it. A wrong match only admits a key early.
type ghosts []uint32

func (g ghosts) add(key *cachepolicy.Key) { g[g.place(key)] = markOf(key) }

// take reports whether the key is remembered, and forgets it.
func (g ghosts) take(key *cachepolicy.Key) bool {
	i := g.place(key)
	if g[i] != markOf(key) {
		return false
	}
	g[i] = 0
	return true
}

// place uses the last bits of the hash; the table uses the first.
func (g ghosts) place(key *cachepolicy.Key) uint64 { return hashOf(key) & uint64(len(g)-1) }

// copyFrom takes over what another list remembers, as far as its marks tell.
func (g ghosts) copyFrom(old ghosts) {
	if len(old) == len(g) {
		copy(g, old)
	}
}

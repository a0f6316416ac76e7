package cachepolicy

import (
	"hash/maphash"
	"maps"
)

// shardSize is how many entries a shard of an index has at most on average.
const shardSize = 32

// index is an immutable map from strings, in shards. A changed copy shares with it
// all shards but those that changed: one change among ten thousand entries costs a
// few dozen. A look-up is a hash and a look-up in a small map. The zero value is
// empty.
type index[V any] struct {
	seed   maphash.Seed
	shards []map[string]V // a power of two of them
	size   int
}

// get returns what the key leads to. It allocates nothing.
func (x *index[V]) get(key string) (v V, ok bool) {
	if x.size == 0 {
		return v, false
	}
	v, ok = x.shards[x.shard(key)][key]
	return v, ok
}

func (x *index[V]) shard(key string) int {
	if len(x.shards) == 1 {
		return 0
	}
	return int(maphash.String(x.seed, key) & uint64(len(x.shards)-1))
}

// all calls f with each entry until it returns false.
func (x *index[V]) all(f func(key string, v V) bool) {
	for _, shard := range x.shards {
		for key, v := range shard {
			if !f(key, v) {
				return
			}
		}
	}
}

// edit returns a copy that can be changed, until its done. Nil shards of owned are
// still the original's.
func (x *index[V]) edit() *indexEdit[V] {
	return &indexEdit[V]{index: *x}
}

// indexEdit is an index while it is changed. Not safe for concurrent use.
type indexEdit[V any] struct {
	index[V]
	owned []bool // shards that are this edit's own; nil: nothing changed yet
}

// own returns the shard of the key, as a copy of this edit's own.
func (e *indexEdit[V]) own(key string) map[string]V {
	if e.owned == nil {
		shards := make([]map[string]V, max(len(e.shards), 1))
		copy(shards, e.shards)
		if len(e.shards) == 0 {
			e.seed = maphash.MakeSeed()
		}
		e.shards, e.owned = shards, make([]bool, len(shards))
	}
	i := e.shard(key)
	if !e.owned[i] {
		e.owned[i] = true
		e.shards[i] = maps.Clone(e.shards[i])
		if e.shards[i] == nil {
			e.shards[i] = map[string]V{}
		}
	}
	return e.shards[i]
}

func (e *indexEdit[V]) set(key string, v V) {
	if e.size >= shardSize*len(e.shards) && len(e.shards) > 0 {
		e.grow()
	}
	shard := e.own(key)
	before := len(shard)
	shard[key] = v
	e.size += len(shard) - before
}

func (e *indexEdit[V]) remove(key string) {
	if _, ok := e.get(key); ok {
		delete(e.own(key), key)
		e.size--
	}
}

// grow doubles the shards. An index does not shrink.
func (e *indexEdit[V]) grow() {
	old := e.index
	e.shards = make([]map[string]V, 2*len(old.shards))
	e.owned = make([]bool, len(e.shards))
	for i := range e.shards {
		e.shards[i], e.owned[i] = make(map[string]V, shardSize), true
	}
	old.all(func(key string, v V) bool {
		e.shards[e.shard(key)][key] = v
		return true
	})
}

// done returns the changed index. The edit is not used any more.
func (e *indexEdit[V]) done() index[V] { return e.index }

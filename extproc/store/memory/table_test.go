package memory

import (
	"encoding/binary"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/store/storetest"
)

// nodeAt returns a node whose key has a chosen hash.
func nodeAt(hash uint64, name string) *node {
	e := storetest.Entry(name, "")
	e.Key = cachepolicy.Key{Canonical: name}
	binary.LittleEndian.PutUint64(e.Key.Hash[:], hash)
	return newNode([]*store.Entry{e})
}

// TestTableModel drives a table and a map with the same random operations. The
// hashes crowd at few places, the last slot among them, so that probes run long
// and wrap around.
func TestTableModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		table, model := newTable(0), map[string]*node{}
		draw := func(t *rapid.T) *node {
			hash := rapid.SampledFrom([]uint64{0, 1, 1 << 62, ^uint64(0)}).Draw(t, "hash")
			return nodeAt(hash, fmt.Sprint(hash, rapid.IntRange(0, 40).Draw(t, "name")))
		}
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				n := draw(t)
				if table.full() {
					table = table.rebuilt()
				}
				table.set(n, 7)
				model[n.key().Canonical] = n
			},
			"remove": func(t *rapid.T) {
				n := draw(t)
				table.remove(n.key())
				delete(model, n.key().Canonical)
			},
			"find": func(t *rapid.T) {
				n := draw(t)
				if got := table.find(n.key()); got != model[n.key().Canonical] {
					t.Fatalf("found %p, want %p", got, model[n.key().Canonical])
				}
			},
			"": func(t *rapid.T) {
				expiring := 0
				for _, at := range table.expires {
					if at != 0 {
						expiring++
					}
				}
				if table.live != len(model) || expiring != len(model) || table.used*4 > len(table.slots)*3 {
					t.Fatalf("%d nodes live and %d expire, want %d; %d of %d slots used",
						table.live, expiring, len(model), table.used, len(table.slots))
				}
			},
		})
	})
}

func TestTableSizeFollowsItsNodes(t *testing.T) {
	t.Parallel()
	table := newTable(0)
	var nodes []*node
	for i := range 10_000 {
		n := nodeAt(uint64(i)*0x9e3779b97f4a7c15, fmt.Sprint(i))
		nodes = append(nodes, n)
		if table.full() {
			table = table.rebuilt()
		}
		table.set(n, 1)
	}
	if size := len(table.slots); size < 10_000*4/3 || size > 10_000*16/3 {
		t.Errorf("%d nodes have %d slots", len(nodes), size)
	}
	for _, n := range nodes[10:] {
		table.remove(n.key())
	}
	if table = table.rebuilt(); len(table.slots) != minSlots {
		t.Errorf("10 nodes have %d slots", len(table.slots))
	}
	for _, n := range nodes[:10] {
		if table.find(n.key()) != n {
			t.Errorf("%s is lost", n.key().Canonical)
		}
	}
}

func TestGhostsSurviveARebuildOfTheSameSize(t *testing.T) {
	t.Parallel()
	table := newTable(0)
	n := nodeAt(5, "a")
	table.ghosts.add(n.key())
	table = table.rebuilt()
	if !table.ghosts.take(n.key()) {
		t.Error("the key is forgotten")
	}
	if table.ghosts.take(n.key()) {
		t.Error("the key is still remembered after it was taken")
	}
}

// TestTableShrinksUnderTheSweeper: the place where the sweeper stands may be gone.
func TestTableShrinksUnderTheSweeper(t *testing.T) {
	t.Parallel()
	m := New(Options{Limit: 64 << 20})
	for i := range 3000 {
		mustPut(t, m, storetest.Entry(fmt.Sprintf("/%d", i), "x"), storetest.Epoch())
	}
	large := len(m.table.Load().slots)
	for i := range 30_000 {
		path := fmt.Sprintf("/%d", i)
		key := storetest.Key(path)
		if i >= 3000 {
			mustPut(t, m, storetest.Entry(path, "x"), storetest.Epoch())
		}
		if len(m.table.Load().slots) == large {
			m.swept = large / 2
		}
		if err := m.Delete(t.Context(), &key); err != nil {
			t.Fatal(err)
		}
	}
	if small := len(m.table.Load().slots); small >= large {
		t.Errorf("the table of an empty store has %d slots, as many as with 3000 keys", small)
	}
}

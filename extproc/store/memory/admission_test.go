package memory

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/store/storetest"
)

// room returns a limit for n entries with 1 KiB of body.
func room(n int64) int64 {
	return n * newNode([]*store.Entry{storetest.Entry("/hot/000", kibibyte()).Packed()}).size
}

func kibibyte() string { return string(make([]byte, 1<<10)) }

// fetch gets a path or, on a miss, puts it, and reports whether it was a hit.
func fetch(t *testing.T, m *Memory, path string) bool {
	t.Helper()
	if has(t, m, path, storetest.Epoch()) {
		return true
	}
	mustPut(t, m, storetest.Entry(path, kibibyte()), storetest.Epoch())
	return false
}

// TestScanDoesNotDisplaceWhatIsInUse: three of four requests are for keys that
// never come again; the others must hit all the same.
func TestScanDoesNotDisplaceWhatIsInUse(t *testing.T) {
	t.Parallel()
	const capacity, hot, rounds = 400, 200, 40_000
	m := New(Options{Limit: room(capacity)})
	random := rand.New(rand.NewPCG(1, 2))
	hits, reads := 0, 0
	for i := range rounds {
		if i%4 != 0 {
			fetch(t, m, fmt.Sprintf("/scan/%05d", i))
			continue
		}
		hit := fetch(t, m, fmt.Sprintf("/hot/%03d", random.IntN(hot)))
		if i > rounds/4 {
			reads++
			if hit {
				hits++
			}
		}
	}
	if ratio := float64(hits) / float64(reads); ratio < 0.99 {
		t.Errorf("hit ratio of the keys in use is %.3f, want at least 0.99", ratio)
	}
	if err := check(m); err != nil {
		t.Error(err)
	}
}

// TestKeyThatComesBackIsAdmitted: a key evicted from the small queue goes to main
// when it is stored again soon, and outlives a scan there.
func TestKeyThatComesBackIsAdmitted(t *testing.T) {
	t.Parallel()
	m := New(Options{Limit: room(100)})
	mustPut(t, m, storetest.Entry("/back", kibibyte()), storetest.Epoch())
	key := storetest.Key("/back")
	for scan := 0; m.table.Load().find(&key) != nil; scan++ { // Get would count as a visit
		if scan > 1000 {
			t.Fatal("the key survives a scan of a thousand others")
		}
		mustPut(t, m, storetest.Entry(fmt.Sprintf("/scan/%d", scan), kibibyte()), storetest.Epoch())
	}
	mustPut(t, m, storetest.Entry("/back", kibibyte()), storetest.Epoch())
	if n := m.table.Load().find(&key); n.in != &m.main {
		t.Error("a key that came back is not in the main queue")
	}
}

// TestEvictionWorkIsBounded: an eviction among visited nodes passes over a bounded
// number of them.
func TestEvictionWorkIsBounded(t *testing.T) {
	t.Parallel()
	m := New(Options{Limit: room(4 * maxReprieves)})
	for i := range 4 * maxReprieves {
		path := fmt.Sprintf("/hot/%03d", i)
		fetch(t, m, path)
		fetch(t, m, path)
	}
	visited := func() (count int) {
		for n := m.small.head; n != nil; n = n.next {
			count += int(n.visits.Load())
		}
		for n := m.main.head; n != nil; n = n.next {
			count += int(n.visits.Load())
		}
		return count
	}
	before, evicted := visited(), m.Stats().Evicted.Capacity
	mustPut(t, m, storetest.Entry("/one/more", kibibyte()), storetest.Epoch())
	if got := m.Stats().Evicted.Capacity - evicted; got != 1 {
		t.Errorf("one more entry evicted %d", got)
	}
	if got := before - visited(); got > maxReprieves+1 {
		t.Errorf("one eviction passed over nodes with %d visits", got)
	}
}

// scanUntilEvicted puts one-time keys until n entries were evicted for room.
func scanUntilEvicted(t *testing.T, m *Memory, name string, n uint64) {
	t.Helper()
	from := m.Stats().Evicted.Capacity
	for i := 0; m.Stats().Evicted.Capacity < from+n; i++ {
		mustPut(t, m, storetest.Entry(fmt.Sprintf("/%s/%d", name, i), kibibyte()), storetest.Epoch())
	}
}

// TestVisitedKeySurvivesItsFirstTurn: one hit in the small queue is enough.
func TestVisitedKeySurvivesItsFirstTurn(t *testing.T) {
	t.Parallel()
	m := New(Options{Limit: room(100)})
	fetch(t, m, "/visited")
	fetch(t, m, "/unvisited")
	fetch(t, m, "/visited")
	mustPut(t, m, storetest.Entry("/visited", kibibyte()), storetest.Epoch()) // a refresh loses no visits
	scanUntilEvicted(t, m, "scan", 200)
	if has(t, m, "/unvisited", storetest.Epoch()) || !has(t, m, "/visited", storetest.Epoch()) {
		t.Error("a scan took the key that was visited, or left the one that was not")
	}
}

// TestVisitedKeyHasAnotherTurnInMain: among keys that were all admitted to main,
// those that are still asked for outlive the others.
func TestVisitedKeyHasAnotherTurnInMain(t *testing.T) {
	t.Parallel()
	const capacity = 100
	m := New(Options{Limit: room(capacity)})
	for i := range capacity {
		fetch(t, m, fmt.Sprintf("/old/%d", i))
		fetch(t, m, fmt.Sprintf("/old/%d", i))
	}
	scanUntilEvicted(t, m, "scan", 1) // passes over all and moves them to main
	missed := 0
	for round := range 40 {
		for i := capacity / 2; i < capacity; i++ { // the younger half is still in use
			if !fetch(t, m, fmt.Sprintf("/old/%d", i)) {
				missed++
			}
		}
		for i := range 2 { // what comes twice pushes into main
			path := fmt.Sprintf("/new/%d/%d", round, i)
			fetch(t, m, path)
			fetch(t, m, path)
		}
		scanUntilEvicted(t, m, fmt.Sprint("scan", round), 3)
	}
	if missed > 0 {
		t.Errorf("keys in use were missed %d times", missed)
	}
}

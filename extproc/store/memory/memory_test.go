package memory

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) store.Store { return New(Options{Limit: storetest.Room}) })
}

func mustPut(t *testing.T, m *Memory, e *store.Entry, now time.Time) {
	t.Helper()
	if err := m.Put(t.Context(), e, 16, now); err != nil {
		t.Fatalf("Put: %v", err)
	}
}

func has(t *testing.T, m *Memory, path string, now time.Time) bool {
	t.Helper()
	key := storetest.Key(path)
	r, err := m.Get(t.Context(), &key, nil, now)
	if err != nil {
		t.Fatal(err)
	}
	return r.Entry != nil
}

// check fails the test unless table, queues and account agree and the limit holds.
func check(m *Memory) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.table.Load()
	var bytes int64
	entries, live, used := 0, 0, 0
	for i := range t.slots {
		n := t.slots[i].Load()
		if n != nil {
			used++
		}
		if n == nil || n == t.gone {
			if t.expires[i] != 0 {
				return fmt.Errorf("slot %d has no node but expires", i)
			}
			continue
		}
		live++
		bytes += n.size
		entries += len(n.variants())
		if at, found := t.locate(n.key()); found != n || at != i {
			return fmt.Errorf("the node in slot %d is found in slot %d", i, at)
		}
		if n.in != &m.small && n.in != &m.main {
			return fmt.Errorf("the node in slot %d is in no queue", i)
		}
	}
	queued := 0
	for _, q := range []*queue{&m.small, &m.main} {
		var sum int64
		for n := q.head; n != nil; n = n.next {
			queued++
			sum += n.size
		}
		if sum != q.bytes {
			return fmt.Errorf("a queue accounts %d bytes and holds %d", q.bytes, sum)
		}
	}
	got := [...]int64{m.bytes, int64(m.entries), int64(t.live), int64(t.used), int64(queued)}
	want := [...]int64{bytes, int64(entries), int64(live), int64(used), int64(live)}
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("bytes, entries, live, used, queued (-counted +accounted):\n%s", diff)
	}
	if m.bytes > m.limit {
		return fmt.Errorf("%d bytes are over the limit of %d", m.bytes, m.limit)
	}
	return nil
}

// TestLimitHoldsUnderConcurrentWrites: not even for a moment, and not by one
// object, does the store account for more than its limit.
func TestLimitHoldsUnderConcurrentWrites(t *testing.T) {
	t.Parallel()
	const limit, writers, rounds = 16 << 20, 16, 200
	m := New(Options{Limit: limit})
	body := storetest.Whole(make([]byte, 1<<20))
	var writing, watching sync.WaitGroup
	var done atomic.Bool
	watching.Go(func() {
		for !done.Load() {
			if s := m.Stats(); s.Bytes > limit {
				t.Errorf("%d bytes are over the limit of %d", s.Bytes, limit)
				return
			}
		}
	})
	for w := range writers {
		writing.Go(func() {
			for i := range rounds {
				e := storetest.Entry(fmt.Sprintf("/%d/%d", w, i%50), "")
				e.Body = body
				if err := m.Put(t.Context(), e, 16, storetest.Epoch()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writing.Wait()
	done.Store(true)
	watching.Wait()
	if err := check(m); err != nil {
		t.Error(err)
	}
	if s := m.Stats(); s.Entries != 15 || s.Evicted.Capacity == 0 {
		t.Errorf("after the writes: %+v, want the 15 entries that fit", s)
	}
}

func TestGetAllocatesNothing(t *testing.T) {
	m := New(Options{Limit: 1 << 20})
	now := storetest.Epoch()
	mustPut(t, m, storetest.Entry("/plain", "p"), now)
	mustPut(t, m, storetest.Variant("/varies", "gzip", "v"), now)
	req := storetest.Accepting("gzip")
	for _, path := range []string{"/plain", "/varies", "/absent"} {
		key := storetest.Key(path)
		if n := testing.AllocsPerRun(100, func() { _, _ = m.Get(t.Context(), &key, req, now) }); n != 0 {
			t.Errorf("Get of %s allocates %v times", path, n)
		}
	}
}

// TestReplacedKeyIsNeverMissed: a reader finds a key that is there all along,
// while it is replaced and the table around it grows, shrinks and is swept.
func TestReplacedKeyIsNeverMissed(t *testing.T) {
	t.Parallel()
	m := New(Options{Limit: 64 << 20})
	mustPut(t, m, storetest.Entry("/hot", "hot"), storetest.Epoch())
	var writing, reading sync.WaitGroup
	var done atomic.Bool
	for range 2 {
		reading.Go(func() {
			for !done.Load() {
				if !has(t, m, "/hot", storetest.Epoch()) {
					t.Error("/hot was missed")
					return
				}
			}
		})
	}
	for w := range 4 {
		writing.Go(func() {
			for i := range 2000 {
				path := fmt.Sprintf("/%d/%d", w, i)
				key := storetest.Key(path)
				err := errors.Join(
					m.Put(t.Context(), storetest.Entry(path, "x"), 16, storetest.Epoch()),
					m.Put(t.Context(), storetest.Entry("/hot", "hot"), 16, storetest.Epoch()))
				if i%2 == 0 {
					err = errors.Join(err, m.Delete(t.Context(), &key))
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	writing.Wait()
	done.Store(true)
	reading.Wait()
	if err := check(m); err != nil {
		t.Error(err)
	}
}

func TestUpdateChecksWhatItIsGiven(t *testing.T) {
	t.Parallel()
	m := New(Options{Limit: 1 << 20})
	mustPut(t, m, storetest.Entry("/a", "a"), storetest.Epoch())
	key := storetest.Key("/a")
	for want, bad := range map[error]*store.Entry{
		ErrForeignKey:     storetest.Entry("/b", "b"),
		store.ErrNotWhole: {Key: key, Body: store.NewBody(-1)},
	} {
		err := m.Update(t.Context(), &key, storetest.Epoch(), func([]*store.Entry) []*store.Entry {
			return []*store.Entry{bad}
		})
		if !errors.Is(err, want) {
			t.Errorf("Update = %v, want %v", err, want)
		}
	}
	if !has(t, m, "/a", storetest.Epoch()) {
		t.Error("a refused update took the entry away")
	}
}

// TestVariantsLargerThanTheStore: the newest that fit stay.
func TestVariantsLargerThanTheStore(t *testing.T) {
	t.Parallel()
	m := New(Options{Limit: 64 << 10})
	for i := range 20 {
		mustPut(t, m, storetest.Variant("/a", fmt.Sprint(i), string(make([]byte, 10<<10))), storetest.Epoch())
		if err := check(m); err != nil {
			t.Fatal(err)
		}
	}
	if s := m.Stats(); s.Entries != 6 || s.Keys != 1 {
		t.Errorf("%d entries of %d keys, want the 6 that fit of 1 key", s.Entries, s.Keys)
	}
	key := storetest.Key("/a")
	if r, _ := m.Get(t.Context(), &key, storetest.Accepting("19"), storetest.Epoch()); r.Entry == nil {
		t.Error("the newest variant is gone")
	}
}

func TestKeysWithOneHash(t *testing.T) {
	t.Parallel()
	m := New(Options{Limit: 1 << 20})
	var keys []cachepolicy.Key
	for i := range 100 {
		e := storetest.Entry(fmt.Sprintf("/%d", i), fmt.Sprint(i))
		e.Key.Hash = [32]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff} // the last slot: the probes wrap around
		keys = append(keys, e.Key)
		mustPut(t, m, e, storetest.Epoch())
	}
	for i := range keys {
		r, _ := m.Get(t.Context(), &keys[i], nil, storetest.Epoch())
		if r.Entry == nil || storetest.Content(r.Entry) != fmt.Sprint(i) {
			t.Errorf("key %d: %+v", i, r)
		}
	}
}

// TestHeldPerPayload guards what an entry costs, as accounted; BenchmarkHeld shows
// that the account is what the heap holds.
func TestHeldPerPayload(t *testing.T) {
	t.Parallel()
	for size, limit := range map[int]float64{1 << 10: 1.78, 64 << 10: 1.14, 1 << 20: 1.01} {
		m := New(Options{Limit: 64 << 20})
		var sent int64
		for i := range 10 {
			e := response(fmt.Sprintf("/products/%08d?page=2", i), size)
			sent += payload(e)
			mustPut(t, m, e, storetest.Epoch())
		}
		if ratio := float64(m.Stats().Bytes) / float64(sent); ratio > limit {
			t.Errorf("bodies of %d bytes: %.3f bytes held for each of payload, want at most %.2f", size, ratio, limit)
		}
	}
}

package refill

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func granted(s *Slot) bool {
	select {
	case <-s.Granted():
		return true
	default:
		return false
	}
}

func mustQueue(t *testing.T, l *Limiter, popularity float64) *Slot {
	t.Helper()
	s, err := l.Enqueue(popularity)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func wantLimiter(t *testing.T, l *Limiter, running, queued int) {
	t.Helper()
	if s := l.Stats(); s.Running != running || s.Queued != queued {
		t.Errorf("%d running, %d queued; want %d, %d", s.Running, s.Queued, running, queued)
	}
}

func TestLimiterBounds(t *testing.T) {
	t.Parallel()
	l := NewLimiter(2, 1, nil)
	a, b := mustQueue(t, l, 0), mustQueue(t, l, 0)
	if !granted(a) || !granted(b) {
		t.Error("a free slot has to be waited for")
	}
	c := mustQueue(t, l, 0)
	if granted(c) {
		t.Error("granted beyond the bound")
	}
	if _, err := l.Enqueue(100); !errors.Is(err, ErrQueueFull) {
		t.Errorf("beyond the queue: %v", err)
	}
	wantLimiter(t, l, 2, 1)
	a.Release()
	a.Release()
	if !granted(c) {
		t.Error("not granted when a slot became free")
	}
	wantLimiter(t, l, 2, 0)
	b.Release()
	c.Release()
	wantLimiter(t, l, 0, 0)
	if s := l.Stats(); s.Granted != 3 || s.Refused != 1 {
		t.Errorf("%d granted, %d refused; want 3, 1", s.Granted, s.Refused)
	}
}

func TestLimiterOrder(t *testing.T) {
	t.Parallel()
	l := NewLimiter(1, 100, nil)
	running := mustQueue(t, l, 0)
	type place struct {
		popularity float64
		name       string
	}
	slots := make(map[string]*Slot)
	for _, p := range []place{{1, "a"}, {5, "b"}, {1, "c"}, {9, "d"}, {5, "e"}, {0, "f"}, {-1, "g"}} {
		slots[p.name] = mustQueue(t, l, p.popularity)
	}
	slots["e"].Release() // leaves the queue
	var order []string
	for len(slots) > 1 {
		running.Release()
		for name, s := range slots {
			if name != "e" && granted(s) {
				order = append(order, name)
				running = s
				delete(slots, name)
			}
		}
	}
	if want := []string{"d", "b", "a", "c", "f", "g"}; !slices.Equal(order, want) {
		t.Errorf("order = %v, want %v", order, want)
	}
	running.Release()
	wantLimiter(t, l, 0, 0)
}

func TestLimiterSetLimits(t *testing.T) {
	t.Parallel()
	l := NewLimiter(0, -1, nil) // at least one, and no queue
	a := mustQueue(t, l, 0)
	if _, err := l.Enqueue(0); !errors.Is(err, ErrQueueFull) {
		t.Errorf("without a queue: %v", err)
	}
	l.SetLimits(1, 3)
	queue := []*Slot{mustQueue(t, l, 0), mustQueue(t, l, 0), mustQueue(t, l, 0)}
	l.SetLimits(3, 3)
	if !granted(queue[0]) || !granted(queue[1]) || granted(queue[2]) {
		t.Error("raising the limit does not fill it, in order")
	}
	l.SetLimits(1, 0)
	wantLimiter(t, l, 3, 1)
	a.Release()
	queue[0].Release()
	if granted(queue[2]) {
		t.Error("granted beyond the lowered limit")
	}
	queue[1].Release()
	if !granted(queue[2]) {
		t.Error("not granted under the lowered limit")
	}
	queue[2].Release()
	wantLimiter(t, l, 0, 0)
}

func TestAcquireWaitsNoLongerThanItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(1, 1, nil)
		a, err := l.Acquire(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if _, err := l.Acquire(ctx, 0); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("Acquire = %v after %v", err, time.Since(start))
		}
		wantLimiter(t, l, 1, 0)
		time.AfterFunc(2*time.Second, a.Release)
		b, err := l.Acquire(t.Context(), 0)
		if err != nil || time.Since(start) != 3*time.Second {
			t.Errorf("Acquire = %v after %v", err, time.Since(start))
		}
		queued := mustQueue(t, l, 0)
		if _, err := l.Acquire(t.Context(), 0); !errors.Is(err, ErrQueueFull) {
			t.Errorf("Acquire with a full queue = %v", err)
		}
		queued.Release()
		b.Release()
		wantLimiter(t, l, 0, 0)
	})
}

// A model: whatever is asked in whatever order, the bounds hold, a slot is never
// free while somebody waits, and who runs is who should.
func TestLimiterModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &limiterModel{limit: rapid.IntRange(1, 4).Draw(t, "limit"), queue: rapid.IntRange(0, 4).Draw(t, "queue")}
		m.l = NewLimiter(m.limit, m.queue, nil)
		t.Repeat(map[string]func(*rapid.T){
			"enqueue": m.enqueue, "release": m.release, "": m.check,
		})
	})
}

type limiterModel struct {
	l                *Limiter
	limit, queue     int
	running, waiting []*Slot
}

func (m *limiterModel) enqueue(t *rapid.T) {
	s, err := m.l.Enqueue(float64(rapid.IntRange(0, 2).Draw(t, "popularity")))
	if err == nil {
		m.waiting = append(m.waiting, s)
	} else if len(m.running) < m.limit || len(m.waiting) < m.queue {
		t.Fatal("refused below the bounds")
	}
}

func (m *limiterModel) release(t *rapid.T) {
	from := &m.running
	if rapid.Bool().Draw(t, "waiting") {
		from = &m.waiting
	}
	if len(*from) == 0 {
		return
	}
	i := rapid.IntRange(0, len(*from)-1).Draw(t, "which")
	s := (*from)[i]
	*from = slices.Delete(*from, i, i+1)
	s.Release()
	if rapid.Bool().Draw(t, "twice") {
		s.Release()
	}
}

func (m *limiterModel) check(t *rapid.T) {
	for i := 0; i < len(m.waiting); i++ {
		if s := m.waiting[i]; granted(s) {
			if slices.ContainsFunc(m.waiting, func(w *Slot) bool { return !granted(w) && comesBefore(w, s) }) {
				t.Fatal("overtaken")
			}
			m.running = append(m.running, s)
			m.waiting = slices.Delete(m.waiting, i, i+1)
			i--
		}
	}
	running, waiting := len(m.running), len(m.waiting)
	if running > m.limit || waiting > m.queue || waiting > 0 && running < m.limit {
		t.Fatalf("%d of %d run, %d of %d wait", running, m.limit, waiting, m.queue)
	}
	if s := m.l.Stats(); s.Running != running || s.Queued != waiting {
		t.Fatalf("Stats = %+v; %d run, %d wait", s, running, waiting)
	}
}

func comesBefore(a, b *Slot) bool {
	return a.popularity > b.popularity || a.popularity == b.popularity && a.sequence < b.sequence
}

func TestLimiterStress(t *testing.T) {
	t.Parallel()
	l := NewLimiter(3, 8, nil)
	var running atomic.Int64
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 200 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(200))*time.Microsecond)
				s, err := l.Acquire(ctx, rand.Float64())
				cancel()
				if err != nil {
					continue
				}
				if n := running.Add(1); n > 3 {
					t.Errorf("%d run at a time", n)
				}
				running.Add(-1)
				s.Release()
			}
		})
	}
	all.Wait()
	wantLimiter(t, l, 0, 0)
}

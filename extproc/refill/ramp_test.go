package refill

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// through returns how many fetches a ramp lets through in each second, if more
// than may come ask all the time.
func through(r *Ramp, from time.Time, seconds int) []int {
	perSecond := make([]int, seconds)
	for ms := range seconds * 1000 {
		for range 5 {
			if r.Take(from.Add(time.Duration(ms)*time.Millisecond)) == 0 {
				perSecond[ms/1000]++
			}
		}
	}
	return perSecond
}

func TestRamp(t *testing.T) {
	t.Parallel()
	r := NewRamp(RampOptions{From: 10, To: 1000, Duration: 10 * time.Second}, t0)
	n := through(r, t0, 12)
	for i := range 9 {
		if n[i+1] < n[i] || i == 0 && n[i] > 15 {
			t.Errorf("fetches per second: %v", n)
		}
	}
	if n[9] < 700 || n[9] > 1100 || n[10] != 5000 {
		t.Errorf("fetches per second: %v; want about 800 in the tenth, and no bound after it", n)
	}
	r.Restart(t0.Add(time.Minute))
	if n := through(r, t0.Add(time.Minute), 1); n[0] > 15 {
		t.Errorf("%d fetches in the first second after a restart", n[0])
	}
}

// TestRampWait: who asks again when told to is let through.
func TestRampWait(t *testing.T) {
	t.Parallel()
	r := NewRamp(RampOptions{From: 2, To: 2, Duration: 10 * time.Second}, t0)
	now := t0
	for i := range 10 {
		if r.Take(now) != 0 {
			t.Fatalf("fetch %d waits although it is due", i)
		}
		wait := r.Take(now)
		if wait < 400*time.Millisecond || wait > 501*time.Millisecond {
			t.Fatalf("the fetch after %d waits %v, want about 500ms", i, wait)
		}
		now = now.Add(wait + time.Millisecond)
	}
	slow := NewRamp(RampOptions{From: 0.01, To: 0.01, Duration: 10 * time.Second}, t0)
	slow.Take(t0)
	if wait := slow.Take(t0.Add(time.Second)); wait != 9*time.Second {
		t.Errorf("a wait of %v, want 9s: the ramp ends then", wait)
	}
	if wait := slow.Take(t0.Add(-time.Hour)); wait < 0 || wait > time.Hour+10*time.Second {
		t.Errorf("by a clock that went back: %v", wait)
	}
}

func TestRampRate(t *testing.T) {
	t.Parallel()
	r := NewRamp(RampOptions{From: 1, To: 100, Duration: 10 * time.Second}, t0)
	for after, want := range map[time.Duration]float64{0: 1, 5 * time.Second: 10} {
		if got := r.Rate(t0.Add(after)); got < 0.99*want || got > 1.01*want {
			t.Errorf("after %v: %v a second, want %v", after, got, want)
		}
	}
	if got := r.Rate(t0.Add(10 * time.Second)); got != 0 {
		t.Errorf("after its end: %v a second, want 0", got)
	}
}

func TestNoRamp(t *testing.T) {
	t.Parallel()
	for _, o := range []RampOptions{{}, {From: 1, To: 1}, {To: 1, Duration: time.Second}} {
		r := NewRamp(o, t0)
		r.Restart(t0)
		if r != nil || r.Take(t0) != 0 || r.Rate(t0) != 0 {
			t.Errorf("%+v is a ramp", o)
		}
	}
}

// TestLimiterRamp: while a ramp lasts the queue is emptied at its pace, the most
// popular first, however late it came; then all that may run does.
func TestLimiterRamp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(100, 10, NewRamp(RampOptions{From: 1, To: 1, Duration: 4 * time.Second}, time.Now()))
		slots := []*Slot{mustQueue(t, l, 0), mustQueue(t, l, 1), mustQueue(t, l, 2), mustQueue(t, l, 3)}
		var order []int
		note := func() {
			synctest.Wait()
			for i, s := range slots {
				if granted(s) && !slices.Contains(order, i) {
					order = append(order, i)
				}
			}
		}
		note()
		wantLimiter(t, l, 1, 3)
		time.Sleep(1100 * time.Millisecond)
		note()
		slots = append(slots, mustQueue(t, l, 9))
		time.Sleep(time.Second)
		note()
		if want := []int{0, 3, 4}; !slices.Equal(order, want) {
			t.Errorf("order %v, want %v", order, want)
		}
		if s := l.Stats(); s.Rate != 1 {
			t.Errorf("rate %v, want 1", s.Rate)
		}
		time.Sleep(2 * time.Second) // past the end
		note()
		wantLimiter(t, l, 5, 0)
		if s := l.Stats(); s.Rate != 0 {
			t.Errorf("rate %v after the ramp", s.Rate)
		}
		l.Restart(time.Now())
		more := []*Slot{mustQueue(t, l, 0), mustQueue(t, l, 0)}
		wantLimiter(t, l, 6, 1)
		for _, s := range append(slots, more...) {
			s.Release()
		}
		wantLimiter(t, l, 0, 0)
		time.Sleep(time.Minute) // its timer finds nothing to do
	})
}

// TestLimiterRampRefuses: what waits for the ramp counts against the queue.
func TestLimiterRampRefuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(100, 1, NewRamp(RampOptions{From: 1, To: 1, Duration: time.Minute}, time.Now()))
		a, b := mustQueue(t, l, 0), mustQueue(t, l, 0)
		if s, err := l.Enqueue(5); err == nil {
			t.Errorf("slot %v beyond the queue", s)
		}
		a.Release()
		wantLimiter(t, l, 0, 1) // a free slot is not enough
		b.Release()
		wantLimiter(t, l, 0, 0)
		time.Sleep(2 * time.Second)
	})
}

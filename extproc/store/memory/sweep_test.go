package memory

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/store/storetest"
)

// lasting returns an entry that is kept for a time.
func lasting(path string, life time.Duration, now time.Time) *store.Entry {
	e := storetest.Entry(path, path)
	e.ResponseTime, e.Lifetime = now, life/2
	e.WhileRevalidate = life - life/2
	return e
}

func TestRunRemovesWhatExpired(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := New(Options{Limit: 64 << 20})
		ctx, cancel := context.WithCancel(t.Context())
		go m.Run(ctx, time.Second)
		for i := range 100 {
			for j := range 100 {
				life := time.Duration(i+1)*time.Second + time.Millisecond
				mustPut(t, m, lasting(fmt.Sprintf("/%d/%d", i, j), life, time.Now()), time.Now())
			}
		}
		for i := range 100 {
			if got, want := m.Stats().Entries, 100*(100-max(i-1, 0)); got != want {
				t.Fatalf("after %d s there are %d entries, want %d", i, got, want)
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if s := m.Stats(); s.Entries != 0 || s.Bytes != 0 || s.Evicted.Expired != 10_000 {
			t.Errorf("after all ends: %+v", s)
		}
		cancel()
		synctest.Wait()
	})
}

// TestWritesSweep: a busy store gets rid of what expired without Run.
func TestWritesSweep(t *testing.T) {
	t.Parallel()
	m := New(Options{Limit: 64 << 20})
	now := storetest.Epoch()
	for i := range 1000 {
		mustPut(t, m, lasting(fmt.Sprintf("/%d", i), time.Second, now), now)
	}
	now = now.Add(3 * time.Second)
	for range 1000 {
		mustPut(t, m, lasting("/again", time.Hour, now), now)
	}
	if s := m.Stats(); s.Entries != 1 || s.Evicted.Expired != 1000 {
		t.Errorf("after as many writes: %+v", s)
	}
}

// TestSweepKeepsTheVariantsThatLast: of a key's variants only the expired go, and
// never before their end.
func TestSweepKeepsTheVariantsThatLast(t *testing.T) {
	t.Parallel()
	m := New(Options{Limit: 1 << 20})
	now := storetest.Epoch()
	for i, life := range []time.Duration{1500 * time.Millisecond, time.Hour, 2500 * time.Millisecond} {
		e := storetest.Variant("/a", fmt.Sprint(i), "x")
		e.Lifetime = life
		mustPut(t, m, e, now)
	}
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{1499 * time.Millisecond, 3}, {2 * time.Second, 2}, {2499 * time.Millisecond, 2}, {3 * time.Second, 1}} {
		m.Sweep(now.Add(c.after))
		if got := m.Stats().Entries; got != c.want {
			t.Errorf("after %v there are %d variants, want %d", c.after, got, c.want)
		}
		if err := check(m); err != nil {
			t.Error(err)
		}
	}
}

// TestSweepWhileTheClockStepsBack removes nothing early and does not panic.
func TestSweepWhileTheClockStepsBack(t *testing.T) {
	t.Parallel()
	m := New(Options{Limit: 1 << 20})
	now := storetest.Epoch()
	mustPut(t, m, lasting("/a", time.Minute, now), now)
	mustPut(t, m, lasting("/old", time.Second, now.Add(-time.Hour)), now.Add(-time.Hour))
	m.Sweep(now.Add(-24 * time.Hour))
	if !has(t, m, "/a", now) {
		t.Error("/a is gone")
	}
	m.Sweep(now.Add(2 * time.Second))
	if s := m.Stats(); s.Entries != 1 {
		t.Errorf("%d entries, want /a alone", s.Entries)
	}
}

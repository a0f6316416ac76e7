package flight

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store"
)

// Field case 3: each follower keeps its own clock. The leader's client gives up
// at 0.3 s, one follower at 0.6 s, the other is patient; one fetch serves it.
func TestEachFollowerKeepsItsOwnClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fetches := 0
		g := New(Options{})
		g.opts.TakeOver = func(f *Flight) bool {
			fetches++
			go fetch(f.Lead(), time.Second)
			return true
		}
		start := time.Now()
		lead := mustLead(t, g, "a", plain)
		hasty, patient := mustFollow(t, g, "a", plain, 600*time.Millisecond), mustFollow(t, g, "a", plain, time.Minute)
		time.Sleep(300 * time.Millisecond)
		lead.Abandon()
		time.Sleep(300 * time.Millisecond)
		hasty.Leave()
		n := <-patient.C()
		if n.Kind != NewsAnswer || time.Since(start) != 1300*time.Millisecond || fetches != 1 {
			t.Errorf("%v after %v and %d fetches, want an answer after 1.3s and 1", n.Kind, time.Since(start), fetches)
		}
		synctest.Wait()
		wantStats(t, g, 0, 0)
	})
}

// All clients leave: the detached fetch is cancelled.
func TestAllLeave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New(Options{})
		var end atomic.Int64
		g.opts.TakeOver = func(f *Flight) bool {
			go func() {
				fetch(f.Lead(), time.Hour)
				end.Store(int64(time.Since(t0bubble)))
			}()
			return true
		}
		lead := mustLead(t, g, "a", plain)
		w := mustFollow(t, g, "a", plain, time.Minute)
		lead.Abandon()
		time.Sleep(500 * time.Millisecond)
		w.Leave()
		synctest.Wait()
		if got := time.Duration(end.Load()); got != 500*time.Millisecond {
			t.Errorf("the fetch ended after %v, want 500ms", got)
		}
		wantStats(t, g, 0, 0)
	})
}

// t0bubble is when time begins in a synctest bubble.
var t0bubble = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// fetch plays a detached fetch that takes d.
func fetch(l *Lead, d time.Duration) {
	defer l.Close()
	select {
	case <-l.Unwanted():
	case <-time.After(d):
		e := entry(plain)
		l.Publish(e)
		e.Body.End()
	}
}

// A mark stands for its life by the clock, without anybody telling the time.
func TestMarkByTheClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New(Options{MarkTTL: 2 * time.Second})
		mustLead(t, g, "a", plain).Release(true, "private")
		for _, want := range []Role{RoleSolo, RoleSolo, RoleLead} {
			role, l, _ := g.Join("a", plain, time.Time{}, Limits{}, time.Now())
			if role != want {
				t.Errorf("after %v: %v, want %v", time.Since(t0bubble), role, want)
			}
			if l != nil {
				l.Close()
			}
			time.Sleep(time.Second)
		}
	})
}

// TestStress lets many clients come, wait, leave and lead at once. Each client
// ends with an answer, a failure it was told of, or by its own leaving; nothing is
// left behind. Run with -race.
func TestStress(t *testing.T) {
	t.Parallel()
	const clients, rounds = 16, 150
	var detached sync.WaitGroup
	g := New(Options{MarkTTL: time.Millisecond, TakeOver: func(f *Flight) bool {
		if rand.IntN(2) == 0 {
			return false
		}
		l := f.Lead()
		detached.Go(func() { lead(l, nil) })
		return true
	}})
	var waiting atomic.Int64
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for range rounds {
				client(t, g, Limits{MaxWaiters: clients / 2, Waiters: &waiting})
			}
		})
	}
	all.Wait()
	detached.Wait()
	wantStats(t, g, 0, 0)
	if n := waiting.Load(); n != 0 {
		t.Errorf("%d waiters counted for the policy", n)
	}
}

// client is one request, by whatever role it gets.
func client(t *testing.T, g *Group, lim Limits) {
	req := accepting([]string{"gzip", "br"}[rand.IntN(2)])
	id := page
	for range 3 {
		role, l, w := g.Join(id, req, time.Now().Add(time.Duration(rand.IntN(100))), lim, time.Now())
		if role == RoleLead {
			lead(l, req)
		}
		if role != RoleFollow {
			return
		}
		n, ok := wait(w)
		if !ok {
			return
		}
		switch n.Kind {
		case NewsLead:
			lead(n.Lead, req)
		case NewsAnswer:
			if !httpcache.SameVariant(n.Entry.Vary.Names, n.Entry.VaryValues, req) {
				t.Error("the answer of another variant")
			}
			tail(w, n.Entry.Body)
		case NewsRejoin:
			id = page.variant(n.Entry.Vary.Names, n.Entry.Vary.Select(req))
			w.Leave()
			continue
		}
		w.Leave()
		return
	}
}

// wait waits for the news, or not.
func wait(w *Waiter) (News, bool) {
	if rand.IntN(4) == 0 {
		w.Leave()
		return News{}, false
	}
	return <-w.C(), true
}

// tail reads the body to its end, or leaves, or finds the leader too slow.
func tail(w *Waiter, b *store.Body) {
	for i := 0; ; i++ {
		chunk, state, changed := b.Next(i)
		switch {
		case chunk != nil:
		case state != store.BodyOpen || rand.IntN(8) == 0:
			return
		default:
			if l, ok := w.Supersede(time.Now(), 0); ok {
				lead(l, accepting("gzip"))
			}
			<-changed
			i--
		}
	}
}

// lead ends l in one of the ways there are.
func lead(l *Lead, req httpcache.Fields) {
	defer l.Close()
	switch rand.IntN(8) {
	case 0:
		l.Fail("failed")
		return
	case 1:
		l.Release(rand.IntN(2) == 0, "private")
		return
	case 2:
		l.Abandon()
		return
	}
	e := tagged(entry(req, "accept-encoding"), `"v"`)
	if !l.Resume(200, e.Header) {
		l.Publish(e)
	}
	for range 8 {
		if err := l.Append([]byte("chunk"), time.Now()); err != nil {
			l.Break(err)
			return
		}
	}
	switch err := l.End(); {
	case rand.IntN(4) == 0:
		l.Abandon()
	case err != nil && !errors.Is(err, ErrEnded):
		l.Break(err)
	default:
		l.Finish()
	}
}

// BenchmarkWakeUp measures how long 5,000 followers take to be told: from the
// leader's Publish until the last has read its News.
func BenchmarkWakeUp(b *testing.B) {
	const followers = 5000
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	for b.Loop() {
		g := New(Options{})
		_, l, _ := g.Join(page, plain, time.Time{}, Limits{}, time.Time{})
		var ready, done sync.WaitGroup
		ready.Add(followers)
		b.StopTimer()
		for range followers {
			done.Go(func() {
				_, _, w := g.Join(page, plain, time.Now(), Limits{}, time.Now())
				defer w.Leave()
				ready.Done()
				select {
				case <-w.C():
				case <-ctx.Done():
				}
			})
		}
		ready.Wait()
		b.StartTimer()
		e := entry(plain, "accept-encoding")
		l.Publish(e)
		done.Wait()
		b.StopTimer()
		e.Body.End()
		l.Finish()
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/1e3, "ms/wake-up")
}

// BenchmarkJoin measures one follower's coming and going.
func BenchmarkJoin(b *testing.B) {
	g := New(Options{})
	_, l, _ := g.Join(page, plain, time.Time{}, Limits{}, time.Time{})
	defer l.Close()
	b.ReportAllocs()
	for b.Loop() {
		_, _, w := g.Join(page, plain, time.Time{}, Limits{}, time.Time{})
		w.Leave()
	}
}

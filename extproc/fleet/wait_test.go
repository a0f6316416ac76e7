package fleet

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"
)

// waits starts to wait for what held says, and returns where the end is told.
func (r *replica) waits(ctx context.Context, c Claim, held Claimed) <-chan Waited {
	out := make(chan Waited, 1)
	go func() { out <- r.Wait(ctx, c, held) }()
	return out
}

// waiting is what the tests of waiting begin with: a has the lease, b waits for it.
func waiting(
	t *testing.T, dial func() *goredis.Client, c Claim, run bool,
) (a, b *replica, l *Lease, end <-chan Waited) {
	t.Helper()
	a, b = join(t, dial(), "a", nil), join(t, dial(), "b", nil)
	if run {
		b.run(t)
		synctest.Wait()
	}
	l = a.granted(t, c)
	end = b.waits(t.Context(), c, b.wants(t, c, Held))
	synctest.Wait()
	return a, b, l, end
}

func TestWaitEndsAtOnce(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		end  func(t *testing.T, a *replica, l *Lease, c Claim)
		want State
	}{
		{"commit", func(t *testing.T, a *replica, l *Lease, c Claim) { a.commits(t, l, a.answer(c, "x")) }, Found},
		{"stale on arrival", func(t *testing.T, a *replica, l *Lease, c Claim) {
			e := a.answer(c, "x")
			e.Lifetime, e.IfError = 0, time.Minute
			a.commits(t, l, e)
		}, Found},
		{"never without validation", func(t *testing.T, a *replica, l *Lease, c Claim) {
			e := a.answer(c, "x")
			e.ValidateAlways = true
			a.commits(t, l, e)
		}, Free},
		{"of no use once it is there", func(t *testing.T, a *replica, l *Lease, c Claim) {
			e := a.answer(c, "x")
			e.Lifetime = 0
			a.commits(t, l, e)
		}, Apart},
		{"another Vary", func(t *testing.T, a *replica, l *Lease, _ Claim) {
			a.commits(t, l, a.answer(varying("/", "gzip"), "x"))
		}, VaryChanged},
		{"uncacheable", func(t *testing.T, a *replica, l *Lease, _ Claim) { a.settles(t, l, Uncacheable) }, Apart},
		{"failed", func(t *testing.T, a *replica, l *Lease, _ Claim) { a.settles(t, l, FetchFailed) }, Failed},
		{"released", func(t *testing.T, a *replica, l *Lease, _ Claim) { a.settles(t, l, Release) }, Free},
		{"stored by another", func(t *testing.T, a *replica, _ *Lease, c Claim) {
			if err := a.Put(t.Context(), a.answer(c, "x"), 16, time.Now()); err != nil {
				t.Error(err)
			}
		}, Found},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, _ *miniredis.Miniredis, dial func() *goredis.Client) {
				claim := claimOf("/")
				a, b, l, end := waiting(t, dial, claim, true)
				test.end(t, a, l, claim)
				began := time.Now()
				got := <-end
				if got.State != test.want {
					t.Errorf("waiting ended with %v (%v), want %v", got.State, got.Err, test.want)
				}
				if got.State == Found && content(got.Entry) != "x" {
					t.Errorf("found %q", content(got.Entry))
				}
				if took := time.Since(began); took > 0 {
					t.Errorf("it took %v: not woken", took)
				}
				if n := b.Fleet.Stats().Waiting; n != 0 {
					t.Errorf("%d still wait", n)
				}
				l.end()
			})
		})
	}
}

func (r *replica) settles(t *testing.T, l *Lease, how Settlement) {
	t.Helper()
	if err := r.Settle(t.Context(), l, how); err != nil {
		t.Error(err)
	}
}

// TestWaitEndsWithoutWakeUps: the net below finds everything within a second.
func TestWaitEndsWithoutWakeUps(t *testing.T) {
	t.Parallel()
	for how, want := range map[Settlement]State{Release: Free, Uncacheable: Apart, FetchFailed: Failed, 99: Found} {
		t.Run(want.String(), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, _ *miniredis.Miniredis, dial func() *goredis.Client) {
				claim := claimOf("/")
				a, b, l, end := waiting(t, dial, claim, false)
				if how == 99 {
					a.commits(t, l, a.answer(claim, "x"))
				} else {
					a.settles(t, l, how)
				}
				began := time.Now()
				if got := <-end; got.State != want {
					t.Errorf("waiting ended with %v (%v), want %v", got.State, got.Err, want)
				}
				if took := time.Since(began); took > maxLook {
					t.Errorf("it took %v", took)
				}
				if looks := b.Fleet.Stats().Looks; looks == 0 || looks > 10 {
					t.Errorf("looked %d times", looks)
				}
			})
		})
	}
}

// TestDeadOwnerIsNoticedWhenItsLeaseEnds: nobody says anything when a process dies
// (cases.md 27).
func TestDeadOwnerIsNoticedWhenItsLeaseEnds(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *miniredis.Miniredis, dial func() *goredis.Client) {
		claim := claimOf("/")
		began := time.Now()
		_, b, l, end := waiting(t, dial, claim, true)
		l.end()
		if got := <-end; got.State != Free {
			t.Fatalf("waiting ended with %v (%v)", got.State, got.Err)
		}
		if took := time.Since(began); took < DefaultLeaseLife || took > DefaultLeaseLife+100*time.Millisecond {
			t.Errorf("noticed after %v, the lease lived for %v", took, DefaultLeaseLife)
		}
		b.granted(t, claim).end()
	})
}

// TestWaitFollowsTheNextFetch: of several who wait one fetches, the others wait on.
func TestWaitFollowsTheNextFetch(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *miniredis.Miniredis, dial func() *goredis.Client) {
		claim := claimOf("/")
		_, b, l, endB := waiting(t, dial, claim, true)
		c := join(t, dial(), "c", nil)
		c.run(t)
		endC := c.waits(t.Context(), claim, c.wants(t, claim, Held))
		synctest.Wait()
		l.end()
		first, other, rest := b, c, endC
		select {
		case <-endB:
		case <-endC:
			first, other, rest = c, b, endB
		}
		next := first.granted(t, claim)
		synctest.Wait()
		first.commits(t, next, first.answer(claim, "second"))
		got := <-rest
		if got.State == Free { // it looked just before the other claimed
			got = Waited{State: Found, Entry: other.wants(t, claim, Found).Entry}
		}
		if got.State != Found || content(got.Entry) != "second" {
			t.Errorf("waiting ended with %v, %q", got.State, content(got.Entry))
		}
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *miniredis.Miniredis, dial func() *goredis.Client) {
		a, b := join(t, dial(), "a", nil), join(t, dial(), "b", nil)
		l := a.granted(t, claimOf("/"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if got := b.Wait(ctx, claimOf("/"), b.wants(t, claimOf("/"), Held)); got.State != Held {
			t.Errorf("waiting ended with %v (%v), want held", got.State, got.Err)
		}
		l.end()
	})
}

// TestWakeUpsOfOtherVariantsDoNotCount: that the fetch of one variant failed says
// nothing of another.
func TestWakeUpsOfOtherVariantsDoNotCount(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *miniredis.Miniredis, dial func() *goredis.Client) {
		a, b := join(t, dial(), "a", nil), join(t, dial(), "b", nil)
		b.run(t)
		gzip, br := a.granted(t, varying("/", "gzip")), a.granted(t, varying("/", "br"))
		end := b.waits(t.Context(), varying("/", "gzip"), b.wants(t, varying("/", "gzip"), Held))
		endBr := b.waits(t.Context(), varying("/", "br"), b.wants(t, varying("/", "br"), Held))
		synctest.Wait()
		a.settles(t, br, FetchFailed)
		if got := <-endBr; got.State != Failed {
			t.Errorf("br: %v", got.State)
		}
		synctest.Wait()
		a.commits(t, gzip, a.answer(varying("/", "gzip"), "zipped"))
		if got := <-end; got.State != Found {
			t.Errorf("gzip: %v", got.State)
		}
	})
}

// TestFollowersShareNoFailureOfAnEarlierFetch: word of it may come late.
func TestFollowersShareNoFailureOfAnEarlierFetch(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, m *miniredis.Miniredis, dial func() *goredis.Client) {
		claim := claimOf("/")
		a, _, l, end := waiting(t, dial, claim, true)
		m.Publish(l.name.Channel(), "f "+l.name.String()+" - 1")
		m.Publish(l.name.Channel(), "nonsense")
		synctest.Wait()
		a.commits(t, l, a.answer(claim, "x"))
		if got := <-end; got.State != Found || got.Entry.Body.Len() != 1 {
			t.Errorf("waiting ended with %v", got.State)
		}
	})
}

package fleet

import (
	"errors"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"
)

// closed reports whether c is closed.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// TestLeaseLivesWhileItsFetchDoes: cases.md 29 (a).
func TestLeaseLivesWhileItsFetchDoes(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *miniredis.Miniredis, dial func() *goredis.Client) {
		a, b := join(t, dial(), "a", nil), join(t, dial(), "b", nil)
		claim := claimOf("/")
		l := a.granted(t, claim)
		for range 40 { // a body that takes 20 s
			l.Progress()
			time.Sleep(500 * time.Millisecond)
			b.refreshes(t)
			b.wants(t, claim, Held)
		}
		if closed(l.Lost()) {
			t.Error("the lease is lost")
		}
		a.commits(t, l, a.answer(claim, "slow"))
		b.wants(t, claim, Found)
	})
}

// refreshes lets a member that is not run stay in touch.
func (r *replica) refreshes(tb testing.TB) {
	tb.Helper()
	if err := r.sync(tb.Context()); err != nil {
		tb.Fatal(err)
	}
}

func TestLeaseWaitsForTheFirstByte(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *miniredis.Miniredis, dial func() *goredis.Client) {
		a := join(t, dial(), "a", func(o *Options) { o.FirstByte = 10 * time.Second })
		b := join(t, dial(), "b", nil)
		claim := claimOf("/")
		l := a.granted(t, claim)
		time.Sleep(10 * time.Second)
		b.wants(t, claim, Held)
		time.Sleep(DefaultLeaseLife + time.Millisecond)
		if !closed(l.Lost()) {
			t.Error("a fetch without a first byte still has its lease")
		}
		b.granted(t, claim)
	})
}

func TestLeaseEndsWithoutProgress(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *miniredis.Miniredis, dial func() *goredis.Client) {
		a, b := join(t, dial(), "a", nil), join(t, dial(), "b", nil)
		claim := claimOf("/")
		l := a.granted(t, claim)
		l.Progress()
		time.Sleep(DefaultLeaseLife/3 + DefaultLeaseLife + time.Millisecond)
		if !closed(l.Lost()) {
			t.Error("a fetch that stands still has its lease")
		}
		b.granted(t, claim)
	})
}

// TestSleepingOwnerHarmsNobody: cases.md 29 (b), for an owner that does not renew
// as one that is stopped does not. TestStoppedOwnerHarmsNobody stops a process.
func TestSleepingOwnerHarmsNobody(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *miniredis.Miniredis, dial func() *goredis.Client) {
		a, b, third := join(t, dial(), "a", nil), join(t, dial(), "b", nil), join(t, dial(), "c", nil)
		claim := claimOf("/")
		sleeper := a.granted(t, claim)
		sleeper.timer.Stop()
		old := a.answer(claim, "old")
		time.Sleep(DefaultLeaseLife + time.Millisecond)

		l := b.granted(t, claim)
		if l.Token() <= sleeper.Token() {
			t.Fatalf("token %d after %d", l.Token(), sleeper.Token())
		}
		if err := sleeper.renew(); !errors.Is(err, errLost) {
			t.Errorf("renewal of a lost lease: %v", err)
		}
		if kept, err := a.Fleet.Commit(t.Context(), sleeper, old, nil); !errors.Is(err, ErrFenced) || kept != old {
			t.Errorf("commit of a lost lease: %v", err)
		}
		third.wants(t, claim, Held) // what the sleeper did, did not touch the lease of b
		b.commits(t, l, b.answer(claim, "new"))
		if got := third.wants(t, claim, Found); content(got.Entry) != "new" {
			t.Errorf("found %q, want new", content(got.Entry))
		}

		late := a.granted(t, Claim{Key: claim.Key, Policy: claim.Policy, Known: third.wants(t, claim, Found).Entry})
		late.timer.Stop()
		time.Sleep(DefaultLeaseLife + time.Millisecond)
		later := b.granted(t, Claim{Key: claim.Key, Policy: claim.Policy, Known: third.wants(t, claim, Found).Entry})
		b.commits(t, later, b.answer(claim, "newest"))
		if err := a.Settle(t.Context(), late, Uncacheable); !errors.Is(err, ErrFenced) {
			t.Errorf("settling a lost lease: %v", err)
		}
		if got := third.wants(t, claim, Found); content(got.Entry) != "newest" {
			t.Errorf("found %q, want newest", content(got.Entry))
		}
	})
}

func TestOwnerThatSleptAndIsStillTheNewestCommits(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *miniredis.Miniredis, dial func() *goredis.Client) {
		a, b := join(t, dial(), "a", nil), join(t, dial(), "b", nil)
		claim := claimOf("/")
		l := a.granted(t, claim)
		e := a.answer(claim, "slept")
		l.timer.Stop()
		time.Sleep(30 * time.Second)
		a.commits(t, l, e)
		b.refreshes(t)
		got := b.wants(t, claim, Found)
		if age := got.Entry.Age(time.Now()); age < 30*time.Second || age > 31*time.Second {
			t.Errorf("its age is %v, want 30s", age)
		}
	})
}

func TestLostTellsOfARedisThatIsAway(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, m *miniredis.Miniredis, dial func() *goredis.Client) {
		a := join(t, dial(), "a", nil)
		l := a.granted(t, claimOf("/"))
		m.SetError("LOADING Redis is loading the dataset in memory")
		time.Sleep(DefaultLeaseLife - time.Millisecond)
		l.Progress()
		if closed(l.Lost()) {
			t.Error("lost before its time")
		}
		time.Sleep(2 * time.Millisecond)
		if !closed(l.Lost()) {
			t.Error("not lost although nobody could renew it")
		}
		m.SetError("")
		if err := l.Release(t.Context()); !errors.Is(err, ErrOver) {
			t.Errorf("Release: %v, want ErrOver", err)
		}
	})
}

func TestLeaseEndsOnce(t *testing.T) {
	t.Parallel()
	_, c := mini(t)
	a := join(t, c, "a", nil)
	claim := claimOf("/")
	l := a.granted(t, claim)
	a.commits(t, l, a.answer(claim, "1"))
	if _, err := a.Fleet.Commit(t.Context(), l, a.answer(claim, "2"), nil); !errors.Is(err, ErrOver) {
		t.Errorf("a second Commit: %v", err)
	}
	if err := l.Release(t.Context()); !errors.Is(err, ErrOver) {
		t.Errorf("Release after Commit: %v", err)
	}
	// Should a commit be sent twice, the second does nothing.
	l.mu.Lock()
	l.timer = time.NewTimer(time.Hour)
	l.mu.Unlock()
	if _, err := a.Fleet.Commit(t.Context(), l, a.answer(claim, "3"), nil); !errors.Is(err, ErrFenced) {
		t.Errorf("a second Commit under one token: %v", err)
	}
	if got := a.wants(t, claim, Found); content(got.Entry) != "1" {
		t.Errorf("found %q", content(got.Entry))
	}
	l.mu.Lock()
	l.timer = time.NewTimer(time.Hour)
	l.mu.Unlock()
	if _, err := a.Fleet.Commit(t.Context(), l, a.answer(varying("/", "gzip"), "4"), nil); !errors.Is(err, ErrFenced) {
		t.Errorf("a second Commit under one token, of another variant: %v", err)
	}
}

func TestSettlements(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *miniredis.Miniredis, dial func() *goredis.Client) {
		a, b := join(t, dial(), "a", nil), join(t, dial(), "b", nil)
		for how, then := range map[Settlement]State{Release: Granted, FetchFailed: Granted, Uncacheable: Apart} {
			claim := claimOf("/" + then.String() + string(rune('0'+how)))
			if err := a.Settle(t.Context(), a.granted(t, claim), how); err != nil {
				t.Fatal(err)
			}
			b.wants(t, claim, then)
		}
		claim := claimOf("/mark")
		if err := a.Settle(t.Context(), a.granted(t, claim), Uncacheable); err != nil {
			t.Fatal(err)
		}
		time.Sleep(DefaultMark + time.Millisecond)
		b.refreshes(t)
		b.granted(t, claim)
	})
}

// TestAcquireTwiceIsOneGrant: the answer to a claim may get lost; claiming again as
// the same owner gives the same lease (cases.md 29 (d): else it frees itself).
func TestAcquireTwiceIsOneGrant(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *miniredis.Miniredis, dial func() *goredis.Client) {
		a, b := join(t, dial(), "a", nil), join(t, dial(), "b", nil)
		c := claimOf("/")
		first := a.claim(t.Context(), &c, "a/1", 0)
		second := a.claim(t.Context(), &c, "a/1", 0)
		if first.State != Granted || second.State != Granted || first.Lease.Token() != second.Lease.Token() {
			t.Fatalf("claims of one owner: %v, %v", first.State, second.State)
		}
		first.Lease.timer.Stop()
		second.Lease.timer.Stop()
		time.Sleep(DefaultLeaseLife + time.Millisecond)
		b.refreshes(t)
		b.granted(t, c)
	})
}

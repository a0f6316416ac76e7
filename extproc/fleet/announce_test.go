package fleet

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	goredis "github.com/redis/go-redis/v9"
)

// TestAnnounceReachesAllBeforeItReturns: who asks another replica afterwards gets
// nothing from before.
func TestAnnounceReachesAllBeforeItReturns(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *miniredis.Miniredis, dial func() *goredis.Client) {
		a, b := join(t, dial(), "a", nil), join(t, dial(), "b", nil)
		b.run(t)
		synctest.Wait()
		time.Sleep(complete)
		before := b.stamps.Position()
		receipt, err := a.Announce(t.Context(),
			Invalidation{Kind: ByURL, Namespace: "shop", Value: urlOf("/1")},
			Invalidation{Kind: ByURL, Namespace: "shop", Value: urlOf("/2")})
		if err != nil || receipt.Replicas != 2 || receipt.Confirmed != 2 {
			t.Fatalf("%+v, %v; want 2 of 2", receipt, err)
		}
		for _, path := range []string{"/1", "/2"} {
			if got := b.stamps.Check(Covered{Birth: before, URI: urlOf(path), Namespace: "shop"}); got != Refused {
				t.Errorf("%s: b says %v after the announcement was confirmed", path, got)
			}
		}
		join(t, dial(), "c", nil) // not run: hears nothing
		receipt, err = a.Announce(t.Context(), Invalidation{Kind: ByAll})
		if err != nil || receipt.Confirmed != 2 || receipt.Took < announceLimit || receipt.Took > 2*announceLimit {
			t.Errorf("%+v, %v; want to wait %v for c, and no longer", receipt, err, announceLimit)
		}
	})
}

// TestUnknownIsNotConfirmed: when Redis took the stamp and then fell silent, nobody
// is claimed to have heard of it.
func TestUnknownIsNotConfirmed(t *testing.T) {
	t.Parallel()
	_, client := mini(t)
	a := join(t, client, "a", nil)
	position, history, err := a.tell(t.Context(), []Invalidation{{Kind: ByAll}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := a.confirm(ctx, position, history); err == nil {
		t.Errorf("%+v without an error", r)
	}
}

// TestLostIsToldAgain: Redis loses everything after it took an invalidation and before others have heard of it.
func TestLostIsToldAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, m *miniredis.Miniredis, dial func() *goredis.Client) {
		a, b := join(t, dial(), "a", nil), join(t, dial(), "b", nil)
		a.refreshes(t)
		b.refreshes(t)
		birth := b.stamps.Position()
		done := make(chan struct{})
		go func() {
			defer close(done)
			time.Sleep(100 * time.Millisecond)
			m.FlushAll()
			time.Sleep(100 * time.Millisecond)
			b.refreshes(t) // the new history, which knows nothing
		}()
		r, err := a.Invalidate(t.Context(), Invalidation{Kind: ByURL, Namespace: "shop", Value: urlOf("/x"), Mode: Hard})
		<-done
		if err == nil && r.Confirmed == r.Replicas && b.judges("/x", birth) != Refused {
			t.Errorf("%+v, but b has not heard of it", r)
		}
		b.refreshes(t)
		if got := b.judges("/x", birth); got != Refused {
			t.Errorf("verdict %d: the invalidation was lost", got)
		}
	})
}

func TestReplicas(t *testing.T) {
	t.Parallel()
	m, client := mini(t)
	a := join(t, client, "a", nil)
	join(t, dial(t, m.Addr()), "b", nil)
	got, err := a.Replicas(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, applied := a.knows()
	want := []Replica{{Name: "a", Applied: applied, Current: true}, {Name: "b", Applied: applied, Current: true}}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Replica{}, "SilentFor")); diff != "" {
		t.Errorf("replicas (-want +got):\n%s", diff)
	}
	for silent, want := range map[time.Duration]bool{0: true, DefaultSilence: true, DefaultSilence + 1: false} {
		if a.Alive(&Replica{SilentFor: silent}) != want {
			t.Errorf("silent for %v: alive is not %v", silent, want)
		}
	}
}

// TestHeldLeasesAreCounted, whichever way they end.
func TestHeldLeasesAreCounted(t *testing.T) {
	t.Parallel()
	_, client := mini(t)
	a := join(t, client, "a", nil)
	held := func(want int) {
		t.Helper()
		if got := a.Fleet.Stats().Held; got != want {
			t.Errorf("%d leases are held, want %d", got, want)
		}
	}
	settled, committed := a.granted(t, claimOf("/1")), a.granted(t, claimOf("/2"))
	held(2)
	if err := a.Settle(t.Context(), settled, Release); err != nil {
		t.Fatal(err)
	}
	held(1)
	a.commits(t, committed, a.answer(claimOf("/2"), "x"))
	_ = a.Settle(t.Context(), committed, Release)
	held(0)
	l := a.granted(t, claimOf("/3"))
	l.Progress()
	if err := client.FlushAll(t.Context()).Err(); err != nil { // another owns it now
		t.Fatal(err)
	}
	l.tick()
	held(0)
}

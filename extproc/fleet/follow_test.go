package fleet

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"
)

// replidLua is a replication history that a test sets.
const replidLua = "local function replication() return redis.call('GET', 'test:replid') or '' end\n"

func withReplid(o *Options) { o.replicationLua = replidLua }

func urlOf(path string) string { return "https://example.com" + path }

func (r *replica) invalidates(tb testing.TB, path string, mode Mode) uint64 {
	tb.Helper()
	at, err := r.Stamp(tb.Context(), Invalidation{Kind: ByURL, Namespace: "shop", Value: urlOf(path), Mode: mode})
	if err != nil {
		tb.Fatalf("%s: Stamp: %v", r.opts.Replica, err)
	}
	return at
}

// judges returns what the replica says of an entry for path that was born at birth.
func (r *replica) judges(path string, birth uint64) Verdict {
	return r.stamps.Check(Covered{
		Birth: birth, URI: urlOf(path), Host: "example.com", Policy: "shop/catalog", Namespace: "shop",
	})
}

func TestInvalidationHoldsHereAtOnce(t *testing.T) {
	t.Parallel()
	_, c := mini(t)
	a := join(t, c, "a", nil)
	for i := range 5 {
		birth := a.stamps.Position()
		a.invalidates(t, "/", Hard)
		if got := a.judges("/", birth); got != Refused {
			t.Errorf("round %d: an entry born before has verdict %d", i, got)
		}
		if got := a.judges("/", a.stamps.Position()); got != Valid {
			t.Errorf("round %d: an entry born after has verdict %d: fetches cannot be cached", i, got)
		}
	}
}

// TestInvalidationWhileBehind: of a replica that has not heard what others did.
func TestInvalidationWhileBehind(t *testing.T) {
	t.Parallel()
	m, c := mini(t)
	a, b := join(t, c, "a", nil), join(t, c, "b", nil)
	birth := b.stamps.Position()
	for i := range 3 {
		a.invalidates(t, fmt.Sprint("/", i), Hard)
	}
	b.invalidates(t, "/b", Hard) // brings what a did along
	for _, path := range []string{"/0", "/1", "/2", "/b"} {
		if got := b.judges(path, birth); got != Refused {
			t.Errorf("%s: verdict %d", path, got)
		}
	}
	a.invalidates(t, "/3", Hard)
	m.Del("weir:{stamps}:log") // a gap
	birth = b.stamps.Position()
	b.invalidates(t, "/b", Hard)
	if got := b.judges("/b", birth); got != Refused {
		t.Errorf("our own: verdict %d", got)
	}
	b.refreshes(t)
	if got := b.judges("/3", birth); got != Refused {
		t.Errorf("what was in the gap: verdict %d", got)
	}
}

func TestReplicasFollowAndConfirm(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *miniredis.Miniredis, dial func() *goredis.Client) {
		a, b, c := join(t, dial(), "a", nil), join(t, dial(), "b", nil), join(t, dial(), "c", nil)
		a.run(t)
		b.run(t)
		c.run(t)
		synctest.Wait()
		time.Sleep(complete)
		birth := b.stamps.Position()
		for range 100 {
			r, err := a.Invalidate(t.Context(), Invalidation{Kind: ByTag, Namespace: "shop", Value: "red", Mode: Hard})
			if err != nil || r.Confirmed != 3 || r.Replicas != 3 || r.Took > 50*time.Millisecond || r.Position == 0 {
				t.Fatalf("receipt %+v, %v; want 3 of 3", r, err)
			}
		}
		if got := b.stamps.Check(Covered{Birth: birth, Namespace: "shop", Tags: []string{"red"}}); got != Refused {
			t.Errorf("verdict %d", got)
		}
	})
}

func TestSilentReplicasAreNamed(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *miniredis.Miniredis, dial func() *goredis.Client) {
		a := join(t, dial(), "a", func(o *Options) { o.Confirm = time.Second })
		b := join(t, dial(), "b", nil)
		join(t, dial(), "c", nil) // not run: hears nothing
		a.run(t)
		b.run(t)
		synctest.Wait()
		i := Invalidation{Kind: ByAll, Mode: Soft}
		r, err := a.Invalidate(t.Context(), i)
		if err != nil || r.Confirmed != 2 || r.Replicas != 3 || len(r.Silent) != 1 || r.Silent[0] != "c" {
			t.Errorf("receipt %+v, %v; want 2 of 3, c silent", r, err)
		}
		if r.Took < time.Second {
			t.Errorf("c was given %v", r.Took)
		}
		time.Sleep(DefaultSilence + time.Second)
		if r, err = a.Invalidate(t.Context(), i); err != nil || r.Replicas != 3 || r.Took > 100*time.Millisecond {
			t.Errorf("receipt %+v, %v; want to hear of c, but not to wait for it", r, err)
		}
		time.Sleep(forgetAfter)
		if r, err = a.Invalidate(t.Context(), i); err != nil || r.Replicas != 2 || r.Confirmed != 2 {
			t.Errorf("receipt %+v, %v; want c forgotten", r, err)
		}
	})
}

// TestReplicasAreNotForgottenWithTheList: Redis loses everything while a replica is cut off. Whoever finds that, it is
// still counted, until it is heard of again.
func TestReplicasAreNotForgottenWithTheList(t *testing.T) {
	t.Parallel()
	for name, finds := range map[string]func(t *testing.T, survivor, fresh *replica){
		"by a survivor's beat":         func(t *testing.T, a, _ *replica) { t.Helper(); a.refreshes(t) },
		"by a survivor's invalidation": func(t *testing.T, a, _ *replica) { t.Helper(); a.invalidates(t, "/x", Hard) },
		"by one that is new": func(t *testing.T, a, fresh *replica) {
			t.Helper()
			fresh.refreshes(t)
			a.refreshes(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, c := mini(t)
			a, cut := join(t, c, "a", nil), join(t, c, "cut-off", nil)
			cut.refreshes(t)
			a.refreshes(t)
			fresh := join(t, c, "fresh", nil)
			m.FlushAll()
			finds(t, a, fresh)
			fresh.refreshes(t)
			for _, r := range []*replica{a, fresh} {
				got, err := r.Invalidate(t.Context(), Invalidation{Kind: ByAll, Mode: Hard})
				if err != nil || !slices.Contains(got.Silent, "cut-off") || got.Replicas != 3 {
					t.Errorf("%s: %+v, %v; want cut-off to be silent, of 3", r.opts.Replica, got, err)
				}
			}
			cut.refreshes(t)
			if list, err := a.Replicas(t.Context()); err != nil || len(list) != 3 {
				t.Errorf("%v, %v", list, err)
			}
		})
	}
}

// TestYoungHistoryIsWaitedFor: right after Redis lost the list of replicas nobody can know who is missing.
func TestYoungHistoryIsWaitedFor(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *miniredis.Miniredis, dial func() *goredis.Client) {
		a := join(t, dial(), "a", nil)
		a.run(t)
		synctest.Wait()
		i := Invalidation{Kind: ByAll, Mode: Hard}
		if r, err := a.Invalidate(t.Context(), i); err != nil || r.Took < complete/2 {
			t.Errorf("%+v, %v; want to have waited for others", r, err)
		}
		time.Sleep(complete)
		if r, err := a.Invalidate(t.Context(), i); err != nil || r.Took > 50*time.Millisecond {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func TestReplicasThatEndAreNotCounted(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *miniredis.Miniredis, dial func() *goredis.Client) {
		a := join(t, dial(), "a", nil)
		stop := join(t, dial(), "b", nil).run(t)
		synctest.Wait()
		stop()
		if r, err := a.Invalidate(t.Context(), Invalidation{Kind: ByAll}); err != nil || r.Replicas != 1 {
			t.Errorf("receipt %+v, %v; want 1 of 1", r, err)
		}
	})
}

// TestStreamThatWasTrimmed: a replica that was cut off for long reads the set.
func TestStreamThatWasTrimmed(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, m *miniredis.Miniredis, dial func() *goredis.Client) {
		a, b := join(t, dial(), "a", nil), join(t, dial(), "b", nil)
		birth := b.stamps.Position()
		const n = 2*pageSize + 500
		for i := 0; i < n; i += 250 {
			var list []Invalidation
			for j := range 250 {
				list = append(list, Invalidation{Kind: ByURL, Namespace: "shop", Value: urlOf(fmt.Sprint("/", i+j))})
			}
			if _, err := a.Stamp(t.Context(), list...); err != nil {
				t.Fatal(err)
			}
		}
		m.Del("weir:{stamps}:log")
		a.invalidates(t, "/last", Soft)
		beats := b.Fleet.Stats().Beats
		b.run(t)
		synctest.Wait()
		for i := range n {
			if got := b.judges(fmt.Sprint("/", i), birth); got != Refused {
				t.Fatalf("stamp %d: verdict %d", i, got)
			}
		}
		if got := b.judges("/last", birth); got != SoftStale {
			t.Errorf("/last: verdict %d", got)
		}
		if got := b.Fleet.Stats().Beats - beats; got > 5 {
			t.Errorf("catching up took %d round trips", got)
		}
		if b.stamps.Position() != a.stamps.Position() {
			t.Errorf("positions differ")
		}
	})
}

// TestFoldedStamps: what Redis has forgotten by name it remembers as a floor.
func TestFoldedStamps(t *testing.T) {
	t.Parallel()
	_, c := mini(t)
	a := join(t, c, "a", func(o *Options) { o.MaxStamps = 10 })
	b := join(t, c, "b", nil)
	birth := b.stamps.Position()
	for i := range 30 {
		a.invalidates(t, fmt.Sprint("/", i), Hard)
	}
	if n := c.ZCard(t.Context(), "weir:{stamps}:set").Val(); n > 10 {
		t.Errorf("%d stamps in Redis, want at most 10", n)
	}
	late := join(t, c, "late", nil)
	for _, r := range []*replica{b, late} {
		r.refreshes(t)
		for i := range 30 {
			if got := r.judges(fmt.Sprint("/", i), birth); got != Refused {
				t.Errorf("%s: stamp %d: verdict %d", r.opts.Replica, i, got)
			}
		}
	}
}

func TestNewHistory(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*miniredis.Miniredis){
		"failover": func(m *miniredis.Miniredis) { _ = m.Set("test:replid", "ffff") },
		"flush":    func(m *miniredis.Miniredis) { m.FlushAll() },
		"set lost": func(m *miniredis.Miniredis) { m.Del("weir:{stamps}:set") },
		"lost positions": func(m *miniredis.Miniredis) { // an old copy, with a clock far behind
			m.HSet("weir:{stamps}", "position", "1000")
			m.SetTime(time.UnixMicro(5000))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, c := mini(t)
			if err := m.Set("test:replid", "aaaa"); err != nil {
				t.Fatal(err)
			}
			a, b := join(t, c, "a", withReplid), join(t, c, "b", withReplid)
			a.invalidates(t, "/x", Hard)
			b.refreshes(t)
			birth := b.stamps.Position()
			change(m)
			a.refreshes(t)
			at := a.invalidates(t, "/y", Hard)
			b.refreshes(t)
			for _, r := range []*replica{a, b} {
				if got := r.judges("/x", birth); got != SoftStale {
					t.Errorf("%s: an entry of the old history has verdict %d, want stale", r.opts.Replica, got)
				}
				if got := r.judges("/y", birth); got != Refused {
					t.Errorf("%s: an entry invalidated since has verdict %d, want refused", r.opts.Replica, got)
				}
				if got := r.judges("/x", r.stamps.Position()); got != Valid {
					t.Errorf("%s: an entry of the new history has verdict %d", r.opts.Replica, got)
				}
			}
			if local(at) <= birth {
				t.Errorf("position %d after birth %d", local(at), birth)
			}
			if n := b.Fleet.Stats().Histories; n != 1 {
				t.Errorf("%d new histories were noted", n)
			}
			late := join(t, c, "late", withReplid)
			if got := late.judges("/y", birth); got != Refused {
				t.Errorf("who starts now: verdict %d", got)
			}
		})
	}
}

// TestHistoryThatWentBack: Redis lost the last stamps, and gives positions again
// that a replica has seen before. It reads all of them.
func TestHistoryThatWentBack(t *testing.T) {
	t.Parallel()
	m, c := mini(t)
	setReplid := func(id string) {
		if err := m.Set("test:replid", id); err != nil {
			t.Fatal(err)
		}
	}
	setReplid("aaaa")
	a, b := join(t, c, "a", withReplid), join(t, c, "b", withReplid)
	_, at := a.knows()
	birth := a.stamps.Position()
	for range 10 {
		b.invalidates(t, "/x", Hard)
	}
	m.SetTime(time.UnixMicro(int64(at)))
	m.HSet("weir:{stamps}", "position", fmt.Sprint(at))
	setReplid("bbbb")
	a.refreshes(t)
	if y := a.invalidates(t, "/y", Hard); local(y) >= b.stamps.Position() {
		t.Fatalf("position %d, and b has seen %d", y, b.stamps.Position()>>localBits)
	}
	b.refreshes(t)
	if got := b.judges("/y", birth); got != Refused {
		t.Errorf("what was invalidated at a position given twice has verdict %d", got)
	}
	if got := b.judges("/z", b.stamps.Position()-1); got != SoftStale {
		t.Errorf("what b had has verdict %d, want stale", got)
	}
}

// TestLocalStampCoversWhatOthersFetched: an entry may come from a replica that was
// ahead of the one that invalidates it.
func TestLocalStampCoversWhatOthersFetched(t *testing.T) {
	t.Parallel()
	server, c := mini(t)
	l := &link{}
	own := dial(t, server.Addr())
	own.AddHook(l)
	a, b := join(t, c, "a", nil), join(t, own, "b", nil)
	a.invalidates(t, "/other", Hard) // a is ahead
	claim := claimOf("/")
	a.commits(t, a.granted(t, claim), a.answer(claim, "x"))
	e := b.wants(t, claim, Found).Entry
	if e.Birth <= b.stamps.Position() {
		t.Fatalf("born at %d, and b is at %d", e.Birth, b.stamps.Position())
	}
	epoch, ok := b.Reading()
	if !ok {
		t.Fatal("b is not in touch")
	}
	l.state.Store(linkDown)
	if _, err := b.Stamp(t.Context(), Invalidation{Kind: ByURL, Namespace: "shop", Value: urlOf("/")}); err == nil {
		t.Fatal("the fleet was told")
	}
	if got := b.judges("/", e.Birth); got != Refused {
		t.Errorf("verdict %d", got)
	}
	if got := b.judges("/", b.stamps.Position()); got != Valid {
		t.Errorf("what is fetched from now on has verdict %d", got)
	}
	if b.Read(epoch, e) {
		t.Error("what was being read meanwhile is used")
	}
	if _, ok := b.Reading(); ok {
		t.Error("b reads what it cannot judge")
	}
}

// TestBirthsAreToldWithoutWhatNobodyElseKnows: what a replica stamped by itself
// says nothing of what others did.
func TestBirthsAreToldWithoutWhatNobodyElseKnows(t *testing.T) {
	t.Parallel()
	_, c := mini(t)
	a, b := join(t, c, "a", nil), join(t, c, "b", nil)
	claim := claimOf("/")
	l := a.granted(t, claim)
	a.stamps.Add(ByURL, "shop", urlOf("/other"), Hard, time.Now())
	e := a.answer(claim, "x")
	if kept := a.commits(t, l, e); kept.Birth != e.Birth || e.Birth == Shared(e.Birth) {
		t.Errorf("kept here with birth %d, want %d", kept.Birth, e.Birth)
	}
	if got := b.wants(t, claim, Found).Entry.Birth; got != Shared(e.Birth) {
		t.Errorf("told with birth %d, want %d", got, Shared(e.Birth))
	}
}

func (r *replica) goesOnAlone(t *testing.T) {
	t.Helper()
	if r.InTouch() || !r.CaughtUp(time.Now()) {
		t.Errorf("%s: in touch %v, caught up %v; want to go on alone", r.opts.Replica, r.InTouch(), r.CaughtUp(time.Now()))
	}
	if got := r.Acquire(t.Context(), claimOf("/")); got.State != Unavailable || !errors.Is(got.Err, ErrAway) {
		t.Errorf("a claim is %v (%v)", got.State, got.Err)
	}
}

// TestOutage: what is invalidated while Redis is away holds here, and is told.
func TestOutage(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, m *miniredis.Miniredis, dial func() *goredis.Client) {
		a, b := join(t, dial(), "a", nil), join(t, dial(), "b", nil)
		a.run(t)
		b.run(t)
		synctest.Wait()
		birth := a.stamps.Position()

		m.SetError("ERR away")
		time.Sleep(2 * time.Second)
		a.goesOnAlone(t)
		b.goesOnAlone(t)
		r, err := a.Invalidate(t.Context(), Invalidation{Kind: ByURL, Namespace: "shop", Value: urlOf("/")})
		if !errors.Is(err, ErrQueued) || !r.Queued || r.Position != 0 || r.Confirmed != 1 {
			t.Errorf("receipt %+v, %v; want it queued", r, err)
		}
		if a.judges("/", birth) != Refused || a.judges("/", a.stamps.Position()) != Valid {
			t.Error("it does not hold here, or for ever")
		}
		during := a.stamps.Position()
		if Shared(during) != birth {
			t.Errorf("a birth during the outage is told others as %d, want %d", Shared(during), birth)
		}

		m.SetError("")
		time.Sleep(2 * time.Second)
		if !a.InTouch() || !b.InTouch() || a.Fleet.Stats().Pending != 0 {
			t.Errorf("not back: %+v", a.Fleet.Stats())
		}
		for _, r := range []*replica{a, b} {
			if got := r.judges("/", birth); got != Refused {
				t.Errorf("%s: verdict %d after the outage", r.opts.Replica, got)
			}
		}
		if s := a.Fleet.Stats(); s.Losses != 1 || s.Queued != 1 {
			t.Errorf("stats %+v", s)
		}
	})
}

func TestManyInvalidationsDuringAnOutage(t *testing.T) {
	t.Parallel()
	m, c := mini(t)
	a, b := join(t, c, "a", nil), join(t, c, "b", nil)
	birth := a.stamps.Position()
	m.SetError("ERR away")
	for i := range maxPending + 10 {
		path := fmt.Sprint("/", i)
		before := a.stamps.Position()
		if _, err := a.Stamp(t.Context(), Invalidation{Kind: ByURL, Value: urlOf(path)}); !errors.Is(err, ErrQueued) {
			t.Fatal(err)
		}
		if got := a.judges(path, before); got != Refused {
			t.Fatalf("invalidation %d does not hold here: verdict %d", i, got)
		}
	}
	if got := a.stamps.Position(); Shared(got) != birth {
		t.Errorf("the position ran from %d to %d, where the fleet may have stamps that are not known here", birth, got)
	}
	if n := a.Fleet.Stats().Pending; n > maxPending {
		t.Errorf("%d pending", n)
	}
	m.SetError("")
	a.refreshes(t)
	b.refreshes(t)
	for _, i := range []int{0, 1, maxPending + 9} {
		if got := b.judges(fmt.Sprint("/", i), birth); got != Refused {
			t.Errorf("invalidation %d was not told: verdict %d", i, got)
		}
	}
	if got := a.judges("/0", a.stamps.Position()); got != Refused { // until it has heard its own
		a.refreshes(t)
	}
	a.refreshes(t)
	if got := a.judges("/0", a.stamps.Position()); got != Valid {
		t.Errorf("fetches cannot be cached after the outage: verdict %d", got)
	}
}

func TestCaughtUp(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, m *miniredis.Miniredis, dial func() *goredis.Client) {
		a := unsynced(t, dial(), "a", nil)
		if a.CaughtUp(time.Now()) || a.InTouch() {
			t.Error("caught up before it heard anything")
		}
		a.refreshes(t)
		if !a.CaughtUp(time.Now()) || !a.InTouch() {
			t.Error("not caught up after it heard all")
		}
		// A process that was stopped: time passed, nothing was asked.
		time.Sleep(DefaultSilence + time.Second)
		if a.CaughtUp(time.Now()) {
			t.Error("caught up after a silence")
		}
		a.refreshes(t)
		if !a.CaughtUp(time.Now()) {
			t.Error("not caught up again")
		}
		// Dead at start: nobody can know.
		m.SetError("ERR away")
		b := unsynced(t, dial(), "b", nil)
		b.run(t)
		time.Sleep(time.Second)
		if !b.CaughtUp(time.Now()) || b.InTouch() {
			t.Error("a process that starts without Redis does not serve")
		}
		m.SetError("")
		time.Sleep(2 * time.Second)
		if !b.InTouch() {
			t.Error("not in touch after Redis came up")
		}
	})
}

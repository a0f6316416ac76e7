package flight

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/store"
)

func TestFirstLeadsOthersFollow(t *testing.T) {
	t.Parallel()
	g := New(Options{})
	lead := mustLead(t, g, "a", plain)
	other := mustLead(t, g, "b", plain)
	w := mustFollow(t, g, "a", plain, time.Second)
	if _, ok := g.TryLead("a", t0); ok {
		t.Error("TryLead leads where somebody does already")
	}
	wantSilence(t, w)
	wantStats(t, g, 2, 1)

	e := entry(plain)
	lead.Publish(e)
	if n := wantKind(t, w, NewsAnswer); n.Entry != e {
		t.Error("the answer is another entry")
	}
	late := mustFollow(t, g, "a", plain, time.Second)
	if n := wantKind(t, late, NewsAnswer); n.Entry != e {
		t.Error("the answer of the late follower is another entry")
	}
	wantStats(t, g, 2, 0)
	e.Body.End()
	lead.Finish()
	mustLead(t, g, "a", plain).Close()
	other.Close()
	wantStats(t, g, 0, 0)
}

func TestTryLeadIsFollowed(t *testing.T) {
	t.Parallel()
	g := New(Options{})
	lead, ok := g.TryLead("a", t0)
	if !ok {
		t.Fatal("TryLead does not lead a free ID")
	}
	w := mustFollow(t, g, "a", plain, time.Second)
	lead.Fail("origin-failed")
	if n := wantKind(t, w, NewsFailed); n.Reason != "origin-failed" {
		t.Errorf("reason = %q", n.Reason)
	}
	wantStats(t, g, 0, 0)
}

func TestMaxWaitersIsExact(t *testing.T) {
	t.Parallel()
	g := New(Options{})
	var waiting atomic.Int64
	lim := Limits{MaxWaiters: 3, Waiters: &waiting}
	join := func(id ID) (Role, *Waiter) {
		role, _, w := g.Join(id, plain, t0, lim, t0)
		return role, w
	}
	leads := map[ID]*Lead{"a": mustLead(t, g, "a", plain), "b": mustLead(t, g, "b", plain)}
	var held []*Waiter
	for i, id := range []ID{"a", "b", "a"} {
		role, w := join(id)
		if role != RoleFollow {
			t.Fatalf("follower %d: %v", i, role)
		}
		held = append(held, w)
	}
	if role, w := join("b"); role != RoleFull || w != nil {
		t.Fatalf("one too many: %v, %v", role, w)
	}
	if role, w := join("c"); role != RoleLead || w != nil {
		t.Errorf("a leader is no waiter: %v", role)
	}
	held[1].Leave()
	held[1].Leave()
	if role, _ := join("b"); role != RoleFollow {
		t.Errorf("after one left: %v", role)
	}
	leads["a"].Publish(entry(plain))
	if got := waiting.Load(); got != 1 {
		t.Errorf("%d waiters counted after the answer for two of three, want 1", got)
	}
	if role, _ := join("a"); role != RoleFollow {
		t.Errorf("who reads a body is no waiter: %v", role)
	}
	leads["b"].Fail("x")
	if got := waiting.Load(); got != 0 {
		t.Errorf("%d waiters counted at the end", got)
	}
}

func TestMaxFlights(t *testing.T) {
	t.Parallel()
	g := New(Options{MaxFlights: 2})
	a, b := mustLead(t, g, "a", plain), mustLead(t, g, "b", plain)
	if role, l, w := g.Join("c", plain, t0, Limits{}, t0); role != RoleSolo || l != nil || w != nil {
		t.Errorf("a third flight: %v", role)
	}
	if _, ok := g.TryLead("c", t0); ok {
		t.Error("TryLead began a third flight")
	}
	mustFollow(t, g, "a", plain, time.Second)
	a.Close()
	mustLead(t, g, "c", plain).Close()
	b.Close()
	wantStats(t, g, 0, 0)
}

func TestMarks(t *testing.T) {
	t.Parallel()
	now := t0
	g := New(Options{MarkTTL: 10 * time.Second, MaxMarks: 2, Now: func() time.Time { return now }})
	mark := func(id ID) { mustLead(t, g, id, plain).Release(true, "private") }

	mark("a")
	if role, _, _ := g.Join("a", plain, t0, Limits{}, t0.Add(9*time.Second)); role != RoleSolo {
		t.Errorf("within the mark's life: %v", role)
	}
	if !g.Marked("a", t0) || g.Marked("a", t0.Add(10*time.Second)) {
		t.Error("the mark does not stand for exactly its life")
	}
	mark("b")
	mark("c")
	if g.Marked("a", t0) || !g.Marked("b", t0) {
		t.Error("the mark to go is not the oldest")
	}
	mark("d") // "b" was looked at, so "c" goes
	if g.Marked("c", t0) || !g.Marked("b", t0) || !g.Marked("d", t0) {
		t.Error("the mark to go is not the least recently used")
	}
	if _, _, marks := g.Stats(); marks != 2 {
		t.Errorf("%d marks, want the bound of 2", marks)
	}
	g.ClearMark("b")
	mustLead(t, g, "b", plain).Close()

	// A refresh ignores the mark, and its answer takes it away.
	lead, ok := g.TryLead("d", t0)
	if !ok {
		t.Fatal("TryLead minds the mark")
	}
	mustFollow(t, g, "d", plain, time.Second) // somebody leads: follow, mark or not
	e := entry(plain)
	e.Body.End()
	lead.Publish(e)
	lead.Finish()
	mustLead(t, g, "d", plain).Close()
	wantStats(t, g, 0, 0)
	if _, _, marks := g.Stats(); marks != 0 {
		t.Errorf("%d marks left", marks)
	}
}

func TestMarkIsRenewed(t *testing.T) {
	t.Parallel()
	now := t0
	g := New(Options{MarkTTL: time.Second, Now: func() time.Time { return now }})
	for range 2 {
		l, _ := g.TryLead("a", t0)
		l.Release(true, "private")
		now = now.Add(900 * time.Millisecond)
	}
	if !g.Marked("a", t0.Add(1800*time.Millisecond)) {
		t.Error("a second mark does not begin a new life")
	}
}

func TestRenewedMarkIsUsedMark(t *testing.T) {
	t.Parallel()
	g := New(Options{MaxMarks: 2, Now: func() time.Time { return t0 }})
	for _, id := range []ID{"a", "b", "a", "c"} {
		l, _ := g.TryLead(id, t0)
		l.Release(true, "private")
	}
	if !g.Marked("a", t0) || g.Marked("b", t0) {
		t.Error("setting a mark again is no use of it")
	}
}

// The answer takes the marks of the resource and of its variant away.
func TestAnswerClearsMarks(t *testing.T) {
	t.Parallel()
	g := New(Options{Now: func() time.Time { return t0 }})
	gzip := accepting("gzip")
	e := entry(gzip, "accept-encoding")
	variant := page.variant(e.Vary.Names, e.VaryValues)
	for _, id := range []ID{page, variant} {
		mustLead(t, g, id, gzip).Release(true, "private")
	}
	lead, _ := g.TryLead(page, t0)
	lead.Publish(e)
	if g.Marked(page, t0) || g.Marked(variant, t0) {
		t.Error("a mark outlived a cacheable answer")
	}
	lead.Close()
}

func TestDrain(t *testing.T) {
	t.Parallel()
	g := New(Options{})
	waited, answered := mustLead(t, g, "a", plain), mustLead(t, g, "b", plain)
	w := mustFollow(t, g, "a", plain, time.Second)
	e := entry(plain)
	answered.Publish(e)

	g.Drain()
	if n := wantKind(t, w, NewsFetch); n.Reason != ReasonDraining {
		t.Errorf("reason = %q", n.Reason)
	}
	for _, id := range []ID{"a", "c"} {
		if role, _, _ := g.Join(id, plain, t0, Limits{}, t0); role != RoleSolo {
			t.Errorf("Join(%q) while draining: %v", id, role)
		}
	}
	wantKind(t, mustFollow(t, g, "b", plain, time.Second), NewsAnswer)
	if _, ok := g.TryLead("c", t0); ok {
		t.Error("TryLead while draining")
	}
	if !waited.Publish(entry(plain)) {
		t.Error("a leader cannot end while draining")
	}
	waited.Break(ErrUnfinished)
	answered.Close()
	wantStats(t, g, 0, 0)
}

func TestBrokenBodyIsNotJoined(t *testing.T) {
	t.Parallel()
	g := New(Options{})
	lead := mustLead(t, g, "a", plain)
	e := entry(plain)
	lead.Publish(e)
	e.Body.Break(ErrAbandoned) // and the leader has not said so yet
	next := mustLead(t, g, "a", plain)
	lead.Close()
	mustFollow(t, g, "a", plain, time.Second)
	next.Close()
	wantStats(t, g, 0, 0)
}

func TestBirthAndCut(t *testing.T) {
	t.Parallel()
	g := New(Options{})
	join := func(position uint64) (Role, *Lead, *Waiter) {
		return g.Join("a", plain, t0, Limits{Position: position}, t0)
	}
	_, old, _ := join(7)
	_, _, before := join(7)
	_, _, after := join(8)
	if after.Birth() != 7 {
		t.Errorf("Birth = %d, want that of the request which began the flight", after.Birth())
	}
	after.Cut()
	role, young, _ := join(8)
	if role != RoleLead {
		t.Fatalf("after the cut: %v", role)
	}
	_, _, w := join(8)
	old.Publish(entry(plain))
	wantKind(t, before, NewsAnswer)
	wantSilence(t, after)
	wantSilence(t, w)
	if w.Birth() != 8 {
		t.Errorf("Birth = %d, want 8", w.Birth())
	}
	before.Cut() // of a flight that is hidden already: the young one stays
	young.Publish(entry(plain))
	wantKind(t, w, NewsAnswer)
	old.Close()
	young.Close()
	wantStats(t, g, 0, 0)
}

func TestIDs(t *testing.T) {
	t.Parallel()
	k1, k2 := &cachepolicy.Key{Hash: [32]byte{1}}, &cachepolicy.Key{Hash: [32]byte{2}}
	ids := []ID{
		PrimaryID(k1), PrimaryID(k2),
		VariantID(k1, []string{"a"}, []string{"b"}),
		VariantID(k2, []string{"a"}, []string{"b"}),
		VariantID(k1, []string{"a"}, []string{"c"}),
		VariantID(k1, []string{"a", "b"}, []string{"c", "d"}),
		VariantID(k1, []string{"a", "b"}, []string{"cd", ""}),
		VariantID(k1, []string{"ab"}, []string{"cd"}),
	}
	seen := make(map[ID]int)
	for i, id := range ids {
		if j, ok := seen[id]; ok {
			t.Errorf("IDs %d and %d are equal", i, j)
		}
		seen[id] = i
		if len(id) > 64 {
			t.Errorf("ID %d is %d bytes long", i, len(id))
		}
	}
	if VariantID(k1, nil, nil) != PrimaryID(k1) {
		t.Error("without names the variant is not the primary")
	}
	if got := ids[2].variant([]string{"a"}, []string{"c"}); got != ids[4] {
		t.Error("the variant of a variant is not one of the resource")
	}
}

func TestLabels(t *testing.T) {
	t.Parallel()
	var got []string
	for r := range numRoles {
		got = append(got, r.String())
	}
	for k := range numNewsKinds {
		got = append(got, k.String())
	}
	want := []string{"lead", "follow", "solo", "full", "answer", "rejoin", "fetch", "lead", "failed"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestObserver(t *testing.T) {
	t.Parallel()
	var c counters
	g := New(Options{MaxFlights: 1, Observer: c.observer()})
	lead := mustLead(t, g, "a", plain)
	for range 3 {
		mustFollow(t, g, "a", plain, time.Second)
	}
	g.Join("a", plain, t0, Limits{Waiters: new(atomic.Int64)}, t0)
	g.Join("b", plain, t0, Limits{}, t0)
	lead.Publish(&store.Entry{Body: store.NewBody(-1)})
	mustFollow(t, g, "a", plain, time.Second)
	lead.Close()
	got := fmt.Sprint(
		c.joined[RoleLead].Load(), c.joined[RoleFollow].Load(), c.joined[RoleSolo].Load(), c.joined[RoleFull].Load(),
		c.told[NewsAnswer].Load())
	if want := "1 4 1 1 4"; got != want {
		t.Errorf("lead, follow, solo, full, answers = %s, want %s", got, want)
	}
}

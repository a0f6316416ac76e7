package feed

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirproxy/weir/cachepolicy/feed"
)

// connected is a replica that has connected and said something.
func connected(tb testing.TB, s *Server, name string, started int64, said feed.Report) *replica {
	tb.Helper()
	r, err := s.join(&feed.Report{Replica: name, Version: "v1", Started: started}, time.Unix(100, 0))
	if err != nil {
		tb.Fatal(err)
	}
	if err := s.report(r, &said); err != nil {
		tb.Fatal(err)
	}
	return r
}

func TestRuns(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mustSet(t, s, testPolicy("a", 1), testPolicy("b", 1))
	const a, b = "policy/shop/a", "policy/shop/b"
	r := connected(t, s, "weir-0", 1, feed.Report{Running: map[string]string{a: s.Version(a), "policy/shop/gone": "v"}})
	if s.Runs("weir-0", a) {
		t.Error("believed before the replica has said all")
	}
	say := func(said feed.Report) {
		t.Helper()
		if err := s.report(r, &said); err != nil {
			t.Fatal(err)
		}
	}
	want := func(when string, want Replica, runsA, runsB bool) {
		t.Helper()
		want.Name, want.Version, want.Since = "weir-0", "v1", time.Unix(100, 0)
		if diff := cmp.Diff([]Replica{want}, s.Replicas()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
		if got := s.Runs("weir-0", a); got != runsA {
			t.Errorf("%s: runs a: %t", when, got)
		}
		if got := s.Runs("weir-0", a, b); got != (runsA && runsB) {
			t.Errorf("%s: runs both: %t", when, got)
		}
	}
	say(feed.Report{Synced: true})
	want("at first", Replica{Synced: true, Behind: 2}, true, false) // of b, and of what is gone
	say(feed.Report{Running: map[string]string{b: "older", "policy/shop/gone": ""}})
	want("an older version", Replica{Synced: true, Behind: 1}, true, false)
	say(feed.Report{Running: map[string]string{b: ""}, Rejected: map[string]feed.Rejection{b: {Version: s.Version(b), Error: "bad"}}})
	want("refused", Replica{Synced: true, Behind: 1, Rejected: 1}, true, false)
	if diff := cmp.Diff(map[string]string{"weir-0": "bad"}, s.Rejections(b)); diff != "" {
		t.Errorf("rejections (-want +got):\n%s", diff)
	}
	mustSet(t, s, testPolicy("a", 1), testPolicy("b", 2))
	if got := s.Rejections(b); len(got) != 0 {
		t.Errorf("refused %v: that was the version before", got)
	}
	say(feed.Report{Running: map[string]string{b: s.Version(b)}, Rejected: map[string]feed.Rejection{b: {}}})
	want("mended", Replica{Synced: true}, true, true)
	mustSet(t, s, testPolicy("a", 2), testPolicy("b", 2))
	want("a changed", Replica{Synced: true, Behind: 1}, false, true)
	if diff := cmp.Diff(map[string]string{"weir-0": r.running[a]}, s.Running(a)); diff != "" {
		t.Errorf("running (-want +got):\n%s", diff)
	}
	if s.Runs("weir-0", "policy/shop/unknown") || s.Runs("weir-1") {
		t.Error("runs what there is not")
	}
	s.leave(r)
	if len(s.Replicas()) != 0 || s.Runs("weir-0", b) || len(s.Running(b)) != 0 {
		t.Error("a replica that left is still there")
	}
}

// TestOneStreamOfAName: the newer takes over, and the older one's end changes nothing.
func TestOneStreamOfAName(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	old := connected(t, s, "weir-0", 1, feed.Report{Synced: true})
	connected(t, s, "weir-0", 2, feed.Report{Synced: true})
	select {
	case <-old.replaced:
	default:
		t.Error("the older stream is not told to end")
	}
	s.leave(old)
	if len(s.Replicas()) != 1 {
		t.Error("the newer one is gone with the older")
	}
}

func TestReplicasAreBounded(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for i := range maxReplicas {
		connected(t, s, fmt.Sprint("weir-", i), 1, feed.Report{})
	}
	if _, err := s.join(&feed.Report{Replica: "one-more"}, time.Now()); err == nil {
		t.Error("there is no bound on replicas")
	}
	r := s.replicas["weir-0"]
	var err error
	for i := 0; err == nil && i <= maxNames; i += feed.MaxReported {
		said := feed.Report{Running: map[string]string{}}
		for j := range feed.MaxReported {
			said.Running[fmt.Sprint(i+j)] = "v"
		}
		err = s.report(r, &said)
	}
	if err == nil {
		t.Error("there is no bound on resources")
	}
	long := feed.Report{Rejected: map[string]feed.Rejection{"x": {Version: "v", Error: strings.Repeat("é", feed.MaxErrorBytes)}}}
	r = s.replicas["weir-1"]
	if err := s.report(r, &long); err != nil || len(r.rejected["x"].Error) > feed.MaxErrorBytes {
		t.Errorf("%d bytes of an error are kept, %v", len(r.rejected["x"].Error), err)
	}
}

// TestTrafficIsCountedOnce: whether a replica comes back or is another, what it counted is in the sum once, and the sum
// never goes back.
func TestTrafficIsCountedOnce(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mustSet(t, s, testPolicy("a", 1))
	counted := func(n uint64) feed.Report {
		return feed.Report{Traffic: map[string]feed.Traffic{"shop/a": {Requests: n, Hits: n, Stale: n, OriginSaved: n}}}
	}
	want := func(when string, n uint64) {
		t.Helper()
		if diff := cmp.Diff(map[string]feed.Traffic{"shop/a": {Requests: n, Hits: n, Stale: n, OriginSaved: n}}, s.Traffic()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	r := connected(t, s, "weir-0", 1, counted(10))
	want("first", 10)
	if err := s.report(r, new(counted(15))); err != nil {
		t.Fatal(err)
	}
	want("it goes on", 15)
	s.leave(r)
	want("it is away", 15)
	r = connected(t, s, "weir-0", 1, counted(20))
	want("it is back", 20)
	s.leave(r)
	connected(t, s, "weir-0", 2, counted(3))
	want("another process of its name", 23)
	connected(t, s, "weir-0", 3, counted(1))
	want("one that took over", 24)
	connected(t, s, "weir-1", 1, counted(100))
	want("another replica", 124)
	for i := range maxRetired + 2 {
		s.leave(connected(t, s, fmt.Sprint("brief-", i), 1, feed.Report{}))
	}
	if n := s.retired.order.Len(); n != maxRetired || len(s.retired.byName) != n {
		t.Errorf("%d and %d replicas are remembered", n, len(s.retired.byName))
	}
	mustSet(t, s, testPolicy("b", 1))
	if got := s.Traffic(); len(got) != 0 {
		t.Errorf("counters of a policy that is gone: %v", got)
	}
}

// TestChanged: what came before it was received is one.
func TestChanged(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	connected(t, s, "weir-0", 1, feed.Report{})
	connected(t, s, "weir-1", 1, feed.Report{})
	<-s.Changed()
	select {
	case <-s.Changed():
		t.Error("told twice")
	default:
	}
}

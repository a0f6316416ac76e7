package feed

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/stream/v3"

	"github.com/weirproxy/weir/cachepolicy/feed"
	"github.com/weirproxy/weir/cachepolicy/feed/feedpb"
)

// subscriber is a stream of xDS as go-control-plane's server keeps it: what it said it has, and what the last response
// gave it to say with the next.
type subscriber struct {
	t   testing.TB
	s   *Server
	sub stream.Subscription
	out chan cache.DeltaResponse
	// has are the versions that it was sent, less what was removed.
	has    map[string]string
	cancel func()
}

func (s *Server) subscribe(tb testing.TB, has map[string]string) *subscriber {
	tb.Helper()
	has = maps.Clone(has)
	if has == nil {
		has = map[string]string{}
	}
	c := &subscriber{t: tb, s: s, has: has, out: make(chan cache.DeltaResponse, 2)}
	c.sub = stream.NewDeltaSubscription([]string{"*"}, nil, maps.Clone(has), true)
	if err := c.watch(); err != nil {
		tb.Fatal(err)
	}
	return c
}

// watch is the next request: the acknowledgement of the response before.
func (c *subscriber) watch() error {
	cancel, err := watcher{c.s}.CreateDeltaWatch(&cache.DeltaRequest{TypeUrl: feedpb.TypeURL}, c.sub, c.out)
	c.cancel = cancel
	return err
}

// next takes the response that waits, and acknowledges it; nil: there is none.
func (c *subscriber) next() *discoveryv3.DeltaDiscoveryResponse {
	c.t.Helper()
	select {
	case r := <-c.out:
		response, err := r.GetDeltaDiscoveryResponse()
		if err != nil {
			c.t.Fatal(err)
		}
		c.sub.SetReturnedResources(r.GetNextVersionMap())
		for _, resource := range response.GetResources() {
			c.has[resource.GetName()] = resource.GetVersion()
		}
		for _, name := range response.GetRemovedResources() {
			delete(c.has, name)
		}
		if err := c.watch(); err != nil {
			c.t.Fatal(err)
		}
		return response
	default:
		return nil
	}
}

// catchUp takes all responses there are, and returns how many resources were in them.
func (c *subscriber) catchUp() (responses, resources, removed int) {
	c.t.Helper()
	for r := c.next(); r != nil; r = c.next() {
		responses++
		resources += len(r.GetResources())
		removed += len(r.GetRemovedResources())
	}
	return responses, resources, removed
}

func (s *Server) current() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]string{}
	for name, r := range s.subscribers.history.byName {
		if r.wire != nil {
			out[name] = r.version
		}
	}
	return out
}

func testPolicy(name string, jitter int32) feed.Policy {
	p := feed.Policy{Namespace: "shop", Name: name, Generation: int64(jitter)}
	p.Spec.JitterPercent = &jitter
	return p
}

func mustSet(tb testing.TB, s *Server, policies ...feed.Policy) int {
	tb.Helper()
	n, err := s.Set(policies, nil, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

func newServer(tb testing.TB) *Server {
	tb.Helper()
	s := New(Options{})
	tb.Cleanup(s.Close)
	return s
}

// TestNothingBeforeTheFirstSet: a controller that has just begun takes nothing from a replica; then it says even that
// there is nothing.
func TestNothingBeforeTheFirstSet(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	fresh, old := s.subscribe(t, nil), s.subscribe(t, map[string]string{"policy/shop/a": "v1"})
	if fresh.next() != nil || old.next() != nil {
		t.Fatal("answered before anything was set")
	}
	mustSet(t, s)
	if r := fresh.next(); r == nil || len(r.GetResources()) != 0 || r.GetSystemVersionInfo() != "" {
		t.Errorf("a new subscriber got %v, want an empty response", r)
	}
	if r := old.next(); r == nil || !slices.Equal(r.GetRemovedResources(), []string{"policy/shop/a"}) {
		t.Errorf("an old subscriber got %v", r)
	}
}

// TestOnlyWhatChanged: a response has what changed since the one before, once, however much time went by.
func TestOnlyWhatChanged(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mustSet(t, s, testPolicy("a", 1), testPolicy("b", 1))
	c := s.subscribe(t, nil)
	if _, n, _ := c.catchUp(); n != 2 {
		t.Errorf("%d resources at first, want 2", n)
	}
	if n := mustSet(t, s, testPolicy("a", 1), testPolicy("b", 1)); n != 0 || c.next() != nil {
		t.Errorf("%d changed where nothing did", n)
	}
	r := func() *discoveryv3.DeltaDiscoveryResponse {
		mustSet(t, s, testPolicy("a", 2), testPolicy("b", 1))
		return c.next()
	}()
	if len(r.GetResources()) != 1 || r.GetResources()[0].GetName() != "policy/shop/a" {
		t.Errorf("got %v", r)
	}
	// The first of these changes answers the subscriber; the others wait for its acknowledgement, and come together.
	mustSet(t, s, testPolicy("a", 3), testPolicy("b", 1))
	mustSet(t, s, testPolicy("a", 4), testPolicy("b", 2))
	mustSet(t, s, testPolicy("a", 5))
	if len(c.out) != 1 {
		t.Fatalf("%d responses are under way", len(c.out))
	}
	if responses, resources, removed := c.catchUp(); responses != 2 || resources != 2 || removed != 1 {
		t.Errorf("%d responses, %d resources, %d removed; want 2, 2, 1", responses, resources, removed)
	}
	if !maps.Equal(c.has, s.current()) {
		t.Errorf("has %v, want %v", c.has, s.current())
	}
}

// TestComingBack: a subscriber says what it has, and gets the rest.
func TestComingBack(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mustSet(t, s, testPolicy("a", 1), testPolicy("b", 1), testPolicy("c", 1))
	has := s.current()
	has["policy/shop/b"] = "older"
	has["policy/shop/gone"] = "v"
	c := s.subscribe(t, has)
	if responses, resources, removed := c.catchUp(); responses != 1 || resources != 1 || removed != 1 {
		t.Errorf("%d responses, %d resources, %d removed; want one each", responses, resources, removed)
	}
	if !maps.Equal(c.has, s.current()) {
		t.Errorf("has %v, want %v", c.has, s.current())
	}
	if again := s.subscribe(t, s.current()); again.next() == nil {
		t.Error("a subscriber that has all is not told so")
	}
}

// large is a policy of about a tenth of what a response holds.
func large(name string, jitter int32) feed.Policy {
	p := testPolicy(name, jitter)
	p.Name += "-" + strings.Repeat("x", feedpb.MaxResponseBytes/20) // it is in the resource's name too
	return p
}

// TestMoreThanAResponseHolds: it comes in parts, each bounded; what changes between them comes in the end as it is then,
// also what goes and what changes back to what the subscriber had.
func TestMoreThanAResponseHolds(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	var policies []feed.Policy
	for i := range 35 {
		policies = append(policies, large(fmt.Sprint("p", i), 1))
	}
	mustSet(t, s, policies...)
	had := s.current()
	policies = slices.Clone(policies)
	policies[3] = large("p3", 2)
	mustSet(t, s, policies...)

	for _, start := range []map[string]string{nil, had} {
		c := s.subscribe(t, start)
		first := c.next()
		if start == nil && (first.GetSystemVersionInfo() != feedpb.More || len(first.GetResources()) > 12) {
			t.Errorf("the first response has %d resources, and says %q", len(first.GetResources()), first.GetSystemVersionInfo())
		}
		policies = slices.Clone(policies[:len(policies)-1]) // one goes that was, or was not, sent
		policies[3] = large("p3", int32(3-policies[3].Generation))
		mustSet(t, s, policies...)
		c.catchUp()
		if !maps.Equal(c.has, s.current()) {
			t.Errorf("from %d: has %d resources, want %d", len(start), len(c.has), len(s.current()))
		}
	}
}

// TestAnySubscriberEndsUpWithAll: whatever changes between whichever responses, once a subscriber has taken all there
// are it has what there is.
func TestAnySubscriberEndsUpWithAll(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 7))
		s := newServer(t)
		world := map[int]feed.Policy{}
		var all []*subscriber
		for range 60 {
			switch rng.IntN(4) {
			case 0:
				start := map[string]string{}
				if len(all) > 0 {
					start = all[rng.IntN(len(all))].has // one that reconnects
				}
				all = append(all, s.subscribe(t, start))
			case 1:
				if len(all) > 0 {
					all[rng.IntN(len(all))].next()
				}
			default:
				i := rng.IntN(20)
				if rng.IntN(3) == 0 {
					delete(world, i)
				} else {
					world[i] = large(fmt.Sprint("p", i), int32(rng.IntN(3)))
				}
				mustSet(t, s, slices.Collect(maps.Values(world))...)
			}
		}
		for i, c := range all {
			c.catchUp()
			if !maps.Equal(c.has, s.current()) {
				t.Fatalf("seed %d: subscriber %d has %d resources, want %d", seed, i, len(c.has), len(s.current()))
			}
		}
	}
}

// TestTombstonesAreBounded: who is behind more removals than are remembered is sent away, to say what it has.
func TestTombstonesAreBounded(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mustSet(t, s, testPolicy("a", 1))
	slow := s.subscribe(t, nil)
	var many []feed.Policy
	for i := range maxTombstones + 5 {
		many = append(many, testPolicy(fmt.Sprint("p", i), 1))
	}
	slow.catchUp()
	mustSet(t, s, many...)
	r := <-slow.out // not acknowledged
	slow.sub.SetReturnedResources(r.GetNextVersionMap())
	mustSet(t, s, testPolicy("a", 1))
	if h := s.subscribers.history; h.tombstones != maxTombstones || len(h.byName) != maxTombstones+1 {
		t.Errorf("%d tombstones, %d names", h.tombstones, len(h.byName))
	}
	if err := slow.watch(); err == nil {
		t.Error("a subscriber that missed removals is not sent away")
	}
	back := s.subscribe(t, map[string]string{"policy/shop/p0": "v", "policy/shop/p7": "v"})
	back.catchUp()
	if !maps.Equal(back.has, s.current()) {
		t.Errorf("has %v, want %v", back.has, s.current())
	}
}

func TestSubscriptionsThatAreRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	some := stream.NewDeltaSubscription([]string{"policy/shop/a"}, nil, nil, true)
	if _, err := (watcher{s}).CreateDeltaWatch(&cache.DeltaRequest{TypeUrl: feedpb.TypeURL}, some, nil); err == nil {
		t.Error("a part of the feed is served")
	}
	all := stream.NewDeltaSubscription([]string{"*"}, nil, nil, true)
	if _, err := (watcher{s}).CreateDeltaWatch(&cache.DeltaRequest{TypeUrl: "type.googleapis.com/x"}, all, nil); err == nil {
		t.Error("another type is served")
	}
	if _, err := (watcher{s}).CreateWatch(nil, nil, nil); err == nil {
		t.Error("state of the world is served")
	}
	for range maxSubscribers {
		s.subscribe(t, nil)
	}
	if _, err := (watcher{s}).CreateDeltaWatch(&cache.DeltaRequest{TypeUrl: feedpb.TypeURL}, all, nil); err == nil {
		t.Error("there is no bound")
	}
}

// TestCancelled: a stream that ended is told nothing; its channel is closed then.
func TestCancelled(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mustSet(t, s)
	c := s.subscribe(t, nil)
	c.catchUp()
	c.cancel()
	close(c.out)
	mustSet(t, s, testPolicy("a", 1))
}

// TestSetKeepsWhatCannotBeSent: an object that is too large leaves the version before.
func TestSetKeepsWhatCannotBeSent(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	entrance := feed.Entrance{Namespace: "a", Gateway: "b", Listener: "c", Address: "d:1", Scheme: "http"}
	if _, err := s.Set(nil, nil, []feed.Entrance{entrance}); err != nil {
		t.Fatal(err)
	}
	before := s.Version(entrance.Resource())
	entrance.CA = string(make([]byte, feed.MaxResourceBytes))
	for range 2 {
		if n, err := s.Set(nil, nil, []feed.Entrance{entrance}); n != 0 || err == nil {
			t.Errorf("%d changed, %v", n, err)
		}
	}
	if got := s.Version(entrance.Resource()); got != before {
		t.Errorf("version %q, want %q", got, before)
	}
}

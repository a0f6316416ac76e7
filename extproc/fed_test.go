package extproc

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/cachepolicy/feed"
	"github.com/weirproxy/weir/extproc/flight"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/metrics"
	"github.com/weirproxy/weir/extproc/refill"
	"github.com/weirproxy/weir/extproc/wire"
)

// fedSet is a set of a controller: one rule with a policy, and one without that would come before it.
func fedSet(t *testing.T) *cachepolicy.Set {
	t.Helper()
	set, verdicts := cachepolicy.NewTable().Apply([]cachepolicy.Change{
		{Name: "policy/infra/base", Object: &feed.Policy{Namespace: "infra", Name: "base"}},
		{Name: "route/httproute/shop/r", Object: &feed.Route{Kind: "HTTPRoute", Namespace: "shop", Name: "r", Rules: []feed.Rule{
			{Policies: []string{"infra/base"}, Scope: "shop/0", EnvoyRoutes: []string{"httproute/shop/r/rule/0/*"}},
			{Scope: "shop/1", EnvoyRoutes: []string{"httproute/shop/r/rule/1/*"}, Hosts: []string{"a.test"}},
		}}},
	})
	for name, err := range verdicts {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return set
}

// saying is a stream with metadata.
type saying struct {
	grpc.ServerStream
	ctx context.Context
}

func (s saying) Context() context.Context { return s.ctx }

// TestBindUnderAController: the scope in the metadata, the route's name, then the request itself.
func TestBindUnderAController(t *testing.T) {
	t.Parallel()
	set := fedSet(t)
	s := &Service{opts: Options{Policies: func() *cachepolicy.Set { return set }}}
	s.resources.learned.Store(set)
	tests := []struct {
		name     string
		metadata []string
		route    string
		host     string
		want     string
	}{
		{"scope", []string{"x-weir-policy", "infra/base", "x-weir-scope", "shop/0"}, "", "a.test", "shop/0"},
		{"unknown scope", []string{"x-weir-policy", "infra/base", "x-weir-scope", "shop/7"}, "", "b.test", ""},
		{"policy", []string{"x-weir-policy", "infra/base"}, "", "a.test", "infra/policy/base"},
		{"route", nil, "httproute/shop/r/rule/0/match/1/a_test", "a.test", "shop/0"},
		{"route without a policy", nil, "httproute/shop/r/rule/1/match/0/*", "b.test", ""},
		{"unknown route", nil, "httproute/shop/q/rule/0/match/0/*", "b.test", ""},
		{"host", nil, "", "b.test", "shop/0"},
		{"host of a rule without a policy", nil, "", "a.test", ""},
		{"a name of another kind", nil, "default", "b.test", "shop/0"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs(tc.metadata...))
			msg := &wire.Message{Kind: wire.KindRequestHeaders, Method: "GET", Authority: tc.host, Path: "/", RouteName: tc.route}
			got := ""
			if b := s.bind(saying{ctx: ctx}, msg); b != nil {
				got = b.Scope
			}
			if got != tc.want {
				t.Errorf("bound to %q, want %q", got, tc.want)
			}
		})
	}
	if b := s.bind(saying{ctx: t.Context()}, &wire.Message{Kind: wire.KindResponseHeaders}); b != nil {
		t.Errorf("a stream that shows no request is bound to %s", b.Scope)
	}
}

// TestTimeoutsOfTheRoute: a hold keeps to what the filter of its route is configured with, before what the flags say.
func TestTimeoutsOfTheRoute(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name                string
		message, maxMessage time.Duration // of the route
		hold                time.Duration
		extended            bool
	}{
		{"as the flags say", 0, 0, 5 * time.Second, true},
		{"long enough by itself, as under Envoy Gateway", 5500 * time.Millisecond, 0, 5 * time.Second, false},
		{"short, and not to be extended", time.Second, 0, 800 * time.Millisecond, false},
		{"short, and to be extended", time.Second, 3 * time.Second, 2800 * time.Millisecond, true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			seen, start := newSight(0), time.Unix(1_700_000_000, 0)
			c := newConversation(&facts{
				messageTimeout: time.Second, maxMessageTimeout: time.Minute,
				refill: func(*cachepolicy.Binding, *httpcache.Request) bool { return false },
				draw:   func() float64 { return 1 }, position: func() uint64 { return 0 },
				sight: func(*cachepolicy.Policy) *sight { return seen },
			}, start)
			b := *explained(t, "{}")
			b.MessageTimeout, b.MaxMessageTimeout = tc.message, tc.maxMessage
			c.begin(&b, &wire.Message{
				Kind: wire.KindRequestHeaders, EndOfStream: true, Method: "GET", Scheme: "http", Authority: "a", Path: "/",
			}, false)
			c.found(found{})
			c.joined(flight.RoleFollow)
			if got := c.timer.Sub(start); got != tc.hold || c.m.extended != tc.extended {
				t.Errorf("held for %s, extended %t; want %s, %t", got, c.m.extended, tc.hold, tc.extended)
			}
		})
	}
}

// TestFetcherUnderAController: where it names no entrance none is possible, whatever the process could do.
func TestFetcherUnderAController(t *testing.T) {
	t.Parallel()
	own, err := refill.New(refill.Options{Addr: "envoy:80"})
	if err != nil {
		t.Fatal(err)
	}
	entrance := &cachepolicy.Entrance{Address: "gw:80", Scheme: "http", Hosts: []string{"a.test"}}
	s := &Service{opts: Options{Fetcher: own, Entrances: refill.NewEntrances(refill.Options{})}}
	req := &httpcache.Request{Scheme: "http", Authority: "a.test"}
	if s.fetcher(&cachepolicy.Binding{}, req) != own {
		t.Error("in standalone mode it is not the process's own")
	}
	if s.fetcher(&cachepolicy.Binding{Fed: true}, req) != nil {
		t.Error("a route without an entrance has one")
	}
	fed := &cachepolicy.Binding{Fed: true, Entrances: []*cachepolicy.Entrance{entrance}}
	if f := s.fetcher(fed, req); f == nil || f == own {
		t.Error("the entrance is not used")
	}
	if s.fetcher(fed, &httpcache.Request{Scheme: "https", Authority: "a.test"}) != nil ||
		s.fetcher(fed, &httpcache.Request{Scheme: "http", Authority: "b.test"}) != nil {
		t.Error("a fetch enters where its scheme or host is not served")
	}
}

// TestTraffic: requests are counted under the policy's name, over its changes, and forgotten with it.
func TestTraffic(t *testing.T) {
	t.Parallel()
	s := &Service{}
	first := &cachepolicy.Policy{Namespace: "shop", Name: "p"}
	second := &cachepolicy.Policy{Namespace: "shop", Name: "p"}
	setOf := func(p *cachepolicy.Policy) *cachepolicy.Set {
		set, err := cachepolicy.NewSet(cachepolicy.Binding{Policy: p, Scope: "s"})
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	s.traffic.count(nil, metrics.OutcomeHit)
	for _, o := range []metrics.Outcome{
		metrics.OutcomeMiss, metrics.OutcomeHit, metrics.OutcomeHitNegative, metrics.OutcomeHitStale,
		metrics.OutcomeStaleIfError, metrics.OutcomeCoalesced, metrics.OutcomeBypassRequest,
	} {
		s.traffic.count(first, o)
	}
	want := Traffic{Requests: 7, Hits: 4, Stale: 2, OriginSaved: 5}
	check := func(when string, set *cachepolicy.Set, want map[string]Traffic) {
		t.Helper()
		if diff := cmp.Diff(want, s.Traffic(set)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	check("first", setOf(first), map[string]Traffic{"shop/p": want})
	check("replaced", setOf(second), map[string]Traffic{"shop/p": want})
	s.traffic.count(second, metrics.OutcomeHit)
	s.traffic.count(first, metrics.OutcomeHit) // of a stream that began before
	want.Requests, want.Hits, want.OriginSaved = 9, 6, 7
	check("goes on", setOf(second), map[string]Traffic{"shop/p": want})
	check("gone", setOf(&cachepolicy.Policy{Namespace: "shop", Name: "q"}), map[string]Traffic{})
	check("back", setOf(second), map[string]Traffic{})
}

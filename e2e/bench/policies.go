package bench

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/cachepolicy/feed"
	controller "github.com/weirproxy/weir/controller/feed"
	"github.com/weirproxy/weir/e2e/harness"
	"github.com/weirproxy/weir/extproc/feedclient"
)

// routesPerPolicy is how many routes of a tenant a policy is for.
const routesPerPolicy = 10

// world is n routes under n/10 policies of tenants and one of a Gateway, as a controller feeds them.
func world(n int) (policies []feed.Policy, routes []feed.Route) {
	policies = append(policies, feed.Policy{Namespace: "infra", Name: "base", Generation: 1})
	for i := range n {
		tenant, policy := tenantOf(i)
		if i%routesPerPolicy == 0 {
			policies = append(policies, feed.Policy{Namespace: tenant, Name: policy, Generation: 1})
		}
		routes = append(routes, feed.Route{
			Kind: "HTTPRoute", Namespace: tenant, Name: routeName(i), Rules: []feed.Rule{{
				Policies: []string{"infra/base", tenant + "/" + policy}, Scope: tenant + "/httproute/" + routeName(i) + "/0",
				EnvoyRoutes: []string{"httproute/" + tenant + "/" + routeName(i) + "/rule/0/*"},
				Hosts:       []string{routeName(i) + ".example"},
			}},
		})
	}
	return policies, routes
}

func tenantOf(route int) (tenant, policy string) {
	p := route / routesPerPolicy
	return fmt.Sprintf("tenant-%d", p%50), fmt.Sprintf("policy-%d", p)
}

func routeName(i int) string { return fmt.Sprintf("route-%d", i) }

// envoyRoute is the name that Envoy Gateway gives the route of a rule.
func envoyRoute(i int) string {
	tenant, _ := tenantOf(i)
	return "httproute/" + tenant + "/" + routeName(i) + "/rule/0/match/0/" + routeName(i) + "_example"
}

func setOf(n int) *cachepolicy.Set {
	policies, routes := world(n)
	var changes []cachepolicy.Change
	for i := range policies {
		changes = append(changes, cachepolicy.Change{Name: policies[i].Resource(), Object: &policies[i]})
	}
	for i := range routes {
		changes = append(changes, cachepolicy.Change{Name: routes[i].Resource(), Object: &routes[i]})
	}
	set, _ := cachepolicy.NewTable().Apply(changes)
	return set
}

// lookUps is how many make one round.
const lookUps = 100_000

// lookupRows compares look-ups by route name among 10, 1,000 and 10,000 routes, of which ten are asked for: what grows
// then is the set, not what the processor's caches must hold. (Of routes that are all asked for in turn, the last row
// says what that costs.)
func (b *bench) lookupRows(tb harness.TB) {
	tb.Helper()
	const hot = 10
	small := setOf(hot)
	for _, of := range []struct {
		name     string
		n, asked int
	}{{"lookup_1k_vs_10", 1000, hot}, {"lookup_10k_vs_10", 10_000, hot}, {"lookup_10k_all_asked_vs_10", 10_000, 10_000}} {
		large := setOf(of.n)
		var ratios, ours, theirs []float64
		for range b.scale.Rounds {
			mine, base := lookUpNanos(tb, large, of.n, of.asked), lookUpNanos(tb, small, hot, hot)
			ours, theirs, ratios = append(ours, mine), append(theirs, base), append(ratios, mine/base)
		}
		b.add(Judged(Row{
			Name: of.name, Unit: "ns", Value: median(ours), Baseline: median(theirs), Ratio: median(ratios),
			What: fmt.Sprintf("policy look-up at %d routes, %d of them asked for ÷ at %d", of.n, of.asked, hot),
		}))
	}
}

// lookUpNanos asks for routes spread over all.
func lookUpNanos(tb harness.TB, set *cachepolicy.Set, routes, asked int) float64 {
	tb.Helper()
	names := make([]string, asked)
	for i := range names {
		names[i] = envoyRoute(i * (routes / asked))
	}
	self := []int{os.Getpid()}
	start := cpuTimes(tb, self)
	for i := range lookUps {
		if found, _ := set.Identify("", "", names[i*7%asked]); found == nil {
			tb.Fatalf("no policy for %s", names[i*7%asked])
		}
	}
	return float64(since(start, cpuTimes(tb, self)).Nanoseconds()) / lookUps
}

// replicas is how many data planes a change must reach.
const replicas = 3

// feedRows changes one policy among 10,000 routes and waits until each replica's set has it.
func (b *bench) feedRows(tb harness.TB) {
	tb.Helper()
	const routes = 10_000
	policies, all := world(routes)
	server := controller.New(controller.Options{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("listen: %v", err)
	}
	g := grpc.NewServer(controller.ServerOptions()...)
	server.Register(g)
	go func() { _ = g.Serve(listener) }()
	tb.Cleanup(func() {
		server.Close()
		g.Stop()
	})
	if _, err := server.Set(policies, all, nil); err != nil {
		tb.Fatalf("set the feed: %v", err)
	}
	sets := make([]chan *cachepolicy.Set, replicas)
	for i := range sets {
		sets[i] = subscribe(tb, listener.Addr().String(), fmt.Sprintf("replica-%d", i))
		awaitJitter(tb, sets[i], routes-1, -1)
	}
	self := []int{os.Getpid()}
	cpu := cpuTimes(tb, self)
	var took []time.Duration
	for i := range b.scale.Changes {
		jitter := int32(i%90 + 1)
		policies = slices.Clone(policies) // the server compares with what it was given before
		policies[len(policies)-1].Spec.JitterPercent = &jitter
		policies[len(policies)-1].Generation++
		start := time.Now()
		if _, err := server.Set(policies, all, nil); err != nil {
			tb.Fatalf("set the feed: %v", err)
		}
		for _, s := range sets {
			awaitJitter(tb, s, routes-1, int(jitter))
		}
		took = append(took, time.Since(start))
	}
	b.add(Judged(Row{
		Name: "feed_change_cpu_ms", Unit: "ms", Value: millis(since(cpu, cpuTimes(tb, self))) / float64(len(took)),
		What: "CPU of a change, controller and three replicas together: what it takes on a machine that is free",
	}))
	slices.Sort(took)
	b.add(Judged(Row{Name: "feed_change_p99_ms", Unit: "ms", Value: millis(harness.Percentile(took, 99))}))
	b.add(Judged(Row{
		Name: "feed_change_p50_ms", Unit: "ms", Value: millis(harness.Percentile(took, 50)),
		What: "the same, median; the controller's replica is given all 10,000 routes anew each time",
	}))
}

// subscribe starts a replica of the data plane; each set that it takes into use comes out.
func subscribe(tb harness.TB, address, name string) chan *cachepolicy.Set {
	tb.Helper()
	sets := make(chan *cachepolicy.Set, 16)
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	client, err := feedclient.New(feedclient.Options{
		Address: address, Replica: name, Version: "bench", Started: time.Now(),
		OnChange: func(s *cachepolicy.Set) {
			select {
			case sets <- s:
			case <-ctx.Done():
			}
		},
	})
	if err != nil {
		tb.Fatalf("subscribe: %v", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = client.Run(ctx)
	}()
	tb.Cleanup(func() {
		cancel()
		<-ended
	})
	return sets
}

// awaitJitter waits for the set in which the route's policy has a jitter; -1: in which it has a policy.
func awaitJitter(tb harness.TB, sets <-chan *cachepolicy.Set, route, want int) {
	tb.Helper()
	late := time.After(time.Minute)
	for {
		select {
		case s := <-sets:
			if found, _ := s.Identify("", "", envoyRoute(route)); found != nil &&
				(want < 0 || found.Policy.JitterPercent == want) {
				return
			}
		case <-late:
			tb.Fatalf("the feed did not bring the change within a minute")
		}
	}
}

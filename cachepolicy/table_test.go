package cachepolicy_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/cachepolicy/feed"
	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
)

// put and gone are changes.
func put(o feed.Object) cachepolicy.Change { return cachepolicy.Change{Name: o.Resource(), Object: o} }

func gone(o feed.Object) cachepolicy.Change { return cachepolicy.Change{Name: o.Resource()} }

// fedPolicy is a policy of the feed with a jitter, by which tests tell policies apart.
func fedPolicy(namespace, name string, jitter int32) *feed.Policy {
	p := &feed.Policy{Namespace: namespace, Name: name, Generation: 1}
	if jitter >= 0 {
		p.Spec.JitterPercent = &jitter
	}
	return p
}

// fedRoute is an HTTPRoute of one rule.
func fedRoute(namespace, name string, policies ...string) *feed.Route {
	return &feed.Route{Kind: "HTTPRoute", Namespace: namespace, Name: name, Rules: []feed.Rule{{
		Policies: policies, Scope: namespace + "/httproute/" + name + "/0",
		EnvoyRoutes: []string{"httproute/" + namespace + "/" + name + "/rule/0/*"}, Hosts: []string{name + ".example"},
	}}}
}

// apply applies changes and wants all of them to be good.
func apply(tb testing.TB, table *cachepolicy.Table, changes ...cachepolicy.Change) *cachepolicy.Set {
	tb.Helper()
	set, verdicts := table.Apply(changes)
	for name, err := range verdicts {
		if err != nil {
			tb.Fatalf("%s: %v", name, err)
		}
	}
	return set
}

func byScope(s *cachepolicy.Set, scope string) *cachepolicy.Binding {
	b, _ := s.Identify("", scope, "")
	return b
}

func TestIdentify(t *testing.T) {
	t.Parallel()
	route := fedRoute("shop", "catalog", "infra/base", "shop/catalog")
	route.Rules[0].EnvoyRoutes = append(route.Rules[0].EnvoyRoutes, "plain")
	route.Rules = append(route.Rules, feed.Rule{
		Scope: "shop/httproute/catalog/1", EnvoyRoutes: []string{"httproute/shop/catalog/rule/1/*"},
	})
	set := apply(t, cachepolicy.NewTable(), put(fedPolicy("infra", "base", 3)), put(fedPolicy("shop", "catalog", -1)), put(route))
	const scope = "shop/httproute/catalog/0"
	tests := []struct {
		name                 string
		policy, scope, route string
		want                 string // scope of the binding; empty: none
		decided              bool
	}{
		{"by scope", "", scope, "", scope, true},
		{"the scope before the policy", "shop/other", scope, "", scope, true},
		{"unknown scope", "shop/catalog", "shop/httproute/catalog/9", "", "", true},
		{"scope of a rule without a policy", "", "shop/httproute/catalog/1", "", "", true},
		{"by name of the route", "", "", "httproute/shop/catalog/rule/0/match/2/shop_example", scope, true},
		{"prefix alone", "", "", "httproute/shop/catalog/rule/0/", scope, true},
		{"exact name", "", "", "plain", scope, true},
		{"rule without a policy", "", "", "httproute/shop/catalog/rule/1/match/0/*", "", true},
		{"another rule", "", "", "httproute/shop/catalog/rule/10/match/0/*", "", true},
		{"another route of the gateway", "", "", "httproute/shop/cart/rule/0/match/0/*", "", true},
		{"a GRPCRoute", "", "", "grpcroute/shop/catalog/rule/0/match/0/*", "", true},
		{"another name", "", "", "default", "", false},
		{"nothing said", "", "", "", "", false},
		{"policy alone", "shop/catalog", "", "", "shop/policy/catalog", true},
		{"policy and route", "shop/catalog", "", "plain", scope, true},
		{"unknown policy", "shop/nope", "", "plain", "", true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := ""
			b, decided := set.Identify(tc.policy, tc.scope, tc.route)
			if b != nil {
				got = b.Scope
			}
			if got != tc.want || decided != tc.decided {
				t.Errorf("got %q, decided %t, want %q, %t", got, decided, tc.want, tc.decided)
			}
		})
	}
	b := byScope(set, scope)
	if b.Policy.String() != "shop/catalog" || b.Policy.JitterPercent != 3 || b.Tenant() != "shop" {
		t.Errorf("policy %s, jitter %d, tenant %s", b.Policy, b.Policy.JitterPercent, b.Tenant())
	}
	if diff := cmp.Diff([]string{"infra/base", "shop/catalog"}, b.Policy.Layers); diff != "" {
		t.Errorf("layers (-want +got):\n%s", diff)
	}
}

// TestIdentifyInAnEmptySet: nothing is to be matched, and no set is an empty one.
func TestIdentifyInAnEmptySet(t *testing.T) {
	t.Parallel()
	for _, set := range []*cachepolicy.Set{nil, apply(t, cachepolicy.NewTable())} {
		for _, route := range []string{"", "default"} {
			if b, decided := set.Identify("", "", route); b != nil || !decided {
				t.Errorf("route %q: %v, %t", route, b, decided)
			}
		}
	}
}

// TestIdentifyWithoutScopes: a set from files, behind a filter that says scopes too, goes by the policy.
func TestIdentifyWithoutScopes(t *testing.T) {
	t.Parallel()
	want := cachepolicy.Binding{Policy: compile(t, `{}`), Scope: "shop/policy/catalog"}
	set, err := cachepolicy.NewSet(want)
	if err != nil {
		t.Fatal(err)
	}
	if b, decided := set.Identify(want.Policy.String(), "shop/httproute/catalog/0123", ""); b == nil || !decided {
		t.Errorf("%v, %t", b, decided)
	}
}

// TestOneChainIsCompiledOnce: routes under the same policies share the compiled one, before and after a change.
func TestOneChainIsCompiledOnce(t *testing.T) {
	t.Parallel()
	table := cachepolicy.NewTable()
	apply(t, table, put(fedPolicy("infra", "base", 3)), put(fedRoute("shop", "a", "infra/base")), put(fedRoute("blog", "b", "infra/base")))
	set := apply(t, table, put(fedPolicy("infra", "base", 7)))
	a, b := byScope(set, "shop/httproute/a/0"), byScope(set, "blog/httproute/b/0")
	if a.Policy != b.Policy || a.Policy.JitterPercent != 7 {
		t.Errorf("policies %p and %p, jitter %d, want one of 7", a.Policy, b.Policy, a.Policy.JitterPercent)
	}
	if a.Tenant() != "shop" || b.Tenant() != "blog" {
		t.Errorf("tenants %s and %s", a.Tenant(), b.Tenant())
	}
}

// TestFaultsStayAlone: what is at fault leaves what was in force under its name, and the rest comes into force.
func TestFaultsStayAlone(t *testing.T) {
	t.Parallel()
	table := cachepolicy.NewTable()
	good := fedRoute("shop", "a", "shop/p")
	apply(t, table, put(fedPolicy("shop", "p", 3)), put(good), put(fedPolicy("shop", "q", 4)))

	bad := fedRoute("shop", "a", "shop/p")
	bad.Rules[0].Matches = []feed.Match{{Path: &feed.PathMatch{Type: "RegularExpression", Value: "("}}}
	set, verdicts := table.Apply([]cachepolicy.Change{
		put(fedPolicy("shop", "p", 101)), put(bad), put(fedPolicy("shop", "q", 5)), put(fedRoute("shop", "b", "shop/q")),
		put(&feed.Entrance{Namespace: "infra", Gateway: "gw", Listener: "http", Address: "nowhere", Scheme: "http"}),
	})
	for name, want := range map[string]string{
		"policy/shop/p": "spec.jitterPercent", "route/httproute/shop/a": "rules[0].matches[0].path",
		"policy/shop/q": "", "route/httproute/shop/b": "", "entrance/infra/gw/http": `address "nowhere": want host:port`,
	} {
		err, ok := verdicts[name]
		if !ok || (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	if b := byScope(set, "shop/httproute/a/0"); b == nil || b.Policy.JitterPercent != 3 {
		t.Errorf("route a is under %+v, want what was before", b)
	}
	if b := byScope(set, "shop/httproute/b/0"); b == nil || b.Policy.JitterPercent != 5 {
		t.Errorf("route b is under %+v", b)
	}
	set = apply(t, table, put(good), put(fedPolicy("shop", "p", 9)))
	if b := byScope(set, "shop/httproute/a/0"); b.Policy.JitterPercent != 9 {
		t.Errorf("jitter %d after all was mended, want 9", b.Policy.JitterPercent)
	}
}

// TestPolicyThatIsNotHere: a rule whose policy is unknown has none, until it comes.
func TestPolicyThatIsNotHere(t *testing.T) {
	t.Parallel()
	table := cachepolicy.NewTable()
	route := fedRoute("shop", "a", "infra/base", "shop/p")
	set, verdicts := table.Apply([]cachepolicy.Change{put(fedPolicy("infra", "base", 1)), put(route)})
	if err := verdicts[route.Resource()]; err == nil || !strings.Contains(err.Error(), "policy shop/p is not here") {
		t.Errorf("verdict %v", err)
	}
	if b, decided := set.Identify("", "", "httproute/shop/a/rule/0/match/0/*"); b != nil || !decided {
		t.Errorf("found %+v", b)
	}
	set, verdicts = table.Apply([]cachepolicy.Change{put(fedPolicy("shop", "p", 2))})
	if err, ok := verdicts[route.Resource()]; !ok || err != nil {
		t.Errorf("the route's verdict is %v, told %t", err, ok)
	}
	if b := byScope(set, "shop/httproute/a/0"); b == nil || b.Policy.JitterPercent != 2 {
		t.Errorf("found %+v", b)
	}
	set, verdicts = table.Apply([]cachepolicy.Change{gone(fedPolicy("shop", "p", 0))})
	if b := byScope(set, "shop/httproute/a/0"); b != nil || verdicts[route.Resource()] == nil {
		t.Errorf("found %+v, verdict %v after the policy is gone", b, verdicts[route.Resource()])
	}
}

// TestContradictionOnlyTheMergeShows: what was in force stays, and the route says what is wrong.
func TestContradictionOnlyTheMergeShows(t *testing.T) {
	t.Parallel()
	table := cachepolicy.NewTable()
	base, own := fedPolicy("infra", "base", 1), fedPolicy("shop", "p", -1)
	own.Spec.TTL = &v1alpha1.TTL{Min: new(gatewayv1.Duration("10m"))}
	apply(t, table, put(base), put(own), put(fedRoute("shop", "a", "infra/base", "shop/p")))
	changed := fedPolicy("infra", "base", 2)
	changed.Spec.TTL = &v1alpha1.TTL{Max: new(gatewayv1.Duration("1m"))}
	set, verdicts := table.Apply([]cachepolicy.Change{put(changed)})
	err := verdicts["route/httproute/shop/a"]
	if err == nil || !strings.Contains(err.Error(), "infra/base + shop/p") || !strings.Contains(err.Error(), "spec.ttl.min") {
		t.Errorf("verdict %v", err)
	}
	if verdicts["policy/infra/base"] != nil {
		t.Errorf("the policy by itself is good: %v", verdicts["policy/infra/base"])
	}
	if b := byScope(set, "shop/httproute/a/0"); b == nil || b.Policy.JitterPercent != 1 {
		t.Errorf("in force is %+v, want what was before", b)
	}
}

func TestEntrances(t *testing.T) {
	t.Parallel()
	table := cachepolicy.NewTable()
	route := fedRoute("shop", "a", "shop/p")
	route.Rules[0].Entrances = []string{"entrance/infra/gw/http"}
	route.Rules[0].MessageTimeoutMillis = 5500
	set := apply(t, table, put(fedPolicy("shop", "p", 1)), put(route))
	if b := byScope(set, "shop/httproute/a/0"); len(b.Entrances) != 0 || b.MessageTimeout != 5500*time.Millisecond || !b.Fed {
		t.Errorf("binding %+v", b)
	}
	entrance := &feed.Entrance{Namespace: "infra", Gateway: "gw", Listener: "http", Address: "gw:80", Scheme: "http",
		Hosts: []string{"*.Example"}}
	set = apply(t, table, put(entrance))
	b := byScope(set, "shop/httproute/a/0")
	if len(b.Entrances) != 1 || b.Entrances[0].Address != "gw:80" {
		t.Fatalf("entrances %+v", b.Entrances)
	}
	for authority, want := range map[string]bool{"a.example": true, "A.EXAMPLE:8080": true, "example": false, "b.test": false} {
		if got := b.Entrances[0].Serves("http", authority); got != want {
			t.Errorf("serves %s: %t", authority, got)
		}
	}
	if b.Entrances[0].Serves("https", "a.example") {
		t.Error("a plain entrance serves https")
	}
	if b := byScope(apply(t, table, gone(entrance)), "shop/httproute/a/0"); len(b.Entrances) != 0 {
		t.Errorf("entrances %+v after it is gone", b.Entrances)
	}
}

// TestTableForgets: nothing is left of what came and went.
func TestTableForgets(t *testing.T) {
	t.Parallel()
	table := cachepolicy.NewTable()
	everything := []feed.Object{
		fedPolicy("infra", "base", 1), fedPolicy("shop", "p", 2), fedRoute("shop", "a", "infra/base", "shop/p"),
		&feed.Entrance{Namespace: "infra", Gateway: "gw", Listener: "http", Address: "gw:80", Scheme: "http"},
	}
	for range 3 {
		var come, leave []cachepolicy.Change
		for _, o := range everything {
			come, leave = append(come, put(o)), append(leave, gone(o))
		}
		if set := apply(t, table, come...); set.Len() != 2 || len(set.Queries()) == 0 {
			t.Fatalf("%d policies, queries %v", set.Len(), set.Queries())
		}
		rand.Shuffle(len(leave), func(i, j int) { leave[i], leave[j] = leave[j], leave[i] })
		set := apply(t, table, leave...)
		if left := slices.Collect(set.Bindings()); set.Len() != 0 || len(set.Queries()) != 0 || len(left) != 0 {
			t.Fatalf("%d policies, queries %v, bindings %v", set.Len(), set.Queries(), left)
		}
	}
	if diff := cmp.Diff(cachepolicy.TableSizes(cachepolicy.NewTable()), cachepolicy.TableSizes(table)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

// TestIncrementalIsTheSame: whatever came before, a Table says what one says that got only what there is now; and the
// sets that it made before, which requests still go by, say what they said.
func TestIncrementalIsTheSame(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		world := map[string]feed.Object{}
		table := cachepolicy.NewTable()
		var sets []*cachepolicy.Set
		var said []map[string]string
		for step := range 40 {
			var changes []cachepolicy.Change
			for range rng.IntN(4) {
				o := randomObject(rng)
				if rng.IntN(4) == 0 {
					delete(world, o.Resource())
					changes = append(changes, gone(o))
				} else {
					world[o.Resource()] = o
					changes = append(changes, put(o))
				}
			}
			got, _ := table.Apply(lastOf(changes))
			fresh := cachepolicy.NewTable()
			var all []cachepolicy.Change
			for _, o := range world {
				all = append(all, put(o))
			}
			want, _ := fresh.Apply(all)
			if diff := cmp.Diff(answers(want), answers(got)); diff != "" {
				t.Fatalf("seed %d, step %d (-fresh +incremental):\n%s", seed, step, diff)
			}
			sets, said = append(sets, got), append(said, answers(got))
		}
		for step, set := range sets {
			if diff := cmp.Diff(said[step], answers(set)); diff != "" {
				t.Fatalf("seed %d: the set of step %d changed afterwards:\n%s", seed, step, diff)
			}
		}
	}
}

// lastOf keeps the last change of each name.
func lastOf(changes []cachepolicy.Change) []cachepolicy.Change {
	var out []cachepolicy.Change
	for _, c := range changes {
		out = slices.DeleteFunc(out, func(have cachepolicy.Change) bool { return have.Name == c.Name })
		out = append(out, c)
	}
	return out
}

func randomObject(rng *rand.Rand) feed.Object {
	switch rng.IntN(4) {
	case 0:
		return fedPolicy("shop", fmt.Sprintf("p%d", rng.IntN(3)), int32(rng.IntN(100)))
	case 1:
		return &feed.Entrance{Namespace: "infra", Gateway: "gw", Listener: fmt.Sprintf("l%d", rng.IntN(2)),
			Address: fmt.Sprintf("gw:%d", 1+rng.IntN(9)), Scheme: "http"}
	}
	r := &feed.Route{Kind: "HTTPRoute", Namespace: "shop", Name: fmt.Sprintf("r%d", rng.IntN(4))}
	for i := range 1 + rng.IntN(3) {
		rule := feed.Rule{
			Scope:       fmt.Sprintf("shop/httproute/%d", rng.IntN(6)),
			EnvoyRoutes: []string{fmt.Sprintf("httproute/shop/r%d/rule/%d/*", rng.IntN(4), i)},
			Hosts:       []string{[]string{"a.test", "*.test", "*"}[rng.IntN(3)]}, Created: int64(rng.IntN(2)),
			Entrances: []string{fmt.Sprintf("infra/gw/l%d", rng.IntN(2))},
			Matches:   []feed.Match{{Path: &feed.PathMatch{Type: "PathPrefix", Value: []string{"/", "/a", "/a/b"}[rng.IntN(3)]}}},
		}
		for range rng.IntN(3) {
			rule.Policies = append(rule.Policies, fmt.Sprintf("shop/p%d", rng.IntN(3)))
		}
		r.Rules = append(r.Rules, rule)
	}
	return r
}

// answers asks a set about everything that randomObject may make.
func answers(s *cachepolicy.Set) map[string]string {
	out := map[string]string{"policies": fmt.Sprint(s.Len()), "queries": fmt.Sprint(len(s.Queries()))}
	note := func(question string, b *cachepolicy.Binding) {
		if b == nil {
			return
		}
		out[question] = fmt.Sprint(b.Scope, b.Policy, b.Policy.JitterPercent, b.Policy.Layers)
		for _, e := range b.Entrances {
			out[question] += " " + e.Name + "=" + e.Address
		}
	}
	for i := range 6 {
		note(fmt.Sprint("scope ", i), byScope(s, fmt.Sprintf("shop/httproute/%d", i)))
		b, _ := s.Identify(fmt.Sprintf("shop/p%d", i), "", "")
		note(fmt.Sprint("policy ", i), b)
		for rule := range 3 {
			name := fmt.Sprintf("httproute/shop/r%d/rule/%d/match/0/*", i, rule)
			b, _ := s.Identify("", "", name)
			note(name, b)
		}
	}
	for _, host := range []string{"a.test", "b.test", "x"} {
		for _, path := range []string{"/", "/a", "/ab", "/a/b/c"} {
			note(host+path, s.Match(&cachepolicy.MatchInput{Authority: host, Method: "GET", Path: path}))
		}
	}
	return out
}

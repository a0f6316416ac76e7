package translate

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/cachepolicy/feed"
)

// translation is the state of one run of Translate.
type translation struct {
	in            *Input
	anyController bool // the user attaches, to whatever there is
	mesh          bool // routes of a mesh can be served
	gateways      map[types.NamespacedName]*gateway
	classic       map[types.NamespacedName]*gateway // Istio's own kind
	namespaces    map[string]labels.Set
	services      map[types.NamespacedName]bool
	guards        guards
	addresses     map[addressKey]*Address

	routes map[Target]*placed
	sorted []*placed // by resource name

	policies []*policy // the oldest first
	claims   map[Target]*claim
	chains   map[[levels]int32]*chain
	merges   map[[levels]int32]*merged

	entrances map[*listener]*feed.Entrance
	caching   map[*gateway]bool // Gateways on which a policy is in force
	attached  [][]Attachment    // by route
	out       Output
}

// Translate says what the objects of the Input mean together. It never fails: what
// cannot be served is said in Verdicts.
func Translate(in *Input) *Output {
	t := &translation{
		in: in, anyController: len(in.Controllers) == 0,
		gateways:   newGateways(in),
		classic:    newClassicGateways(in),
		namespaces: make(map[string]labels.Set, len(in.Namespaces)),
		services:   make(map[types.NamespacedName]bool, len(in.Services)),
		guards:     newGuards(in.Guards),
		addresses:  make(map[addressKey]*Address, len(in.Addresses)),
		routes:     make(map[Target]*placed, len(in.HTTPRoutes)),
		policies:   newPolicies(in.CachePolicies),
		claims:     make(map[Target]*claim, len(in.CachePolicies)),
		chains:     map[[levels]int32]*chain{},
		merges:     map[[levels]int32]*merged{},
		entrances:  map[*listener]*feed.Entrance{},
		caching:    map[*gateway]bool{},
	}
	t.mesh = t.anyController || slices.ContainsFunc(in.Controllers, func(c Controller) bool { return c.Mesh })
	for _, n := range in.Namespaces {
		t.namespaces[n.Name] = n.Labels
	}
	for _, s := range in.Services {
		t.services[types.NamespacedName{Namespace: s.Namespace, Name: s.Name}] = true
	}
	for i := range in.Addresses {
		t.addAddress(&in.Addresses[i])
	}
	for _, o := range in.HTTPRoutes {
		t.add(fromHTTPRoute(o))
	}
	for _, o := range in.VirtualServices {
		t.add(fromVirtualService(o))
	}
	slices.SortFunc(t.sorted, func(a, b *placed) int { return cmp.Compare(a.resource, b.resource) })
	t.claimAll()
	t.bindGateways()
	t.serve()
	t.conclude()
	return &t.out
}

// add takes a route in. Two objects of one name cannot be.
func (t *translation) add(r *route) {
	if t.routes[r.target] == nil {
		p := t.place(r)
		t.routes[r.target] = p
		t.sorted = append(t.sorted, p)
	}
}

// bindGateways tells Gateways and listeners what claims them.
func (t *translation) bindGateways() {
	for name, g := range t.gateways {
		whole := Target{Kind: kindGateway, Namespace: name.Namespace, Name: name.Name}
		g.claim = t.claims[whole]
		for _, l := range g.listeners {
			whole.SectionName = l.name
			l.claim = t.claims[whole]
		}
	}
}

// serve decides over every rule of every route.
func (t *translation) serve() {
	var idle []*placed
	for _, r := range t.sorted {
		if !t.serveRoute(r) {
			idle = append(idle, r)
		}
	}
	if !t.anyController {
		return
	}
	// The user attaches, perhaps to whole Gateways, and perhaps without saying which
	// policy it is: what has no policy must be known too.
	for _, r := range idle {
		if slices.ContainsFunc(r.places, func(p place) bool { return t.caching[p.gateway()] }) {
			decisions := make([]decision, len(r.rules))
			for i := range r.rules {
				decisions[i] = decision{rule: &r.rules[i]}
			}
			if out := t.feedRoute(r, decisions); sendable(out) == nil {
				t.out.Routes = append(t.out.Routes, *out)
			}
		}
	}
	slices.SortFunc(t.out.Routes, func(a, b feed.Route) int { return cmp.Compare(a.Resource(), b.Resource()) })
}

// serveRoute reports whether any policy claims a rule of the route.
func (t *translation) serveRoute(r *placed) bool {
	whole, claimed := t.claims[r.target], false
	decisions := make([]decision, len(r.rules))
	for i := range r.rules {
		decisions[i] = t.decide(r, &r.rules[i], whole)
		claimed = claimed || len(decisions[i].units) > 0
	}
	if !claimed {
		return false
	}
	out := t.feedRoute(r, decisions)
	if err := sendable(out); err == nil {
		t.out.Routes = append(t.out.Routes, *out)
	} else {
		for i := range decisions {
			decisions[i].refuse(r, ReasonUnsupported, "the data plane cannot decide by the route: "+err.Error()+".")
		}
	}
	for i := range decisions {
		t.record(r, &decisions[i])
	}
	t.attach(r, decisions)
	return true
}

// feedRoute is what the data plane is told of a route. Rules without policies are in
// it, so that their requests are not taken for those of another rule.
func (t *translation) feedRoute(r *placed, decisions []decision) *feed.Route {
	out := &feed.Route{Kind: r.target.Kind, Namespace: r.target.Namespace, Name: r.target.Name}
	for i := range decisions {
		if decisions[i].rule.repeats < 0 {
			out.Rules = append(out.Rules, t.feedRule(r, &decisions[i]))
		}
	}
	return out
}

// sendable is why a replica would refuse a route: it is too big, or there is a match
// that cannot be decided by.
func sendable(r *feed.Route) error {
	const surely = feed.MaxResourceBytes / 16 // whatever JSON makes of it
	if roughSize(r) > surely {
		if _, err := feed.Encode(r); err != nil {
			return err
		}
	}
	return cachepolicy.ValidateRoute(r)
}

// roughSize is about how many bytes of text are in a route.
func roughSize(r *feed.Route) int {
	n := 0
	add := func(list []string) {
		for _, s := range list {
			n += len(s) + 8
		}
	}
	for i := range r.Rules {
		u := &r.Rules[i]
		n += 200
		add(u.Policies)
		add(u.EnvoyRoutes)
		add(u.Hosts)
		add(u.Entrances)
		for j := range u.Matches {
			m := &u.Matches[j]
			n += 32 + len(m.Method)
			if m.Path != nil {
				n += 32 + len(m.Path.Value)
			}
			for _, v := range slices.Concat(m.Headers, m.Query) {
				n += 64 + len(v.Name) + len(v.Value)
			}
		}
	}
	return n
}

// attach lists where the filter is wanted, and what a route is affected by.
func (t *translation) attach(r *placed, decisions []decision) {
	affected := Affected{Kind: r.target.Kind, Namespace: r.target.Namespace, Name: r.target.Name,
		Generation: r.generation}
	live := 0
	for i := range decisions {
		if decisions[i].winner != nil {
			live += len(decisions[i].units)
		}
	}
	attached := make([]Attachment, 0, live)
	for i := range decisions {
		d := &decisions[i]
		if d.winner == nil {
			continue
		}
		affected.Policies = append(affected.Policies, d.winner.chain.names...)
		for j := range d.units {
			u := &d.units[j]
			if !u.live() {
				continue
			}
			attached = append(attached, r.attachment(d, u))
			if g := u.place.gateway(); g != nil {
				t.caching[g] = true
			}
			if !slices.ContainsFunc(affected.Parents, func(ref gatewayv1.ParentReference) bool {
				return sameRef(ref, u.place.ref, r.target.Namespace)
			}) {
				affected.Parents = append(affected.Parents, u.place.ref)
			}
		}
	}
	t.attached = append(t.attached, attached)
	if len(affected.Policies) > 0 {
		slices.Sort(affected.Policies)
		affected.Policies = slices.Compact(affected.Policies)
		t.out.Affected = append(t.out.Affected, affected)
	}
}

func (r *placed) attachment(d *decision, u *unit) Attachment {
	p := u.place
	a := Attachment{
		Route: r.target, RuleIndex: d.rule.index, RuleName: d.rule.name, EnvoyNames: d.rule.envoyNames,
		Matches: d.rule.matches, Hosts: p.hosts,
		Layers: u.chain.layers, Scope: d.rule.scope, Port: p.port,
		LongestWait: d.winner.chain.longest,
	}
	if l := p.listener; l != nil {
		a.Listener, a.Protocol = l.name, l.protocol
		a.Class, a.Controller, a.Parent = l.gateway.class, l.gateway.controller, l.gateway.ref
	} else {
		a.Parent = p.key.ref()
	}
	return a
}

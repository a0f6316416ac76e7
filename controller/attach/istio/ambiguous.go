package istio

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/controller/translate"
)

// place is where routes of the same name cannot be told apart: a virtual host of a Gateway's port, or a Service.
type place struct {
	kind   string // of the parent; a classic Gateway is kindClassic
	parent string // namespace/name; of a classic Gateway what it selects
	port   int32  // of Services 0: all of them
	host   string
}

// kindClassic tells the Gateways of networking.istio.io from those of the Gateway API.
const kindClassic = "classic"

// namedRule is a rule with a name.
type namedRule struct {
	kind  string // of the route
	route types.NamespacedName
	index int
	name  string
}

// claims are the rules by the place and the name of their routes in Envoy.
type claims map[claimed][]namedRule

type claimed struct {
	place
	name string
}

func (c claims) add(p place, name string, rule namedRule) {
	key := claimed{p, name}
	if !slices.Contains(c[key], rule) {
		c[key] = append(c[key], rule)
	}
}

// ambiguous refuses the rules whose name another rule has in the same virtual host. A rule of an HTTPRoute without a
// name is called by its namespace, route and place, which no other is.
func ambiguous(routes []gatewayv1.HTTPRoute, gateways map[types.NamespacedName]*gatewayv1.Gateway,
	virtual []*translate.VirtualService, classic map[string]*classicGateway,
) []translate.Guard {
	rules := claims{}
	for i := range routes {
		r := &routes[i]
		named := namedRules(r)
		if len(named) == 0 {
			continue
		}
		for p := range places(r, gateways) {
			for _, rule := range named {
				rules.add(p, rule.name, rule)
			}
		}
	}
	for _, v := range virtual {
		for p := range virtualPlaces(v, classic) {
			for i := range v.Routes {
				rule := namedRule{kindVirtual, types.NamespacedName{Namespace: v.Namespace, Name: v.Name}, i, v.Routes[i].Name}
				for _, name := range v.Routes[i].EnvoyNames() {
					rules.add(p, name, rule)
				}
			}
		}
	}
	return rules.refuse()
}

// refuse refuses the rules that share a name in a place with another.
func (c claims) refuse() []translate.Guard {
	type at struct { // a refused rule, at parents of a kind
		namedRule
		parents string
	}
	refused := map[at]namedRule{}
	for key, same := range c {
		slices.SortFunc(same, compareRules)
		for i, rule := range same {
			if len(same) == 1 {
				break
			}
			other, where := same[(i+1)%len(same)], at{rule, key.place.kind}
			if known, twice := refused[where]; !twice || compareRules(other, known) < 0 {
				refused[where] = other // whatever the order in which places are looked at
			}
		}
	}
	out := make([]translate.Guard, 0, len(refused))
	for where, other := range refused {
		target := translate.Target{Kind: where.kind, Namespace: where.route.Namespace, Name: where.route.Name,
			SectionName: where.name}
		g := refuse(target, reasonAmbiguous, fmt.Sprintf("Istio calls the route of a named rule by that name alone, and "+
			"rule %d of %s %s is named %q too, on the same host; give one of them another name.",
			other.index, other.kind, other.route, other.name))
		if where.parents == kindGateway {
			g.Controller = GatewayController // elsewhere the route's names are its own
		}
		out = append(out, g)
	}
	slices.SortFunc(out, compareGuards)
	// Of two rules of one route with one name there is one target.
	return slices.CompactFunc(out, func(a, b translate.Guard) bool {
		return a.Target == b.Target && a.Controller == b.Controller
	})
}

func compareGuards(a, b translate.Guard) int {
	return cmp.Or(compareTargets(a.Target, b.Target), strings.Compare(a.Controller, b.Controller),
		strings.Compare(a.RefuseMessage, b.RefuseMessage))
}

func compareRules(a, b namedRule) int {
	return cmp.Or(strings.Compare(a.kind, b.kind), strings.Compare(a.route.Namespace, b.route.Namespace),
		strings.Compare(a.route.Name, b.route.Name), cmp.Compare(a.index, b.index))
}

func namedRules(r *gatewayv1.HTTPRoute) []namedRule {
	var out []namedRule
	route := types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
	for i := range r.Spec.Rules {
		if name := r.Spec.Rules[i].Name; name != nil && *name != "" {
			out = append(out, namedRule{kindHTTPRoute, route, i, string(*name)})
		}
	}
	return out
}

// places are the virtual hosts that an HTTPRoute's rules have routes in, each once.
func places(r *gatewayv1.HTTPRoute, gateways map[types.NamespacedName]*gatewayv1.Gateway) map[place]bool {
	out := map[place]bool{}
	for i := range r.Spec.ParentRefs {
		ref := &r.Spec.ParentRefs[i]
		parent := types.NamespacedName{Namespace: r.Namespace, Name: string(ref.Name)}
		if ref.Namespace != nil {
			parent.Namespace = string(*ref.Namespace)
		}
		if refused(r, ref) {
			continue
		}
		if deref(ref.Kind) == kindService {
			out[place{kind: kindService, parent: parent.String()}] = true
			continue
		}
		g := gateways[parent]
		if g == nil {
			continue
		}
		for j := range g.Spec.Listeners {
			l := &g.Spec.Listeners[j]
			if ref.SectionName != nil && *ref.SectionName != l.Name || ref.Port != nil && *ref.Port != l.Port {
				continue
			}
			for _, host := range hosts(string(deref(l.Hostname)), r.Spec.Hostnames) {
				out[place{kindGateway, parent.String(), l.Port, host}] = true
			}
		}
	}
	return out
}

// refused says whether the parent took no such route: then Istio makes none. One that has not been looked at yet may
// become one.
func refused(r *gatewayv1.HTTPRoute, ref *gatewayv1.ParentReference) bool {
	for i := range r.Status.Parents {
		p := &r.Status.Parents[i]
		if p.ControllerName != GatewayController || p.ParentRef.Name != ref.Name ||
			deref(p.ParentRef.Kind) != deref(ref.Kind) || deref(p.ParentRef.Namespace) != deref(ref.Namespace) ||
			deref(p.ParentRef.SectionName) != deref(ref.SectionName) || deref(p.ParentRef.Port) != deref(ref.Port) {
			continue
		}
		for _, c := range p.Conditions {
			if c.Type == string(gatewayv1.RouteConditionAccepted) {
				return c.Status == "False" && c.ObservedGeneration == r.Generation
			}
		}
	}
	return false
}

// hosts are what a listener's hostname and a route's hostnames have in common.
func hosts[T ~string](listener string, hostnames []T) []string {
	listener = strings.ToLower(listener)
	if len(hostnames) == 0 {
		return []string{cmp.Or(listener, "*")}
	}
	var out []string
	for _, h := range hostnames {
		host := strings.ToLower(string(h))
		switch {
		case listener == "" || listener == host || within(host, listener):
			out = append(out, host)
		case within(listener, host):
			out = append(out, listener)
		}
	}
	return out
}

// within says whether a wildcard covers a host, or a wildcard below it.
func within(host, wildcard string) bool {
	suffix, ok := strings.CutPrefix(wildcard, "*")
	return ok && len(host) > len(suffix) && strings.HasSuffix(host, suffix)
}

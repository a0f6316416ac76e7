package translate

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/cachepolicy/feed"
)

// VirtualService is a VirtualService of Istio (networking.istio.io), as far as it
// matters here.
type VirtualService struct {
	Namespace, Name string
	Created         time.Time
	Generation      int64
	Hosts           []string
	// Gateways are as they are written: "name", "namespace/name", or "mesh", which is
	// meant where there are none.
	Gateways []string
	Routes   []VirtualRoute
}

// VirtualRoute is an HTTP route of a VirtualService.
type VirtualRoute struct {
	Name    string // empty: Istio's route in Envoy has no name, and nothing can be attached
	Matches []VirtualMatch
	// Weighted: requests are divided among several destinations.
	Weighted bool
	// Problem is why the route cannot be told in Envoy; a full sentence, empty if it can.
	Problem string
}

// VirtualMatch is a match of a route.
type VirtualMatch struct {
	Name string // the name of its own that a match may have
	feed.Match
	// Others are what is asked for beside, in a form in which no two that differ are
	// alike: it is part of the rule's identity.
	Others string
}

// ClassicGateway is a Gateway of Istio's own kind (networking.istio.io).
type ClassicGateway struct {
	Namespace, Name string
	Created         time.Time
	Generation      int64
	Servers         []ClassicServer
}

// ClassicServer is a server of a ClassicGateway that takes HTTP, with TLS or without.
type ClassicServer struct {
	Port int32
	TLS  bool
	// Hosts are as they are written: "host", or "namespace/host", where the namespace of
	// the routes may be "*" or ".".
	Hosts []string
}

// EnvoyNames are what Istio calls the routes of a rule in Envoy, sorted: the name alone,
// and for matches with a name of their own that behind it. None without a name.
func (s *VirtualRoute) EnvoyNames() []string {
	if s.Name == "" {
		return nil
	}
	names := make([]string, 0, max(1, len(s.Matches)))
	for i := range s.Matches {
		names = append(names, envoyName(s.Name, s.Matches[i].Name))
	}
	if len(names) == 0 {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Parents are the Gateways and Services that a VirtualService is for; hosts that are no
// Services are said by the VirtualService itself.
func (o *VirtualService) Parents() []Target {
	var out []Target
	for _, p := range virtualParents(o) {
		out = append(out, Target{Kind: p.kind, Namespace: p.namespace, Name: p.name})
	}
	return out
}

const kindVirtualService = cachepolicy.KindVirtualService

// gatewayMesh is the name by which a VirtualService means the sidecars.
const gatewayMesh = "mesh"

// fromVirtualService brings a VirtualService into the form that all routes have.
func fromVirtualService(o *VirtualService) *route {
	r := &route{
		target:     Target{Kind: kindVirtualService, Namespace: o.Namespace, Name: o.Name},
		group:      cachepolicy.IstioGroup,
		created:    o.Created,
		generation: o.Generation,
		rules:      make([]rule, len(o.Routes)),
	}
	for _, host := range o.Hosts {
		if host == "*" {
			r.hosts = nil
			break
		}
		r.hosts = append(r.hosts, strings.ToLower(host))
	}
	for i := range o.Routes {
		r.rules[i] = fromVirtualRoute(o, i)
	}
	for _, key := range virtualParents(o) {
		r.parents = append(r.parents, parent{ref: key.ref(), key: key, answers: []answer{{accepted: true}}})
	}
	r.finish()
	return r
}

func fromVirtualRoute(o *VirtualService, index int) rule {
	s := &o.Routes[index]
	u := rule{name: s.Name, weighted: s.Weighted, problem: s.Problem, envoyNames: s.EnvoyNames()}
	switch {
	case u.problem != "":
	case s.Name == "":
		u.problem = "A route of a VirtualService without a name has none in Envoy either, so nothing can be attached to " +
			"it; give it one."
	case slices.ContainsFunc(o.Routes[:index], func(other VirtualRoute) bool { return other.Name == s.Name }),
		slices.ContainsFunc(o.Routes[index+1:], func(other VirtualRoute) bool { return other.Name == s.Name }):
		u.problem = "Several routes of the VirtualService have the name " + quoted(s.Name) + "; give them names of their own."
	}
	for i := range s.Matches {
		u.matches = append(u.matches, s.Matches[i].whole())
	}
	return u
}

// whole is the match with what it asks for beside: as a header field that no request
// has. So the rule is another than one that asks for less, and no request is taken for
// one of its own that does not say so.
func (m *VirtualMatch) whole() feed.Match {
	out := m.Match
	if m.Others != "" {
		out.Headers = append(slices.Clone(out.Headers), feed.ValueMatch{Type: "Exact", Name: ":others", Value: m.Others})
	}
	return out
}

// envoyName is what Istio calls the route of a match in Envoy.
func envoyName(route, match string) string {
	if match == "" {
		return route
	}
	return route + "." + match
}

// virtualParents are the Gateways that a VirtualService names, and for the mesh the
// Services that its hosts are. Of other hosts nothing is known: for those stands the
// VirtualService itself.
func virtualParents(o *VirtualService) []ancestorKey {
	gateways := o.Gateways
	if len(gateways) == 0 {
		gateways = []string{gatewayMesh}
	}
	var out []ancestorKey
	for _, name := range gateways {
		if name == gatewayMesh {
			out = append(out, meshParents(o)...)
			continue
		}
		namespace, name, ok := strings.Cut(name, "/")
		if !ok {
			namespace, name = o.Namespace, namespace
		}
		out = append(out, ancestorKey{cachepolicy.IstioGroup, kindGateway, namespace, name})
	}
	return out
}

func meshParents(o *VirtualService) []ancestorKey {
	var out []ancestorKey
	for _, host := range o.Hosts {
		name, rest, dotted := strings.Cut(strings.ToLower(host), ".")
		namespace, _, service := strings.Cut(rest, ".svc.")
		switch {
		case strings.HasPrefix(host, "*"), dotted && (!service || strings.Contains(namespace, ".")):
			out = append(out, ancestorKey{cachepolicy.IstioGroup, kindVirtualService, o.Namespace, o.Name})
			continue
		case !dotted:
			namespace = o.Namespace
		}
		out = append(out, ancestorKey{"", kindService, namespace, name})
	}
	return out
}

// newClassicGateways returns Istio's own Gateways by name, in the form of the others: a
// listener for each host of each server.
func newClassicGateways(in *Input) map[types.NamespacedName]*gateway {
	out := make(map[types.NamespacedName]*gateway, len(in.ClassicGateways))
	at := slices.IndexFunc(in.Controllers, func(c Controller) bool { return c.Mesh })
	var list []*gateway
	for _, o := range in.ClassicGateways {
		g := &gateway{
			name:    types.NamespacedName{Namespace: o.Namespace, Name: o.Name},
			key:     ancestorKey{cachepolicy.IstioGroup, kindGateway, o.Namespace, o.Name},
			created: o.Created, generation: o.Generation, unreachable: true,
		}
		g.ref = g.key.ref()
		switch {
		case at >= 0:
			g.handler = &in.Controllers[at]
			g.controller = g.handler.Name
		case len(in.Controllers) > 0:
			c := no(ReasonUnsupported, "Gateway "+g.name.String()+" is Istio's, to which weir-controller does not attach: "+
				"see its flag --attach.")
			g.refusal = &c
		}
		for i := range o.Servers {
			g.addServer(&o.Servers[i])
		}
		if out[g.name] == nil {
			out[g.name] = g
			list = append(list, g)
		}
	}
	slices.SortFunc(list, func(a, b *gateway) int {
		return cmp.Or(a.created.Compare(b.created), compareNames(a.name, b.name))
	})
	for i, g := range list {
		g.rank = len(in.Gateways) + i // after those of the Gateway API
	}
	return out
}

// addServer adds a listener for each host of a server.
func (g *gateway) addServer(s *ClassicServer) {
	for _, host := range s.Hosts {
		from := gatewayv1.NamespacesFromAll
		allowed := &gatewayv1.RouteNamespaces{From: &from}
		if namespace, name, ok := strings.Cut(host, "/"); ok {
			host = name
			if namespace == "." {
				namespace = g.name.Namespace
			}
			if namespace != "*" {
				from = gatewayv1.NamespacesFromSelector
				allowed.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}}
			}
		}
		l := &listener{gateway: g, index: len(g.listeners), hostname: strings.ToLower(host), port: s.Port,
			protocol: gatewayv1.HTTPProtocolType, allowed: &gatewayv1.AllowedRoutes{Namespaces: allowed}}
		if s.TLS {
			l.protocol = gatewayv1.HTTPSProtocolType
		}
		if l.hostname == "*" {
			l.hostname = ""
		}
		g.listeners = append(g.listeners, l)
	}
}

package translate

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/cachepolicy/feed"
)

// ancestorKey is an object that a policy's status speaks of.
type ancestorKey struct{ group, kind, namespace, name string }

// ref is the object as a reference, nothing left to defaults.
func (k ancestorKey) ref() gatewayv1.ParentReference {
	group, kind, namespace := gatewayv1.Group(k.group), gatewayv1.Kind(k.kind), gatewayv1.Namespace(k.namespace)
	return gatewayv1.ParentReference{Group: &group, Kind: &kind, Namespace: &namespace, Name: gatewayv1.ObjectName(k.name)}
}

// String is the object in messages.
func (k ancestorKey) String() string { return k.kind + " " + k.namespace + "/" + k.name }

func (k ancestorKey) compare(other ancestorKey) int {
	return cmp.Or(cmp.Compare(k.group, other.group), cmp.Compare(k.kind, other.kind),
		cmp.Compare(k.namespace, other.namespace), cmp.Compare(k.name, other.name))
}

// place is where a route is served: at a listener of a Gateway, or for the callers of a
// Service (mesh).
type place struct {
	key      ancestorKey
	listener *listener                 // nil for a Service
	ref      gatewayv1.ParentReference // as the route has it
	port     int32
	hosts    []string // none: every host
}

func (p *place) gateway() *gateway {
	if p.listener == nil {
		return nil
	}
	return p.listener.gateway
}

func (p *place) controller() string {
	if g := p.gateway(); g != nil {
		return g.controller
	}
	return ""
}

// handler is the Controller that attaches here; nil: the user attaches.
func (p *place) handler() *Controller {
	if g := p.gateway(); g != nil {
		return g.handler
	}
	return nil
}

// site is a parent of a route, and why the route is not served there.
type site struct {
	key        ancestorKey
	controller string
	problem    *Condition // nil: it is served
}

// placed is a route with its places and sites.
type placed struct {
	*route
	resource string  // its name in the feed
	places   []place // older Gateways first, then Services
	sites    []site  // one for each parent object
}

// site adds what is known of a parent object. One parentRef that is served is enough.
func (r *placed) site(s site) {
	for i := range r.sites {
		if r.sites[i].key == s.key {
			if s.problem == nil {
				r.sites[i] = s
			}
			return
		}
	}
	r.sites = append(r.sites, s)
}

// place finds out where a route is served.
func (t *translation) place(r *route) *placed {
	name := feed.Route{Kind: r.target.Kind, Namespace: r.target.Namespace, Name: r.target.Name}
	out := &placed{route: r, resource: name.Resource()}
	for i := range r.parents {
		p := &r.parents[i]
		switch {
		case p.key.group == gatewayv1.GroupName && p.key.kind == kindGateway:
			t.placeAtGateway(out, p, t.gateways)
		case p.key.group == cachepolicy.IstioGroup && p.key.kind == kindGateway:
			t.placeAtGateway(out, p, t.classic)
		case p.key.group == "" && p.key.kind == kindService:
			t.placeAtService(out, p)
		case p.key.kind == kindVirtualService:
			c := no(ReasonUnsupported, r.String()+
				" is for hosts that are no Services here; of those in the mesh nothing can be cached.")
			out.site(site{key: p.key, problem: &c})
		default:
			c := no(ReasonUnsupported, r.String()+" has a parent of the kind "+p.key.kind+
				", to which weir-controller does not attach.")
			out.site(site{key: p.key, problem: &c})
		}
	}
	slices.SortStableFunc(out.places, comparePlaces)
	out.places = slices.CompactFunc(out.places, func(a, b place) bool { return comparePlaces(a, b) == 0 })
	return out
}

// comparePlaces puts older Gateways first, and Services last.
func comparePlaces(a, b place) int {
	switch {
	case a.listener != nil && b.listener != nil:
		return cmp.Or(cmp.Compare(a.listener.gateway.rank, b.listener.gateway.rank),
			cmp.Compare(a.listener.index, b.listener.index))
	case a.listener != nil:
		return -1
	case b.listener != nil:
		return 1
	}
	return cmp.Or(a.key.compare(b.key), cmp.Compare(a.port, b.port))
}

func (t *translation) placeAtGateway(r *placed, p *parent, gateways map[types.NamespacedName]*gateway) {
	g := gateways[types.NamespacedName{Namespace: p.key.namespace, Name: p.key.name}]
	s := site{key: p.key}
	if g != nil {
		s.controller = g.controller
		s.problem = g.refusal
	} else {
		c := no(ReasonTargetNotAttached, r.String()+" names "+p.key.String()+", which does not exist.")
		s.problem = &c
	}
	if s.problem == nil {
		s.problem = t.notAccepted(r, p, g.controller)
	}
	if s.problem == nil {
		before := len(r.places)
		for _, l := range g.listeners {
			t.placeAtListener(r, p, l)
		}
		if len(r.places) == before {
			c := no(ReasonTargetNotAttached, r.String()+" matches no listener for HTTP of "+p.key.String()+".")
			s.problem = &c
		}
	}
	r.site(s)
}

func (t *translation) placeAtListener(r *placed, p *parent, l *listener) {
	if p.ref.SectionName != nil && string(*p.ref.SectionName) != l.name ||
		p.ref.Port != nil && *p.ref.Port != l.port || !l.takes(r.route, t.namespaces) {
		return
	}
	if hosts, ok := commonHosts(l.hostname, r.hosts); ok {
		r.places = append(r.places, place{key: p.key, listener: l, ref: p.ref, port: l.port, hosts: hosts})
	}
}

// notAccepted is why an implementation does not serve a route at a parent.
func (t *translation) notAccepted(r *placed, p *parent, controller string) *Condition {
	why, ok := p.accepted(controller)
	if ok {
		return nil
	}
	message := r.String() + " is not yet accepted by " + p.key.String() + "."
	if why != "" {
		message = r.String() + " is not accepted by " + p.key.String() + ": " + why
	}
	c := no(ReasonTargetNotAttached, message)
	return &c
}

func (t *translation) placeAtService(r *placed, p *parent) {
	s := site{key: p.key}
	refuse := func(reason, message string) {
		c := no(reason, message)
		s.problem = &c
	}
	switch {
	case !t.mesh:
		refuse(ReasonUnsupported, r.String()+" has "+p.key.String()+
			" as a parent, and weir-controller attaches to no mesh: see its flag --attach.")
	case !t.services[types.NamespacedName{Namespace: p.key.namespace, Name: p.key.name}]:
		refuse(ReasonTargetNotAttached, r.String()+" names "+p.key.String()+", which does not exist.")
	default:
		s.problem = t.notAccepted(r, p, "")
	}
	if s.problem == nil {
		host := p.key.name + "." + p.key.namespace
		r.places = append(r.places, place{key: p.key, ref: p.ref, port: deref(p.ref.Port),
			hosts: []string{host, host + ".svc", host + ".svc.cluster.local"}})
	}
	r.site(s)
}

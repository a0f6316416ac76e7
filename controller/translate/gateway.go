package translate

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// gateway is a Gateway, with what decides whether and how the filter is attached.
type gateway struct {
	name       types.NamespacedName
	key        ancestorKey
	ref        gatewayv1.ParentReference
	created    time.Time
	generation int64
	class      string
	controller string      // spec.controllerName of the class
	handler    *Controller // nil: the user attaches
	refusal    *Condition  // why nothing can be attached
	listeners  []*listener
	// unreachable: it is not known where it is reached.
	unreachable bool
	address     string // from its status; empty: none
	rank        int    // by age, then by name
	claim       *claim // of all of it
}

// listener is a listener of a Gateway that takes HTTP.
type listener struct {
	gateway     *gateway
	index       int
	name        string
	hostname    string // in lower case; empty: every host
	port        int32
	protocol    gatewayv1.ProtocolType
	allowed     *gatewayv1.AllowedRoutes
	clientCerts bool // it asks for certificates of clients
	certificate *types.NamespacedName
	claim       *claim // of the listener alone
}

// newGateways returns the Gateways by name.
func newGateways(in *Input) map[types.NamespacedName]*gateway {
	classes := make(map[string]string, len(in.GatewayClasses))
	for _, c := range in.GatewayClasses {
		classes[c.Name] = string(c.Spec.ControllerName)
	}
	out := make(map[types.NamespacedName]*gateway, len(in.Gateways))
	list := make([]*gateway, 0, len(in.Gateways))
	for _, o := range in.Gateways {
		g := newGateway(o)
		if out[g.name] != nil {
			continue
		}
		g.judge(in.Controllers, classes, o)
		out[g.name] = g
		list = append(list, g)
	}
	slices.SortFunc(list, func(a, b *gateway) int {
		return cmp.Or(a.created.Compare(b.created), compareNames(a.name, b.name))
	})
	for i, g := range list {
		g.rank = i
	}
	return out
}

func newGateway(o *gatewayv1.Gateway) *gateway {
	g := &gateway{
		name:    types.NamespacedName{Namespace: o.Namespace, Name: o.Name},
		key:     ancestorKey{group: gatewayv1.GroupName, kind: kindGateway, namespace: o.Namespace, name: o.Name},
		created: o.CreationTimestamp.Time, generation: o.Generation,
		class: string(o.Spec.GatewayClassName),
	}
	g.ref = g.key.ref()
	if len(o.Status.Addresses) > 0 {
		g.address = o.Status.Addresses[0].Value
	}
	for i := range o.Spec.Listeners {
		s := &o.Spec.Listeners[i]
		if s.Protocol != gatewayv1.HTTPProtocolType && s.Protocol != gatewayv1.HTTPSProtocolType {
			continue
		}
		g.listeners = append(g.listeners, &listener{
			gateway: g, index: i, name: string(s.Name),
			hostname: strings.ToLower(string(deref(s.Hostname))),
			port:     s.Port, protocol: s.Protocol, allowed: s.AllowedRoutes,
			clientCerts: s.Protocol == gatewayv1.HTTPSProtocolType && asksForCertificates(o.Spec.TLS, s.Port),
			certificate: certificateRef(s, o.Namespace),
		})
	}
	return g
}

// judge says who attaches to the Gateway, and whether anybody can.
func (g *gateway) judge(controllers []Controller, classes map[string]string, o *gatewayv1.Gateway) {
	controller, ok := classes[g.class]
	g.controller = controller
	refuse := func(reason, message string) {
		c := no(reason, message)
		g.refusal = &c
	}
	at := slices.IndexFunc(controllers, func(c Controller) bool { return c.Name == controller })
	switch {
	case !ok:
		refuse(ReasonUnsupported, "Gateway "+g.name.String()+" has the class "+quoted(g.class)+", which does not exist.")
	case len(controllers) > 0 && at < 0:
		refuse(ReasonUnsupported, "Gateway "+g.name.String()+" has the class "+quoted(g.class)+" of the controller "+
			quoted(controller)+", to which weir-controller does not attach: see its flag --attach.")
	case at >= 0 && controllers[at].Refusal != "":
		refuse(ReasonUnsupported, controllers[at].Refusal)
	case at >= 0:
		g.handler = &controllers[at]
	}
	if g.refusal != nil {
		return
	}
	for _, c := range o.Status.Conditions {
		if c.Type == string(gatewayv1.GatewayConditionAccepted) && c.Status == metav1.ConditionFalse {
			refuse(ReasonTargetNotAttached, "Gateway "+g.name.String()+" is not accepted by its controller: "+
				c.Reason+": "+c.Message)
		}
	}
}

// listener returns the listener of that name, if it takes HTTP.
func (g *gateway) listener(name string) *listener {
	for _, l := range g.listeners {
		if l.name == name {
			return l
		}
	}
	return nil
}

func asksForCertificates(tls *gatewayv1.GatewayTLSConfig, port gatewayv1.PortNumber) bool {
	if tls == nil || tls.Frontend == nil {
		return false
	}
	for i := range tls.Frontend.PerPort {
		if p := &tls.Frontend.PerPort[i]; p.Port == port {
			return p.TLS.Validation != nil
		}
	}
	return tls.Frontend.Default.Validation != nil
}

// certificateRef is the first Secret with a certificate of the listener.
func certificateRef(s *gatewayv1.Listener, namespace string) *types.NamespacedName {
	if s.TLS == nil {
		return nil
	}
	for _, ref := range s.TLS.CertificateRefs {
		if deref(ref.Group) == "" && (ref.Kind == nil || *ref.Kind == "Secret") {
			name := types.NamespacedName{Namespace: namespace, Name: string(ref.Name)}
			if ref.Namespace != nil {
				name.Namespace = string(*ref.Namespace)
			}
			return &name
		}
	}
	return nil
}

// takes reports whether a listener lets routes of that kind and namespace in.
func (l *listener) takes(r *route, namespaces map[string]labels.Set) bool {
	if l.allowed == nil {
		return r.target.Namespace == l.gateway.name.Namespace
	}
	if len(l.allowed.Kinds) > 0 && !slices.ContainsFunc(l.allowed.Kinds, func(k gatewayv1.RouteGroupKind) bool {
		return string(k.Kind) == r.target.Kind && (k.Group == nil && r.group == gatewayv1.GroupName ||
			k.Group != nil && string(*k.Group) == r.group)
	}) {
		return false
	}
	from := gatewayv1.NamespacesFromSame
	if l.allowed.Namespaces != nil && l.allowed.Namespaces.From != nil {
		from = *l.allowed.Namespaces.From
	}
	switch from {
	case gatewayv1.NamespacesFromAll:
		return true
	case gatewayv1.NamespacesFromSame:
		return r.target.Namespace == l.gateway.name.Namespace
	case gatewayv1.NamespacesFromSelector:
		selector, err := metav1.LabelSelectorAsSelector(l.allowed.Namespaces.Selector)
		return err == nil && selector.Matches(namespaces[r.target.Namespace])
	}
	return false
}

func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

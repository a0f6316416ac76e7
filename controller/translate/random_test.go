package translate_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	"github.com/weirproxy/weir/controller/translate"
)

// random makes inputs from few names, so that much meets: targets that are there and
// not, conflicts, several Gateways, policies that are broken or do not go together.
type random struct{ *rand.Rand }

func newRandom(seed uint64) random { return random{rand.New(rand.NewPCG(seed, 1))} }

func pick[T any](r random, list ...T) T { return list[r.IntN(len(list))] }

// chance is true in one of n cases.
func (r random) chance(n int) bool { return r.IntN(n) == 0 }

func (r random) created() metav1.Time {
	if r.chance(4) {
		return metav1.Time{}
	}
	return metav1.NewTime(time.Unix(1_700_000_000+int64(r.IntN(3)), 0))
}

// input makes an Input. A plain one has no Guards, nothing that is broken, one listener a
// Gateway and one parent a route.
func (r random) input(plain bool) *translate.Input {
	in := &translate.Input{
		GatewayClasses: []*gatewayv1.GatewayClass{newClass("eg", envoyGateway), newClass("istio", istio),
			newClass("kong", "konghq.com/kic")},
	}
	if plain || !r.chance(4) {
		in.Controllers = []translate.Controller{envoyGatewayController(),
			{Name: istio, Attachment: "istio", Mesh: true, MessageTimeout: time.Second, MaxMessageTimeout: time.Minute}}
	}
	for _, ns := range []string{"infra", "shop"} {
		in.Namespaces = append(in.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns,
			Labels: map[string]string{"team": ns}}})
		in.Services = append(in.Services, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}})
		for _, name := range []string{"a", "b"} {
			in.Gateways = append(in.Gateways, r.gateway(ns, name, plain))
		}
		for i := range 4 {
			in.HTTPRoutes = append(in.HTTPRoutes, r.route(in, ns, fmt.Sprintf("route-%d", i), plain))
		}
		for i := range 8 {
			in.CachePolicies = append(in.CachePolicies, r.policy(ns, i, plain))
		}
	}
	if plain {
		return in
	}
	for i := range 3 {
		in.VirtualServices = append(in.VirtualServices, r.virtualService(fmt.Sprintf("route-%d", i)))
	}
	in.ClassicGateways = []*translate.ClassicGateway{
		{Namespace: "shop", Name: "a", Servers: []translate.ClassicServer{{Port: 80, Hosts: []string{"*/*.example.com", "*"}}}},
		{Namespace: "infra", Name: "a", Created: r.created().Time,
			Servers: []translate.ClassicServer{{Port: 443, TLS: true, Hosts: []string{"./*"}}, {Port: 80, Hosts: []string{"shop/*"}}}},
	}
	for range r.IntN(4) {
		in.Guards = append(in.Guards, r.guard())
		in.Addresses = append(in.Addresses, translate.Address{
			Gateway:  types.NamespacedName{Namespace: pick(r, "infra", "shop"), Name: pick(r, "a", "b")},
			Listener: pick(r, "", "http", "https"), Host: pick(r, "envoy", "10.0.0.1"), Port: pick[int32](r, 0, 8080),
			None: r.chance(3)})
	}
	return in
}

const istio = "istio.io/gateway-controller"

func (r random) gateway(ns, name string, plain bool) *gatewayv1.Gateway {
	g := newGateway(ns, name, "http")
	g.CreationTimestamp = r.created()
	if plain {
		return g
	}
	g.Spec.GatewayClassName = pick[gatewayv1.ObjectName](r, "eg", "eg", "eg", "istio", "kong", "none")
	g.Spec.Listeners[0].Hostname = r.hostname()
	https := gatewayv1.Listener{Name: "https", Port: 443, Protocol: gatewayv1.HTTPSProtocolType, Hostname: r.hostname(),
		TLS: &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{{Name: "tls"}}}}
	if r.chance(2) {
		g.Spec.Listeners = append(g.Spec.Listeners, https)
	}
	from := pick(r, gatewayv1.NamespacesFromSame, gatewayv1.NamespacesFromSelector, gatewayv1.NamespacesFromAll)
	g.Spec.Listeners[0].AllowedRoutes.Namespaces = &gatewayv1.RouteNamespaces{From: &from,
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": pick(r, "shop", "infra")}}}
	if r.chance(6) {
		g.Status.Conditions = []metav1.Condition{{Type: "Accepted", Status: metav1.ConditionFalse, Reason: "Invalid"}}
	}
	return g
}

func (r random) hostname() *gatewayv1.Hostname {
	h := pick[gatewayv1.Hostname](r, "", "*.example.com", "a.example.com", "*.com")
	if h == "" {
		return nil
	}
	return &h
}

func (r random) route(in *translate.Input, ns, name string, plain bool) *gatewayv1.HTTPRoute {
	o := newRoute(ns, name, pick(r, "infra", "shop"), pick(r, "a", "b"))
	o.CreationTimestamp, o.Generation = r.created(), int64(r.IntN(3))
	for range r.IntN(3) {
		if plain {
			break
		}
		ref := newRoute(ns, name, pick(r, "infra", "shop"), pick(r, "a", "b", "gone")).Spec.ParentRefs[0]
		if r.chance(3) {
			section := pick[gatewayv1.SectionName](r, "http", "https", "gone")
			ref.SectionName = &section
		}
		if r.chance(4) {
			group, kind := gatewayv1.Group(""), gatewayv1.Kind("Service")
			ref.Group, ref.Kind, ref.Name = &group, &kind, pick[gatewayv1.ObjectName](r, "web", "gone")
		}
		o.Spec.ParentRefs = append(o.Spec.ParentRefs, ref)
	}
	for range r.IntN(3) {
		if h := r.hostname(); h != nil {
			o.Spec.Hostnames = append(o.Spec.Hostnames, *h)
		}
	}
	for i := range r.IntN(4) {
		addRule(o, pick(r, "", "one", fmt.Sprintf("rule-%d", i)), pick(r, "/", "/a", "/b/", "/"+name))
		u := &o.Spec.Rules[i]
		if r.chance(8) {
			kind := gatewayv1.PathMatchRegularExpression
			u.Matches[0].Path.Type = &kind
			*u.Matches[0].Path.Value = pick(r, "/x.*", "/(")
		}
		for range r.IntN(3) {
			u.BackendRefs = append(u.BackendRefs, gatewayv1.HTTPBackendRef{})
		}
	}
	if r.chance(6) {
		o.Status.Parents = []gatewayv1.RouteParentStatus{{ParentRef: o.Spec.ParentRefs[0], ControllerName: envoyGateway}}
	}
	accept(in, o)
	return o
}

func (r random) virtualService(name string) *translate.VirtualService {
	o := &translate.VirtualService{Namespace: pick(r, "infra", "shop"), Name: name, Created: r.created().Time,
		Hosts:    pick(r, []string{"web"}, []string{"a.example.com", "web.shop.svc.cluster.local"}, []string{"*"}),
		Gateways: pick(r, nil, []string{"a"}, []string{"mesh", "infra/a"}, []string{"gone", "shop/a"}, []string{"shop/a", "infra/a"})}
	for range r.IntN(4) {
		o.Routes = append(o.Routes, translate.VirtualRoute{Name: pick(r, "", "one", "rule-1"), Weighted: r.chance(3),
			Problem: pick(r, "", "", "It cannot be told."),
			Matches: pick(r, nil, []translate.VirtualMatch{{Name: "m", Others: pick(r, "", "x")}})})
	}
	return o
}

func (r random) policy(ns string, i int, plain bool) *v1alpha1.CachePolicy {
	p := newPolicy(ns, i)
	p.CreationTimestamp = r.created()
	for range 1 + r.IntN(3) {
		kind, name := pick(r, "Gateway", "HTTPRoute", "HTTPRoute"), pick(r, "a", "b")
		if !plain && r.chance(4) {
			ref := target("VirtualService", fmt.Sprintf("route-%d", r.IntN(3)), pick(r, "", "one"))
			ref.Group = "networking.istio.io"
			p.Spec.TargetRefs = append(p.Spec.TargetRefs, ref)
			continue
		}
		section := pick(r, "", "", "http", "https", "gone")
		if kind == "HTTPRoute" {
			name, section = fmt.Sprintf("route-%d", r.IntN(5)), pick(r, "", "", "one", "rule-1", "gone")
		}
		p.Spec.TargetRefs = append(p.Spec.TargetRefs, target(kind, name, section))
	}
	spec := &p.Spec
	if plain {
		return p
	}
	spec.TTL = pick(r, nil, &v1alpha1.TTL{Default: duration("60s")}, &v1alpha1.TTL{Min: duration("5m")},
		&v1alpha1.TTL{Max: duration("2m")}, &v1alpha1.TTL{Origin: new(v1alpha1.Origin("IgnoreFreshness"))})
	spec.JitterPercent = pick(r, nil, nil, new(int32(7)), new(int32(101)))
	spec.Mode = pick(r, nil, nil, new(v1alpha1.Mode("Shadow")))
	spec.Key = pick(r, nil, nil, &v1alpha1.Key{Headers: []gatewayv1.HeaderName{"X-Tenant"}})
	spec.Mesh = pick(r, nil, &v1alpha1.Mesh{ServerAuthorization: new(v1alpha1.ServerAuthorization("SkipOnHit"))})
	return p
}

func (r random) guard() translate.Guard {
	g := translate.Guard{
		Target: pick(r,
			translate.Target{Kind: "Gateway", Namespace: pick(r, "infra", "shop"), Name: pick(r, "a", "b"),
				SectionName: pick(r, "", "http")},
			translate.Target{Kind: "HTTPRoute", Namespace: pick(r, "infra", "shop"), Name: fmt.Sprintf("route-%d", r.IntN(4)),
				SectionName: pick(r, "", "one")}),
		Class: pick(r, "", "x"), Controller: pick(r, "", istio), Inherits: r.chance(2),
		Note: pick(r, "", "Note 1.", "Note 2."), NoDetachedFetch: r.chance(3),
	}
	if r.chance(3) {
		g.RefuseReason, g.RefuseMessage = "Authorization", pick(r, "Authorization 1.", "Authorization 2.")
	}
	return g
}

package translate_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	"github.com/weirproxy/weir/controller/translate"
)

// BenchmarkTranslate is the size that is promised: 1,000 policies on 10,000 routes in
// at most 2 s.
func BenchmarkTranslate(b *testing.B) {
	for _, size := range []struct{ policies, routes int }{{10, 100}, {100, 1000}, {1000, 10_000}} {
		b.Run(fmt.Sprintf("policies=%d/routes=%d", size.policies, size.routes), func(b *testing.B) {
			in := largeInput(size.policies, size.routes)
			b.ReportAllocs()
			before := cpuTime(b)
			for b.Loop() {
				if out := translate.Translate(in); len(out.Routes) != size.routes {
					b.Fatalf("%d routes", len(out.Routes))
				}
			}
			b.ReportMetric(float64((cpuTime(b)-before).Milliseconds())/float64(b.N), "cpu-ms/op")
		})
	}
}

// cpuTime is what the process has used so far: on a busy machine the wall clock says
// more of the others.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestWorkInProportion wants ten times the objects to take about ten times the
// allocations: no index is missing.
func TestWorkInProportion(t *testing.T) {
	small, large := largeInput(30, 300), largeInput(300, 3000)
	few := testing.AllocsPerRun(1, func() { translate.Translate(small) })
	many := testing.AllocsPerRun(1, func() { translate.Translate(large) })
	if ratio := many / few; ratio > 12 {
		t.Errorf("ten times the objects take %.1f times the allocations", ratio)
	}
}

// largeInput has 10 Gateways with a policy each, and routes of two rules; the other
// policies are on routes, and on rules of them.
func largeInput(policies, routes int) *translate.Input {
	in := &translate.Input{
		GatewayClasses: []*gatewayv1.GatewayClass{newClass("eg", envoyGateway)},
		Controllers:    []translate.Controller{envoyGatewayController()},
	}
	const gateways = 10
	for i := range gateways {
		in.Gateways = append(in.Gateways, newGateway("infra", fmt.Sprintf("gateway-%d", i), "http", "internal"))
	}
	for i := range routes {
		r := newRoute(fmt.Sprintf("team-%d", i%100), fmt.Sprintf("route-%d", i), "infra", fmt.Sprintf("gateway-%d", i%gateways))
		r.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(fmt.Sprintf("host-%d.example.com", i/4))}
		addRule(r, "products", fmt.Sprintf("/products/%d", i), fmt.Sprintf("/p/%d", i))
		addRule(r, "", fmt.Sprintf("/rest/%d", i))
		accept(in, r)
		in.HTTPRoutes = append(in.HTTPRoutes, r)
	}
	for i := range policies {
		var p *v1alpha1.CachePolicy
		switch {
		case i < gateways:
			p = newPolicy("infra", i, target("Gateway", fmt.Sprintf("gateway-%d", i), ""))
			p.Spec.TTL = &v1alpha1.TTL{Default: duration("60s")}
		case i%2 == 0:
			p = newPolicy(fmt.Sprintf("team-%d", i%100), i, target("HTTPRoute", fmt.Sprintf("route-%d", i), ""))
			p.Spec.TTL = &v1alpha1.TTL{Max: duration("1h")}
		default:
			p = newPolicy(fmt.Sprintf("team-%d", i%100), i, target("HTTPRoute", fmt.Sprintf("route-%d", i), "products"))
			p.Spec.TTL = &v1alpha1.TTL{Default: duration("30s")}
		}
		in.CachePolicies = append(in.CachePolicies, p)
	}
	return in
}

func newGateway(namespace, name string, listeners ...string) *gatewayv1.Gateway {
	g := &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:   gatewayv1.GatewaySpec{GatewayClassName: "eg"},
		Status: gatewayv1.GatewayStatus{Addresses: []gatewayv1.GatewayStatusAddress{{Value: "10.0.0.1"}}}}
	all := gatewayv1.NamespacesFromAll
	for i, l := range listeners {
		g.Spec.Listeners = append(g.Spec.Listeners, gatewayv1.Listener{Name: gatewayv1.SectionName(l),
			Port: gatewayv1.PortNumber(80 + i), Protocol: gatewayv1.HTTPProtocolType,
			AllowedRoutes: &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{From: &all}}})
	}
	return g
}

func newRoute(namespace, name, gatewayNamespace, gateway string) *gatewayv1.HTTPRoute {
	from := gatewayv1.Namespace(gatewayNamespace)
	return &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: gatewayv1.HTTPRouteSpec{CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{
			{Namespace: &from, Name: gatewayv1.ObjectName(gateway)}}}}}
}

func addRule(r *gatewayv1.HTTPRoute, name string, paths ...string) {
	rule := gatewayv1.HTTPRouteRule{}
	if name != "" {
		section := gatewayv1.SectionName(name)
		rule.Name = &section
	}
	for _, path := range paths {
		rule.Matches = append(rule.Matches, gatewayv1.HTTPRouteMatch{Path: &gatewayv1.HTTPPathMatch{Value: &path}})
	}
	r.Spec.Rules = append(r.Spec.Rules, rule)
}

func newPolicy(namespace string, i int, targets ...gatewayv1.LocalPolicyTargetReferenceWithSectionName) *v1alpha1.CachePolicy {
	return &v1alpha1.CachePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("policy-%d", i), Generation: 1,
			CreationTimestamp: metav1.NewTime(time.Unix(1_700_000_000+int64(i/3), 0))},
		Spec: v1alpha1.CachePolicySpec{TargetRefs: targets},
	}
}

func target(kind, name, section string) gatewayv1.LocalPolicyTargetReferenceWithSectionName {
	t := gatewayv1.LocalPolicyTargetReferenceWithSectionName{LocalPolicyTargetReference: gatewayv1.LocalPolicyTargetReference{
		Group: gatewayv1.GroupName, Kind: gatewayv1.Kind(kind), Name: gatewayv1.ObjectName(name)}}
	if section != "" {
		s := gatewayv1.SectionName(section)
		t.SectionName = &s
	}
	return t
}

func duration(s string) *gatewayv1.Duration {
	d := gatewayv1.Duration(s)
	return &d
}

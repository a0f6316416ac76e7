package istio

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/controller/attach"
	"github.com/weirproxy/weir/controller/translate"
)

// observed are the objects from which it is learned what Istio makes of routes.
type observed struct {
	classes    []gatewayv1.GatewayClass
	gateways   []gatewayv1.Gateway
	routes     []gatewayv1.HTTPRoute
	services   []corev1.Service
	namespaces []corev1.Namespace
	// authorization are the AuthorizationPolicies, virtual the VirtualServices and classic the Gateways of
	// networking.istio.io.
	authorization, virtual, classic []unstructured.Unstructured
	// deployments are those of proxies that istiod made.
	deployments []unstructured.Unstructured
}

// learn says what is refused, and how it is reached.
func learn(in *observed, c Config) attach.Learned {
	var out attach.Learned
	controllers := map[gatewayv1.ObjectName]string{}
	for i := range in.classes {
		controllers[gatewayv1.ObjectName(in.classes[i].Name)] = string(in.classes[i].Spec.ControllerName)
	}
	images := proxyImages(in.deployments)
	ours := map[types.NamespacedName]*gatewayv1.Gateway{}
	for i := range in.gateways {
		g := &in.gateways[i]
		name := types.NamespacedName{Namespace: g.Namespace, Name: g.Name}
		switch controllers[g.Spec.GatewayClassName] {
		case GatewayController:
			ours[name] = g
			guard, address := learnGateway(g, in.authorization, c)
			out.Guards = append(append(out.Guards, guard...), tooOld(g, images)...)
			out.Addresses = append(out.Addresses, address)
		}
	}
	out.Guards = append(out.Guards, waypointServices(in.services, in.namespaces)...)
	for i := range in.virtual {
		out.VirtualServices = append(out.VirtualServices, fromVirtualService(&in.virtual[i]))
	}
	slices.SortFunc(out.VirtualServices, func(a, b *translate.VirtualService) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	classic := classicGateways(in.classic)
	for _, name := range slices.Sorted(maps.Keys(classic)) {
		out.ClassicGateways = append(out.ClassicGateways, classic[name].ClassicGateway)
	}
	out.Guards = append(out.Guards, ambiguous(in.routes, ours, out.VirtualServices, classic)...)
	// Whatever the order in which the objects were listed.
	slices.SortFunc(out.Guards, compareGuards)
	slices.SortFunc(out.Addresses, func(a, b translate.Address) int {
		return cmp.Or(strings.Compare(a.Gateway.Namespace, b.Gateway.Namespace),
			strings.Compare(a.Gateway.Name, b.Gateway.Name))
	})
	return out
}

func compareTargets(a, b translate.Target) int {
	return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Namespace, b.Namespace),
		strings.Compare(a.Name, b.Name), strings.Compare(a.SectionName, b.SectionName))
}

// Reasons of Accepted that Istio is the cause of.
const (
	reasonUnsupported = "UnsupportedParent"
	reasonAmbiguous   = "AmbiguousRouteName"
	reasonTooOld      = "ProxyTooOld"
)

// learnGateway says what is so at a Gateway, and where its listeners are reached: by the Service that istiod makes.
func learnGateway(g *gatewayv1.Gateway, policies []unstructured.Unstructured, c Config) (
	[]translate.Guard, translate.Address,
) {
	target := translate.Target{Kind: kindGateway, Namespace: g.Namespace, Name: g.Name}
	name := types.NamespacedName{Namespace: g.Namespace, Name: g.Name}
	if len(g.Spec.Addresses) > 0 {
		// The proxies are somebody's own Deployment then, and do not carry the Gateway's name.
		return []translate.Guard{refuse(target, reasonUnsupported, "The Gateway names an address of its own "+
				"(spec.addresses), so its proxies are not Istio's to deploy and a filter cannot be targeted at them.")},
			translate.Address{Gateway: name, None: true}
	}
	service := g.Name + "-" + string(g.Spec.GatewayClassName)
	if override := g.Annotations["gateway.istio.io/name-override"]; override != "" {
		service = override
	}
	address := translate.Address{Gateway: name, Host: service + "." + g.Namespace + ".svc." + c.ClusterDomain}
	if slices.ContainsFunc(policies, func(p unstructured.Unstructured) bool { return mayConcern(&p, g, c) }) {
		return []translate.Guard{{Target: target, Class: Name, Inherits: true, NoDetachedFetch: true}}, address
	}
	return nil, address
}

// mayConcern says whether an AuthorizationPolicy may be in force at a Gateway. One that selects by labels is taken to
// be: which labels the proxies have is not known here.
func mayConcern(p *unstructured.Unstructured, g *gatewayv1.Gateway, c Config) bool {
	if p.GetNamespace() != g.Namespace && p.GetNamespace() != c.RootNamespace {
		return false
	}
	refs, _, err := unstructured.NestedSlice(p.Object, "spec", "targetRefs")
	if err != nil || len(refs) == 0 {
		return true
	}
	return p.GetNamespace() == g.Namespace && slices.ContainsFunc(refs, func(ref any) bool {
		r, ok := ref.(object)
		return ok && r["kind"] == kindGateway && r["name"] == g.Name
	})
}

// refusalWaypoint is why nothing is attached to a waypoint: istiod takes the EnvoyFilter, and does nothing with it.
const refusalWaypoint = "The Gateway is a waypoint: Istio ignores EnvoyFilters there, so the filter cannot be attached."

// labelWaypoint is on Services and namespaces whose traffic goes through a waypoint.
const labelWaypoint = "istio.io/use-waypoint"

// waypointServices refuses the Services whose routes a waypoint has.
func waypointServices(services []corev1.Service, namespaces []corev1.Namespace) []translate.Guard {
	byNamespace := map[string]string{}
	for i := range namespaces {
		byNamespace[namespaces[i].Name] = namespaces[i].Labels[labelWaypoint]
	}
	var out []translate.Guard
	for i := range services {
		s := &services[i]
		waypoint, own := s.Labels[labelWaypoint]
		if !own {
			waypoint = byNamespace[s.Namespace]
		}
		if waypoint != "" && waypoint != "none" {
			out = append(out, refuse(translate.Target{Kind: kindService, Namespace: s.Namespace, Name: s.Name},
				reasonUnsupported, fmt.Sprintf("The Service's traffic goes through the waypoint %q, where Istio ignores "+
					"EnvoyFilters, so the filter cannot be attached.", waypoint)))
		}
	}
	return out
}

func refuse(target translate.Target, reason, message string) translate.Guard {
	return translate.Guard{Target: target, Class: Name, Inherits: true, RefuseReason: reason, RefuseMessage: message}
}

// observe reads what learn needs.
func observe(ctx context.Context, cached client.Reader) (*observed, error) {
	var (
		classes    gatewayv1.GatewayClassList
		gateways   gatewayv1.GatewayList
		routes     gatewayv1.HTTPRouteList
		services   corev1.ServiceList
		namespaces corev1.NamespaceList
		policies   unstructured.UnstructuredList
		virtual    unstructured.UnstructuredList
		classic    unstructured.UnstructuredList
		deployed   unstructured.UnstructuredList
	)
	policies.SetGroupVersionKind(kindAuthorizationPolicy)
	virtual.SetGroupVersionKind(kindVirtualService)
	classic.SetGroupVersionKind(kindClassicGateway)
	deployed.SetGroupVersionKind(KindDeployment)
	for _, list := range []client.ObjectList{&classes, &gateways, &routes, &services, &namespaces, &policies, &virtual,
		&classic, &deployed} {
		// They are only read.
		if err := cached.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list %s: %w", strings.TrimPrefix(fmt.Sprintf("%T", list), "*"), err)
		}
	}
	return &observed{classes: classes.Items, gateways: gateways.Items, routes: routes.Items, services: services.Items,
		namespaces: namespaces.Items, authorization: policies.Items, virtual: virtual.Items, classic: classic.Items,
		deployments: deployed.Items}, nil
}

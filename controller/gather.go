package controller

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	"github.com/weirproxy/weir/controller/attach"
	"github.com/weirproxy/weir/controller/translate"
)

// gatherer reads what Translate needs. What it returns is the cache's own memory, and
// not to be changed: ten thousand routes are not copied for each change.
type gatherer struct {
	cached       client.Reader
	attachers    []attach.Attacher
	certificates *certificates // nil: not read
}

func (g *gatherer) gather(ctx context.Context) (*translate.Input, error) {
	in := &translate.Input{}
	for _, a := range g.attachers {
		learned, err := a.Learn(ctx, g.cached)
		if err != nil {
			return nil, fmt.Errorf("learn for %s: %w", a.Name(), err)
		}
		in.Controllers = append(in.Controllers, a.Controllers()...)
		in.Guards = append(in.Guards, learned.Guards...)
		in.Addresses = append(in.Addresses, learned.Addresses...)
		in.VirtualServices = append(in.VirtualServices, learned.VirtualServices...)
		in.ClassicGateways = append(in.ClassicGateways, learned.ClassicGateways...)
	}
	var (
		policies   v1alpha1.CachePolicyList
		classes    gatewayv1.GatewayClassList
		gateways   gatewayv1.GatewayList
		routes     gatewayv1.HTTPRouteList
		grants     gatewayv1.ReferenceGrantList
		namespaces corev1.NamespaceList
		services   corev1.ServiceList
	)
	for _, list := range []client.ObjectList{&policies, &classes, &gateways, &routes, &grants, &namespaces, &services} {
		if err := g.cached.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list %T: %w", list, err)
		}
	}
	in.CachePolicies = pointers(policies.Items)
	in.CachePolicies = slices.DeleteFunc(in.CachePolicies, func(p *v1alpha1.CachePolicy) bool {
		return !p.DeletionTimestamp.IsZero() // it is as good as gone
	})
	in.GatewayClasses, in.Gateways = pointers(classes.Items), pointers(gateways.Items)
	in.HTTPRoutes, in.ReferenceGrants = pointers(routes.Items), pointers(grants.Items)
	in.Namespaces, in.Services = pointers(namespaces.Items), pointers(services.Items)
	if g.certificates != nil {
		in.Certificates = g.certificates.of(ctx, in.Gateways)
	}
	return in, nil
}

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}

// readDataPlane returns the data plane's Service, and the names of its ready replicas:
// of pods, or what else its EndpointSlices call them.
func readDataPlane(ctx context.Context, cached client.Reader, service types.NamespacedName, port int32) (
	attach.DataPlane, []string, error) {
	plane := attach.DataPlane{Service: service, Port: port}
	found := &corev1.Service{}
	if err := cached.Get(ctx, service, found); client.IgnoreNotFound(err) != nil {
		return plane, nil, fmt.Errorf("get the data plane's Service: %w", err)
	}
	plane.UID = found.UID
	plane.Resolves = found.UID != "" && slices.ContainsFunc(found.Spec.Ports, func(p corev1.ServicePort) bool {
		return p.Port == port && (p.Protocol == corev1.ProtocolTCP || p.Protocol == "")
	})
	var slicesOf discoveryv1.EndpointSliceList
	err := cached.List(ctx, &slicesOf, client.InNamespace(service.Namespace),
		client.MatchingLabels{discoveryv1.LabelServiceName: service.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return plane, nil, fmt.Errorf("list the data plane's EndpointSlices: %w", err)
	}
	return plane, readyReplicas(slicesOf.Items), nil
}

func readyReplicas(endpointSlices []discoveryv1.EndpointSlice) []string {
	var names []string
	for i := range endpointSlices {
		for j := range endpointSlices[i].Endpoints {
			e := &endpointSlices[i].Endpoints[j]
			if e.Conditions.Ready != nil && !*e.Conditions.Ready {
				continue
			}
			switch {
			case e.TargetRef != nil && e.TargetRef.Kind == "Pod":
				names = append(names, e.TargetRef.Name)
			case e.Hostname != nil:
				names = append(names, *e.Hostname)
			case len(e.Addresses) > 0:
				names = append(names, e.Addresses[0])
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names) // one slice for each address family
}

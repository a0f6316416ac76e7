package envoygateway

import (
	"cmp"
	"context"
	"fmt"
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

// Labels by which Envoy Gateway says which Gateway a Service stands before; with merged
// Gateways, which class.
const (
	labelGatewayNamespace = "gateway.envoyproxy.io/owning-gateway-namespace"
	labelGatewayName      = "gateway.envoyproxy.io/owning-gateway-name"
	labelGatewayClass     = "gateway.envoyproxy.io/owning-gatewayclass"
)

// securitySpec is what matters here of a SecurityPolicy.
type securitySpec struct {
	targetRefs    `json:",inline"`
	APIKeyAuth    *struct{} `json:"apiKeyAuth"`
	BasicAuth     *struct{} `json:"basicAuth"`
	JWT           *struct{} `json:"jwt"`
	OIDC          *struct{} `json:"oidc"`
	ExtAuth       *struct{} `json:"extAuth"`
	Authorization *struct{} `json:"authorization"`
}

// authenticates reports whether a request without the client's credentials is turned
// away.
func (s *securitySpec) authenticates() bool {
	return s.APIKeyAuth != nil || s.BasicAuth != nil || s.JWT != nil || s.OIDC != nil || s.ExtAuth != nil
}

// trafficSpec is what matters here of a BackendTrafficPolicy.
type trafficSpec struct {
	targetRefs `json:",inline"`
	RateLimit  *struct{} `json:"rateLimit"`
}

// clientSpec is what matters here of a ClientTrafficPolicy.
type clientSpec struct {
	targetRefs `json:",inline"`
	TLS        *struct {
		ClientValidation *struct {
			Optional bool   `json:"optional"`
			Mode     string `json:"mode"`
		} `json:"clientValidation"`
	} `json:"tls"`
}

// wantsCertificate reports whether a connection without a client certificate is
// refused.
func (c *clientSpec) wantsCertificate() bool {
	if c.TLS == nil || c.TLS.ClientValidation == nil {
		return false
	}
	switch v := c.TLS.ClientValidation; v.Mode {
	case "Request", "VerifyIfGiven":
		return false
	case "":
		return !v.Optional
	default:
		return true
	}
}

// Learn implements [attach.Attacher].
func (a *Attacher) Learn(ctx context.Context, cached client.Reader) (attach.Learned, error) {
	var out attach.Learned
	objects, err := listLabelled(ctx, cached)
	if err != nil {
		return out, err
	}
	guards := guardSet{}
	if err := each(ctx, cached, kindSecurityPolicy, func(o *unstructured.Unstructured) error {
		return guards.security(o, objects)
	}); err != nil {
		return out, err
	}
	if err := each(ctx, cached, kindBackendTrafficPolicy, func(o *unstructured.Unstructured) error {
		return guards.traffic(o, objects)
	}); err != nil {
		return out, err
	}
	out.Guards = guards.sorted()
	if out.Addresses, err = addresses(ctx, cached); err != nil {
		return out, err
	}
	err = each(ctx, cached, kindClientTrafficPolicy, func(o *unstructured.Unstructured) error {
		var spec clientSpec
		if err := readSpec(o, &spec); err != nil {
			return err
		}
		if !spec.wantsCertificate() {
			return nil
		}
		for _, t := range spec.resolve(o.GetNamespace(), objects) {
			out.Addresses = append(out.Addresses, translate.Address{
				Gateway:  types.NamespacedName{Namespace: t.Namespace, Name: t.Name},
				Listener: t.SectionName, None: true,
			})
		}
		return nil
	})
	slices.SortFunc(out.Addresses, compareAddresses)
	return out, err
}

func compareAddresses(a, b translate.Address) int {
	return cmp.Or(strings.Compare(a.Gateway.String(), b.Gateway.String()),
		strings.Compare(a.Listener, b.Listener), strings.Compare(a.Host, b.Host))
}

// each calls f with every object of the kind, which is not to be changed.
func each(ctx context.Context, cached client.Reader, kind string, f func(*unstructured.Unstructured) error) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk(kind + "List"))
	if err := cached.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list %s: %w", kind, err)
	}
	for i := range list.Items {
		o := &list.Items[i]
		if err := f(o); err != nil {
			return fmt.Errorf("%s %s/%s: %w", kind, o.GetNamespace(), o.GetName(), err)
		}
	}
	return nil
}

// listLabelled lists what selectors may select.
func listLabelled(ctx context.Context, cached client.Reader) ([]labelled, error) {
	var gateways gatewayv1.GatewayList
	if err := cached.List(ctx, &gateways, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Gateways: %w", err)
	}
	var routes gatewayv1.HTTPRouteList
	if err := cached.List(ctx, &routes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list HTTPRoutes: %w", err)
	}
	objects := make([]labelled, 0, len(gateways.Items)+len(routes.Items))
	for i := range gateways.Items {
		g := &gateways.Items[i]
		objects = append(objects, labelled{kindGateway, g.Namespace, g.Name, g.Labels})
	}
	for i := range routes.Items {
		r := &routes.Items[i]
		objects = append(objects, labelled{kindHTTPRoute, r.Namespace, r.Name, r.Labels})
	}
	return objects, nil
}

// guardKey is a target and the class of its guard.
type guardKey struct {
	target translate.Target
	class  string
}

// guardSet collects guards: one for each target and class.
type guardSet map[guardKey]translate.Guard

// security adds what a SecurityPolicy means. Of two on one target Envoy Gateway takes
// the older; here both count, since which it takes may change at any time.
func (s guardSet) security(o *unstructured.Unstructured, objects []labelled) error {
	var spec securitySpec
	if err := readSpec(o, &spec); err != nil {
		return err
	}
	// A selector may reach a target that no ReferenceGrant lets it reach: then it
	// replaces nothing there.
	g := translate.Guard{
		Class: kindSecurityPolicy, Controller: controllerName,
		Inherits: spec.MergeType != "" || spec.reachesElsewhere(), NoDetachedFetch: spec.authenticates(),
	}
	if spec.Authorization != nil {
		g.RefuseReason = string(gatewayv1.PolicyReasonInvalid)
		g.RefuseMessage = fmt.Sprintf("SecurityPolicy %s/%s has authorization, which Envoy Gateway checks behind the "+
			"cache: a cached answer would reach clients that it denies. Use extAuth or jwt instead, or target other routes.",
			o.GetNamespace(), o.GetName())
	}
	for _, t := range spec.resolve(o.GetNamespace(), objects) {
		s.add(t, g)
	}
	return nil
}

// traffic adds what a BackendTrafficPolicy means.
func (s guardSet) traffic(o *unstructured.Unstructured, objects []labelled) error {
	var spec trafficSpec
	if err := readSpec(o, &spec); err != nil {
		return err
	}
	g := translate.Guard{
		Class: kindBackendTrafficPolicy, Controller: controllerName,
		Inherits: spec.MergeType != "" || spec.reachesElsewhere(),
	}
	if spec.RateLimit != nil {
		g.Note = fmt.Sprintf("Hits bypass the rate limits of BackendTrafficPolicy %s/%s, which counts behind the cache.",
			o.GetNamespace(), o.GetName())
	}
	for _, t := range spec.resolve(o.GetNamespace(), objects) {
		s.add(t, g)
	}
	return nil
}

func (s guardSet) add(t translate.Target, g translate.Guard) {
	g.Target = t
	key := guardKey{t, g.Class}
	if before, ok := s[key]; ok {
		g.Inherits = g.Inherits || before.Inherits
		g.NoDetachedFetch = g.NoDetachedFetch || before.NoDetachedFetch
		if before.RefuseReason != "" {
			g.RefuseReason, g.RefuseMessage = before.RefuseReason, before.RefuseMessage
		}
		g.Note = cmp.Or(before.Note, g.Note)
	}
	s[key] = g
}

func (s guardSet) sorted() []translate.Guard {
	guards := make([]translate.Guard, 0, len(s))
	for _, g := range s {
		guards = append(guards, g)
	}
	slices.SortFunc(guards, func(a, b translate.Guard) int {
		return cmp.Or(compareTargets(a.Target, b.Target), strings.Compare(a.Class, b.Class))
	})
	return guards
}

// addresses are the Services that Envoy Gateway made: within the cluster they are
// nearer than what a Gateway's status says, and have the listener's ports.
func addresses(ctx context.Context, cached client.Reader) ([]translate.Address, error) {
	var services corev1.ServiceList
	if err := cached.List(ctx, &services, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Services: %w", err)
	}
	byClass := map[string]string{}
	var out []translate.Address
	for i := range services.Items {
		s := &services.Items[i]
		host := s.Name + "." + s.Namespace + ".svc"
		if name := s.Labels[labelGatewayName]; name != "" {
			gateway := types.NamespacedName{Namespace: s.Labels[labelGatewayNamespace], Name: name}
			out = append(out, translate.Address{Gateway: gateway, Host: host})
		} else if class := s.Labels[labelGatewayClass]; class != "" {
			byClass[class] = host
		}
	}
	if len(byClass) == 0 {
		return out, nil
	}
	var gateways gatewayv1.GatewayList
	if err := cached.List(ctx, &gateways, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Gateways: %w", err)
	}
	for i := range gateways.Items {
		g := &gateways.Items[i]
		if host := byClass[string(g.Spec.GatewayClassName)]; host != "" {
			out = append(out, translate.Address{
				Gateway: types.NamespacedName{Namespace: g.Namespace, Name: g.Name}, Host: host,
			})
		}
	}
	return out, nil
}

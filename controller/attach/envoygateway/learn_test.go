package envoygateway

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/weirproxy/weir/controller/translate"
)

// parse reads objects of one YAML text.
func parse(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for document := range strings.SplitSeq(text, "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(document), &o.Object); err != nil {
			t.Fatal(err)
		}
		out = append(out, o)
	}
	return out
}

// newFake has the objects, whose apiVersion may be left out where it is Envoy Gateway's.
func newFake(t *testing.T, text string) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, gatewayv1.Install} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range (&Attacher{}).Kinds() {
		scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(kind.GroupVersion().WithKind(kind.Kind+"List"), &unstructured.UnstructuredList{})
	}
	var objects []client.Object
	for _, o := range parse(t, text) {
		if o.GetAPIVersion() == "" {
			o.SetAPIVersion(group + "/" + version)
		}
		objects = append(objects, o)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

// TestGuards holds what SecurityPolicies and BackendTrafficPolicies mean for what is cached.
func TestGuards(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, objects string
		want          []translate.Guard // without texts
	}{
		{"authentication", `
kind: SecurityPolicy
metadata: {namespace: shop, name: jwt}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: catalog, sectionName: products}], jwt: {providers: []}}
`, []translate.Guard{{Target: onRule, Class: kindSecurityPolicy, NoDetachedFetch: true}}},
		{"authorization", `
kind: SecurityPolicy
metadata: {namespace: shop, name: rbac}
spec: {targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: catalog}, mergeType: StrategicMerge, authorization: {defaultAction: Deny}}
`, []translate.Guard{{Target: onRoute, Class: kindSecurityPolicy, Inherits: true, RefuseReason: "Invalid"}}},
		{"neither: it lifts what is above", `
kind: SecurityPolicy
metadata: {namespace: shop, name: cors}
spec: {targetRefs: [{kind: HTTPRoute, name: catalog}, {kind: GRPCRoute, name: g}], cors: {}}
`, []translate.Guard{{Target: onRoute, Class: kindSecurityPolicy}}},
		{"several on one target: all count", `
kind: SecurityPolicy
metadata: {namespace: shop, name: a}
spec: {targetRefs: [{kind: HTTPRoute, name: catalog}], authorization: {}}
---
kind: SecurityPolicy
metadata: {namespace: shop, name: b}
spec: {targetRefs: [{kind: HTTPRoute, name: catalog}], apiKeyAuth: {}}
---
kind: SecurityPolicy
metadata: {namespace: shop, name: c}
spec: {targetRefs: [{kind: HTTPRoute, name: catalog}], cors: {}}
`, []translate.Guard{{Target: onRoute, Class: kindSecurityPolicy, RefuseReason: "Invalid", NoDetachedFetch: true}}},
		{"selected by labels", `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: shop, name: catalog, labels: {tier: members}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: other, name: catalog, labels: {tier: members}}
---
kind: SecurityPolicy
metadata: {namespace: shop, name: a}
spec: {targetSelectors: [{kind: HTTPRoute, matchLabels: {tier: members}}], basicAuth: {}}
`, []translate.Guard{{Target: onRoute, Class: kindSecurityPolicy, NoDetachedFetch: true}}},
		{"selected elsewhere: it may not be let, so it lifts nothing", `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: shop, name: catalog}
---
kind: SecurityPolicy
metadata: {namespace: other, name: a}
spec: {targetSelectors: [{kind: HTTPRoute, namespaces: {from: All}}], cors: {}}
`, []translate.Guard{{Target: onRoute, Class: kindSecurityPolicy, Inherits: true}}},
		{"rate limits", `
kind: BackendTrafficPolicy
metadata: {namespace: infra, name: limits}
spec: {targetRefs: [{kind: Gateway, name: public}], rateLimit: {local: {}}}
`, []translate.Guard{{Target: onGateway, Class: kindBackendTrafficPolicy, Note: "x"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			learned, err := (&Attacher{}).Learn(t.Context(), newFake(t, tt.objects))
			if err != nil {
				t.Fatal(err)
			}
			for i := range learned.Guards {
				g := &learned.Guards[i]
				if (g.RefuseReason == "") != (g.RefuseMessage == "") || g.Controller != controllerName {
					t.Errorf("guard %+v", g)
				}
				g.RefuseMessage, g.Controller = "", ""
				if g.Note != "" {
					g.Note = "x"
				}
			}
			if diff := cmp.Diff(tt.want, learned.Guards); diff != "" {
				t.Errorf("guards (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAddresses holds where detached fetches enter: Envoy Gateway's Services, and not where certificates are wanted.
func TestAddresses(t *testing.T) {
	t.Parallel()
	learned, err := (&Attacher{}).Learn(t.Context(), newFake(t, `
apiVersion: v1
kind: Service
metadata:
  {namespace: envoy-gateway-system, name: envoy-1, labels: {gateway.envoyproxy.io/owning-gateway-namespace: infra, gateway.envoyproxy.io/owning-gateway-name: public}}
---
apiVersion: v1
kind: Service
metadata: {namespace: envoy-gateway-system, name: merged, labels: {gateway.envoyproxy.io/owning-gatewayclass: merged}}
---
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: catalog}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: infra, name: second}
spec: {gatewayClassName: merged}
---
kind: ClientTrafficPolicy
metadata: {namespace: infra, name: mtls}
spec: {targetRefs: [{kind: Gateway, name: public, sectionName: https}], tls: {clientValidation: {caCertificateRefs: []}}}
---
kind: ClientTrafficPolicy
metadata: {namespace: infra, name: asks}
spec: {targetRefs: [{kind: Gateway, name: public, sectionName: asks}], tls: {clientValidation: {mode: VerifyIfGiven}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	public := types.NamespacedName{Namespace: "infra", Name: "public"}
	want := []translate.Address{
		{Gateway: public, Host: "envoy-1.envoy-gateway-system.svc"},
		{Gateway: public, Listener: "https", None: true},
		{Gateway: types.NamespacedName{Namespace: "infra", Name: "second"}, Host: "merged.envoy-gateway-system.svc"},
	}
	if diff := cmp.Diff(want, learned.Addresses); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
}

package controller_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	"github.com/weirproxy/weir/controller/status"
	"github.com/weirproxy/weir/e2e/harness"
)

// setUp makes what all tests need: the system's namespace with the controller's rights and the data plane's Service,
// and a GatewayClass of Envoy Gateway.
func setUp(t *testing.T) {
	t.Helper()
	create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: systemNamespace}})
	out, err := server.Kubectl(t.Context(), "", "apply", "--server-side", "-k", "config/rbac")
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	create(t, &gatewayv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: "eg"},
		Spec:       gatewayv1.GatewayClassSpec{ControllerName: "gateway.envoyproxy.io/gatewayclass-controller"},
	})
	create(t, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "weir-extproc", Namespace: systemNamespace},
		Spec: corev1.ServiceSpec{
			Ports: []corev1.ServicePort{{Name: "grpc", Port: 9002}}, Selector: map[string]string{"app": "weir"},
		},
	})
	setReplicas(t)
	t.Cleanup(func() {
		for _, o := range []client.Object{&corev1.Service{ObjectMeta: metav1.ObjectMeta{
			Name: "weir-extproc", Namespace: systemNamespace,
		}}} {
			_ = server.Client.Delete(background(), o)
		}
		for _, o := range []client.Object{
			&v1alpha1.CachePolicy{}, &gatewayv1.HTTPRoute{}, &gatewayv1.Gateway{}, extensionPolicy("", ""),
		} {
			deleteAll(t, o)
		}
	})
}

// deleteAll removes what a test left, in all namespaces.
func deleteAll(t *testing.T, o client.Object) {
	t.Helper()
	var namespaces corev1.NamespaceList
	if err := server.Client.List(background(), &namespaces); err != nil {
		t.Fatal(err)
	}
	for _, n := range namespaces.Items {
		if err := server.Client.DeleteAllOf(background(), o, client.InNamespace(n.Name)); err != nil {
			t.Errorf("clean up %T: %v", o, err)
		}
	}
}

// create makes an object; one that is there already stays.
func create(t *testing.T, o client.Object) {
	t.Helper()
	if err := server.Client.Create(t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// setReplicas has the data plane's Service have these ready pods.
func setReplicas(t *testing.T, names ...string) {
	t.Helper()
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: "weir-extproc-1", Namespace: systemNamespace,
			Labels: map[string]string{discoveryv1.LabelServiceName: "weir-extproc"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for i, name := range names {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprintf("10.0.0.%d", i+1)}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: name, Namespace: systemNamespace},
		})
	}
	err := server.Client.Create(t.Context(), slice)
	if apierrors.IsAlreadyExists(err) {
		err = server.Client.Update(t.Context(), slice)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// apply makes the objects of a YAML text in the namespace.
func apply(t *testing.T, namespace, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := server.Kubectl(t.Context(), "", "apply", "--server-side", "--namespace", namespace, "-f", file); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// shop is a Gateway, a route with two rules, and a policy on it.
const shop = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: public}
spec:
  gatewayClassName: eg
  listeners: [{name: http, port: 80, protocol: HTTP, hostname: "*.example"}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: catalog}
spec:
  parentRefs: [{name: public}]
  hostnames: [shop.example]
  rules:
  - {name: products, matches: [{path: {value: /products}}], backendRefs: [{name: catalog, port: 80}]}
  - {matches: [{path: {value: /basket}}], backendRefs: [{name: catalog, port: 80}]}
`

const policyOnRoute = `
apiVersion: weir.dev/v1alpha1
kind: CachePolicy
metadata: {name: catalog}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: catalog}]
  ttl: {default: 60s}
`

// newShop makes a namespace with a shop. Its Gateway accepts the route.
func newShop(t *testing.T) (namespace string) {
	t.Helper()
	namespace = server.Namespace(t)
	apply(t, namespace, shop)
	acceptRoute(t, namespace, "catalog", "public")
	return namespace
}

// acceptRoute plays Envoy Gateway, which accepts a route at a Gateway.
func acceptRoute(t *testing.T, namespace, route, gateway string) {
	t.Helper()
	r := &gatewayv1.HTTPRoute{}
	if err := server.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: route}, r); err != nil {
		t.Fatal(err)
	}
	r.Status.Parents = append(r.Status.Parents, gatewayv1.RouteParentStatus{
		ParentRef: gatewayv1.ParentReference{Name: gatewayv1.ObjectName(gateway)}, ControllerName: envoyGateway,
		Conditions: []metav1.Condition{{
			Type: "Accepted", Status: metav1.ConditionTrue, Reason: "Accepted", LastTransitionTime: metav1.Now(),
			ObservedGeneration: r.Generation,
		}},
	})
	if err := server.Client.Status().Update(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

const envoyGateway = "gateway.envoyproxy.io/gatewayclass-controller"

// extensionPolicy is an empty EnvoyExtensionPolicy.
func extensionPolicy(namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("gateway.envoyproxy.io/v1alpha1")
	o.SetKind("EnvoyExtensionPolicy")
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// acceptExtension plays Envoy Gateway, which accepts (or not) an EnvoyExtensionPolicy at a Gateway. It waits until there
// is one.
func acceptExtension(t *testing.T, namespace, name, gateway string, accepted metav1.ConditionStatus) {
	t.Helper()
	harness.Eventually(t, limit, "EnvoyExtensionPolicy "+name+" is judged", func() bool {
		o := extensionPolicy(namespace, name)
		if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return false
		}
		entry := fmt.Sprintf(`ancestors: [{ancestorRef: {name: %s, namespace: %s}, controllerName: %s, conditions: [
			{type: Accepted, status: "%s", reason: Judged, message: Judged., observedGeneration: %d, lastTransitionTime: "2026-01-01T00:00:00Z"}]}]`,
			gateway, namespace, envoyGateway, accepted, o.GetGeneration())
		var content map[string]any
		if err := yaml.Unmarshal([]byte(entry), &content); err != nil {
			t.Fatal(err)
		}
		o.Object["status"] = content
		return server.Client.Status().Update(t.Context(), o) == nil
	})
}

// getPolicy reads a policy.
func getPolicy(t *testing.T, namespace, name string) *v1alpha1.CachePolicy {
	t.Helper()
	p := &v1alpha1.CachePolicy{}
	if err := server.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, p); err != nil {
		t.Fatal(err)
	}
	return p
}

// ours are the controller's entries in a policy's status.
func ours(p *v1alpha1.CachePolicy) []gatewayv1.PolicyAncestorStatus {
	var out []gatewayv1.PolicyAncestorStatus
	for _, a := range p.Status.Ancestors {
		if a.ControllerName == status.ControllerName {
			out = append(out, a)
		}
	}
	return out
}

// is reports whether the first of our entries says so of the policy as it is now.
func is(p *v1alpha1.CachePolicy, condition string, want metav1.ConditionStatus, reason string) bool {
	entries := ours(p)
	if len(entries) == 0 {
		return false
	}
	c := meta.FindStatusCondition(entries[0].Conditions, condition)
	return c != nil && c.Status == want && c.ObservedGeneration == p.Generation && (reason == "" || c.Reason == reason)
}

// awaitCondition waits until the policy's first entry says so.
func awaitCondition(t *testing.T, namespace, name, condition string, want metav1.ConditionStatus, reason string) *v1alpha1.CachePolicy {
	t.Helper()
	var p *v1alpha1.CachePolicy
	t.Cleanup(func() {
		if t.Failed() && p != nil {
			text, _ := yaml.Marshal(p.Status)
			t.Logf("status of CachePolicy %s/%s, generation %d:\n%s", namespace, name, p.Generation, text)
		}
	})
	harness.Eventually(t, limit, fmt.Sprintf("%s of CachePolicy %s is %s, %s", condition, name, want, reason), func() bool {
		p = getPolicy(t, namespace, name)
		return is(p, condition, want, reason)
	})
	return p
}

package controller

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	"github.com/weirproxy/weir/controller/attach"
	"github.com/weirproxy/weir/controller/attach/envoygateway"
)

func fakeClient(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

// TestReadyReplicas holds who is a ready replica of the data plane.
func TestReadyReplicas(t *testing.T) {
	t.Parallel()
	pod := func(name string, ready *bool) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{
			Conditions: discoveryv1.EndpointConditions{Ready: ready}, Addresses: []string{"10.0.0.1"},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: name},
		}
	}
	got := readyReplicas([]discoveryv1.EndpointSlice{
		{Endpoints: []discoveryv1.Endpoint{pod("b", new(true)), pod("a", nil), pod("leaving", new(false))}},
		{Endpoints: []discoveryv1.Endpoint{
			pod("a", new(true)), // of the other address family
			{Hostname: new("named"), Addresses: []string{"10.0.0.2"}}, {Addresses: []string{"10.0.0.3"}}, {},
		}},
	})
	if diff := cmp.Diff([]string{"10.0.0.3", "a", "b", "named"}, got); diff != "" {
		t.Errorf("ready (-want +got):\n%s", diff)
	}
}

// TestReadDataPlane holds when the data plane's Service resolves.
func TestReadDataPlane(t *testing.T) {
	t.Parallel()
	service := func(protocol corev1.Protocol, port int32) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "s", Name: "w", UID: "1"},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}, {Port: port, Protocol: protocol}}},
		}
	}
	tests := []struct {
		name    string
		objects []client.Object
		want    bool
	}{
		{"no Service", nil, false},
		{"the port", []client.Object{service("TCP", 9002)}, true},
		{"another port", []client.Object{service("TCP", 9003)}, false},
		{"another protocol", []client.Object{service("UDP", 9002)}, false},
	}
	for _, tt := range tests {
		plane, _, err := readDataPlane(t.Context(), fakeClient(t, tt.objects...), types.NamespacedName{Namespace: "s", Name: "w"}, 9002)
		if err != nil || plane.Resolves != tt.want {
			t.Errorf("%s: %+v, %v", tt.name, plane, err)
		}
	}
}

// TestDiscover holds that what is missing is named, with what to do.
func TestDiscover(t *testing.T) {
	t.Parallel()
	needed := requirements([]attach.Attacher{&envoygateway.Attacher{}})
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, r := range needed[:2] {
		for _, kind := range r.kinds {
			mapper.Add(kind, meta.RESTScopeNamespace)
		}
	}
	if err := discover(mapper, needed[:2]); err != nil {
		t.Errorf("all is there: %v", err)
	}
	err := discover(mapper, needed)
	if err == nil || !strings.Contains(err.Error(), "EnvoyExtensionPolicy") || !strings.Contains(err.Error(), "--attach=envoy-gateway") {
		t.Errorf("without Envoy Gateway: %v", err)
	}
	err = discover(meta.NewDefaultRESTMapper(nil), needed[:2])
	if err == nil || !strings.Contains(err.Error(), "chart weir-crds") || !strings.Contains(err.Error(), "Gateway API") {
		t.Errorf("with nothing: %v", err)
	}
}

// TestCertificates holds that certificates of listeners are read by name, once a while, and the CA beside one first.
func TestCertificates(t *testing.T) {
	t.Parallel()
	secret := func(name string, data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: name}, Data: data}
	}
	api := fakeClient(t, secret("own", map[string][]byte{"tls.crt": []byte("leaf")}),
		secret("private", map[string][]byte{"tls.crt": []byte("leaf"), "ca.crt": []byte("ca")}))
	other := gatewayv1.Namespace("other")
	gateway := &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "public"}}
	gateway.Spec.Listeners = []gatewayv1.Listener{{Name: "http"}, {Name: "https", TLS: &gatewayv1.ListenerTLSConfig{
		CertificateRefs: []gatewayv1.SecretObjectReference{
			{Name: "own"}, {Name: "private"}, {Name: "missing"}, {Name: "own", Namespace: &other},
		},
	}}}
	c := &certificates{api: api, log: discard()}
	want := map[types.NamespacedName][]byte{
		{Namespace: "infra", Name: "own"}: []byte("leaf"), {Namespace: "infra", Name: "private"}: []byte("ca"),
	}
	for range 2 { // the second time from memory
		if diff := cmp.Diff(want, c.of(t.Context(), []*gatewayv1.Gateway{gateway})); diff != "" {
			t.Errorf("certificates (-want +got):\n%s", diff)
		}
		if err := api.DeleteAllOf(t.Context(), &corev1.Secret{}, client.InNamespace("infra")); err != nil {
			t.Fatal(err)
		}
	}
	if got := c.of(t.Context(), nil); len(got) > 0 || len(c.read) > 0 {
		t.Errorf("without Gateways: %v, remembered %v", got, c.read)
	}
}

// TestInvalidation holds what a CacheInvalidation asks of the data plane.
func TestInvalidation(t *testing.T) {
	t.Parallel()
	o := &v1alpha1.CacheInvalidation{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}}
	for by, set := range map[string]func(*v1alpha1.CacheInvalidationSpec){
		"Url":    func(s *v1alpha1.CacheInvalidationSpec) { s.URL = new("v") },
		"Tag":    func(s *v1alpha1.CacheInvalidationSpec) { s.Tag = new("v") },
		"Host":   func(s *v1alpha1.CacheInvalidationSpec) { s.Host = new("v") },
		"Policy": func(s *v1alpha1.CacheInvalidationSpec) { s.Policy = new(gatewayv1.ObjectName("v")) },
	} {
		o.Spec = v1alpha1.CacheInvalidationSpec{}
		set(&o.Spec)
		if got := invalidation(o); got.By != by || got.Value != "v" || got.Namespace != "shop" || got.Mode != "Hard" {
			t.Errorf("%s: %+v", by, got)
		}
	}
	o.Spec.Mode = new(v1alpha1.InvalidationSoft)
	if got := invalidation(o); got.Mode != "Soft" {
		t.Errorf("soft: %+v", got)
	}
}

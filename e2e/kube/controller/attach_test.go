package controller_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy/feed"
	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	"github.com/weirproxy/weir/e2e/harness"
)

// message is what the policy's first entry says of a condition.
func message(p *v1alpha1.CachePolicy, condition string) string {
	if len(ours(p)) == 0 {
		return ""
	}
	if c := meta.FindStatusCondition(ours(p)[0].Conditions, condition); c != nil {
		return c.Message
	}
	return ""
}

// exists reports whether an EnvoyExtensionPolicy is there.
func exists(t *testing.T, namespace, name string) bool {
	t.Helper()
	o := extensionPolicy(namespace, name)
	err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o)
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

// TestAttachment holds what the EnvoyExtensionPolicy says, who owns it, and that it may name the data plane's Service.
func TestAttachment(t *testing.T) {
	setUp(t)
	namespace := newShop(t)
	startController(t, "--attach=envoy-gateway")
	apply(t, namespace, policyOnRoute)
	acceptExtension(t, namespace, "weir-routes", "public", metav1.ConditionTrue)
	o := extensionPolicy(namespace, "weir-routes")
	if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	policy := getPolicy(t, namespace, "catalog")
	if owners := o.GetOwnerReferences(); len(owners) != 1 || owners[0].UID != policy.UID {
		t.Errorf("owners %+v", owners)
	}
	extProc, _, _ := unstructured.NestedSlice(o.Object, "spec", "extProc")
	first := extProc[0].(map[string]any)
	if first["failOpen"] != true || first["messageTimeout"] != "5500ms" {
		t.Errorf("extProc: %v", first)
	}
	grants := &gatewayv1.ReferenceGrantList{}
	if err := server.Client.List(t.Context(), grants, client.InNamespace(systemNamespace)); err != nil {
		t.Fatal(err)
	}
	if len(grants.Items) != 1 || string(grants.Items[0].Spec.From[0].Namespace) != namespace {
		t.Errorf("grants %+v", grants.Items)
	}
	if err := server.Client.Delete(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, limit, "the grant goes with the last policy", func() bool {
		return server.Client.List(t.Context(), grants, client.InNamespace(systemNamespace)) == nil && len(grants.Items) == 0
	})
}

// TestUsersExtensionPolicy (case 31) holds that what a user has is neither changed nor silenced, that the condition names
// it, and that the filter is attached once it is out of the way.
func TestUsersExtensionPolicy(t *testing.T) {
	setUp(t)
	namespace := newShop(t)
	const lua = `
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: EnvoyExtensionPolicy
metadata: {name: %s}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: %s, name: %s}]
  lua: [{type: Inline, inline: "function envoy_on_response(h) h:headers():add('x-team', 'a') end"}]
`
	apply(t, namespace, fmt.Sprintf(lua, "team", "HTTPRoute", "catalog"))
	user := extensionPolicy(namespace, "team")
	if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(user), user); err != nil {
		t.Fatal(err)
	}
	setReplicas(t, "a")
	c := startController(t, "--attach=envoy-gateway")
	startReplica(t, "a", c.address())
	apply(t, namespace, policyOnRoute)
	p := awaitCondition(t, namespace, "catalog", "Programmed", metav1.ConditionFalse, "NotAttached")
	if !strings.Contains(message(p, "Programmed"), namespace+"/team") || exists(t, namespace, "weir-routes") {
		t.Errorf("message %q; ours exists: %v", message(p, "Programmed"), exists(t, namespace, "weir-routes"))
	}
	after := extensionPolicy(namespace, "team")
	if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(after), after); err != nil ||
		after.GetResourceVersion() != user.GetResourceVersion() {
		t.Errorf("the user's object was touched: %v", err)
	}
	// On the Gateway it is merged with ours.
	if err := server.Client.Delete(t.Context(), after); err != nil {
		t.Fatal(err)
	}
	apply(t, namespace, fmt.Sprintf(lua, "team", "Gateway", "public"))
	acceptExtension(t, namespace, "weir-routes", "public", metav1.ConditionTrue)
	awaitCondition(t, namespace, "catalog", "Programmed", metav1.ConditionTrue, "Programmed")

	// One that has our name, but is not ours, stays too.
	if err := server.Client.Delete(t.Context(), getPolicy(t, namespace, "catalog")); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, limit, "ours is gone", func() bool { return !exists(t, namespace, "weir-routes") })
	apply(t, namespace, fmt.Sprintf(lua, "weir-routes", "Gateway", "elsewhere"))
	apply(t, namespace, policyOnRoute)
	p = awaitCondition(t, namespace, "catalog", "Programmed", metav1.ConditionFalse, "NotAttached")
	if !strings.Contains(message(p, "Programmed"), "Rename it") {
		t.Errorf("message %q", message(p, "Programmed"))
	}
}

// TestGuardBehindTheCache (case 33) holds that a route whose guard stands behind the cache is refused, also when the guard
// comes later, and one whose guard stands before is cached without detached fetches.
func TestGuardBehindTheCache(t *testing.T) {
	setUp(t)
	namespace := newShop(t)
	const security = `
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: SecurityPolicy
metadata: {name: guard}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: catalog}]
`
	setReplicas(t, "a")
	create(t, &corev1.Service{ // Envoy Gateway's, where detached fetches enter
		ObjectMeta: metav1.ObjectMeta{Name: "envoy", Namespace: systemNamespace, Labels: map[string]string{
			"gateway.envoyproxy.io/owning-gateway-namespace": namespace, "gateway.envoyproxy.io/owning-gateway-name": "public",
		}},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	})
	c := startController(t, "--attach=envoy-gateway")
	a, _ := startReplica(t, "a", c.address())
	apply(t, namespace, policyOnRoute)
	entrances := func(r *feed.Route) int { return len(r.Rules[0].Entrances) }
	harness.Eventually(t, limit, "the route is served, with an entrance", func() bool {
		r := a.route(namespace, "catalog")
		return r != nil && entrances(r) == 1
	})
	apply(t, namespace, security+"  apiKeyAuth: {credentialRefs: [{name: keys}], extractFrom: [{headers: [x-key]}]}\n")
	harness.Eventually(t, limit, "the route is served, without an entrance", func() bool {
		r := a.route(namespace, "catalog")
		return r != nil && entrances(r) == 0
	})
	apply(t, namespace, security+"  authorization: {defaultAction: Deny, rules: [{action: Allow, principal: {clientCIDRs: [10.0.0.0/8]}}]}\n")
	p := awaitCondition(t, namespace, "catalog", "Accepted", metav1.ConditionFalse, "Invalid")
	if !strings.Contains(message(p, "Accepted"), namespace+"/guard") {
		t.Errorf("message %q", message(p, "Accepted"))
	}
	harness.Eventually(t, limit, "no rule of the route has a policy", func() bool {
		r := a.route(namespace, "catalog")
		return !exists(t, namespace, "weir-routes") && (r == nil || len(r.Rules[0].Policies) == 0)
	})
}

// TestServiceGone (case 30) holds that nothing is attached to a data plane that does not resolve.
func TestServiceGone(t *testing.T) {
	setUp(t)
	namespace := newShop(t)
	setReplicas(t, "a")
	c := startController(t, "--attach=envoy-gateway")
	startReplica(t, "a", c.address())
	apply(t, namespace, policyOnRoute)
	acceptExtension(t, namespace, "weir-routes", "public", metav1.ConditionTrue)
	awaitCondition(t, namespace, "catalog", "Programmed", metav1.ConditionTrue, "Programmed")

	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "weir-extproc", Namespace: systemNamespace}}
	if err := server.Client.Delete(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	p := awaitCondition(t, namespace, "catalog", "Programmed", metav1.ConditionFalse, "Reconciling")
	if exists(t, namespace, "weir-routes") || !strings.Contains(message(p, "Programmed"), "weir-extproc") {
		t.Errorf("message %q; attached: %v", message(p, "Programmed"), exists(t, namespace, "weir-routes"))
	}
	service.ResourceVersion, service.Spec.Ports = "", []corev1.ServicePort{{Name: "wrong", Port: 9003}}
	create(t, service)
	lookAgain(t, c, namespace)
	if exists(t, namespace, "weir-routes") {
		t.Error("attached to a Service without the port")
	}
	service.Spec.Ports = []corev1.ServicePort{{Name: "grpc", Port: 9002}}
	if err := server.Client.Update(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	acceptExtension(t, namespace, "weir-routes", "public", metav1.ConditionTrue)
	awaitCondition(t, namespace, "catalog", "Programmed", metav1.ConditionTrue, "Programmed")
}

// TestAttachNone holds that the status says what to configure where the user attaches the filter, and believes what is
// seen.
func TestAttachNone(t *testing.T) {
	setUp(t)
	namespace := newShop(t)
	setReplicas(t, "a")
	c := startController(t)
	a, _ := startReplica(t, "a", c.address())
	apply(t, namespace, policyOnRoute)
	p := awaitCondition(t, namespace, "catalog", "Programmed", metav1.ConditionUnknown, "AttachmentUnknown")
	if m := message(p, "Programmed"); !strings.Contains(m, "weir-extproc.weir-system.svc:9002") ||
		!strings.Contains(m, "x-weir-policy: "+namespace+"/catalog") {
		t.Errorf("message %q", m)
	}
	if exists(t, namespace, "weir-routes") {
		t.Error("attached all the same")
	}
	if err := a.report(feed.Report{Traffic: map[string]feed.Traffic{namespace + "/catalog": {Requests: 1}}}); err != nil {
		t.Fatal(err)
	}
	awaitCondition(t, namespace, "catalog", "Programmed", metav1.ConditionTrue, "Programmed")
}

// TestRejected holds that a resource that a replica refuses is told by name, with its reason.
func TestRejected(t *testing.T) {
	setUp(t)
	namespace := newShop(t)
	setReplicas(t, "a", "b")
	c := startController(t)
	startReplica(t, "a", c.address())
	b := &replica{name: "b", refuse: func(resource string) string {
		if strings.HasPrefix(resource, "policy/") {
			return "a field that this release does not know"
		}
		return ""
	}}
	b.start(t, c.address())
	apply(t, namespace, policyOnRoute)
	p := awaitCondition(t, namespace, "catalog", "Programmed", metav1.ConditionFalse, "Rejected")
	want := "b says: policy/" + namespace + "/catalog: a field that this release does not know"
	if !strings.Contains(message(p, "Programmed"), want) {
		t.Errorf("message %q, want %q", message(p, "Programmed"), want)
	}
}

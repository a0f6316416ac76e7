package controller_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/e2e/harness"
)

// TestPolicyIsProgrammed follows a policy from its creation to its deletion: the feed, the attachment, the conditions of
// the policy and of its target.
func TestPolicyIsProgrammed(t *testing.T) {
	setUp(t)
	namespace := newShop(t)
	c := startController(t, "--attach=envoy-gateway")
	a, _ := startReplica(t, "a", c.address())
	apply(t, namespace, policyOnRoute)
	awaitCondition(t, namespace, "catalog", "Programmed", metav1.ConditionFalse, "Reconciling") // no replica is ready
	setReplicas(t, "a")
	acceptExtension(t, namespace, "weir-routes", "public", metav1.ConditionTrue)
	p := awaitCondition(t, namespace, "catalog", "Programmed", metav1.ConditionTrue, "Programmed")
	if !is(p, "Accepted", metav1.ConditionTrue, "Accepted") || !is(p, "ResolvedRefs", metav1.ConditionTrue, "") {
		t.Errorf("status: %+v", p.Status)
	}
	if !has(a.resources(), "policy/"+namespace+"/catalog", "route/httproute/"+namespace+"/catalog") {
		t.Errorf("the replica runs %q", a.resources())
	}
	r := &gatewayv1.HTTPRoute{}
	key := client.ObjectKey{Namespace: namespace, Name: "catalog"}
	harness.Eventually(t, limit, "the route says that it is affected", func() bool {
		return server.Client.Get(t.Context(), key, r) == nil && len(r.Status.Parents[0].Conditions) == 2
	})
	entry := r.Status.Parents[0]
	if len(r.Status.Parents) != 1 || entry.ControllerName != envoyGateway || entry.Conditions[0].Type != "Accepted" ||
		entry.Conditions[1].Type != "weir.dev/CachePolicyAffected" {
		t.Errorf("parents of the route: %+v", r.Status.Parents)
	}

	setReplicas(t, "a", "b") // which does not run anything
	awaitCondition(t, namespace, "catalog", "Programmed", metav1.ConditionTrue, "Programmed")
	if err := server.Client.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, limit, "feed, attachment and the route's condition are gone", func() bool {
		o := extensionPolicy(namespace, "weir-routes")
		return a.runsNothing(namespace) && server.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o) != nil &&
			server.Client.Get(t.Context(), key, r) == nil && len(r.Status.Parents[0].Conditions) == 1
	})
}

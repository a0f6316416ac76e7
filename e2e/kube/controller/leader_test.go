package controller_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	"github.com/weirproxy/weir/e2e/harness"
)

const leads = `"Successfully acquired lease`

// TestLeaderLost kills the leader of two: what was served is served on, a change that comes while nobody leads is served
// at once and told when the other leads, and an invalidation made meanwhile is carried out, once.
func TestLeaderLost(t *testing.T) {
	setUp(t)
	namespace := newShop(t)
	setReplicas(t, "a")
	first := startController(t, "--attach=envoy-gateway")
	harness.Eventually(t, limit, "the first leads", func() bool { return first.says(leads) })
	second := startController(t, "--attach=envoy-gateway")
	startReplica(t, "a", first.address())
	a, _ := startReplica(t, "a", second.address()) // a replica reports to all controllers
	apply(t, namespace, policyOnRoute)
	acceptExtension(t, namespace, "weir-routes", "public", metav1.ConditionTrue)
	before := awaitCondition(t, namespace, "catalog", "Programmed", metav1.ConditionTrue, "Programmed")
	if second.says(leads) {
		t.Fatal("both lead")
	}

	first.kill()
	apply(t, namespace, policyOnRoute+"  jitterPercent: 3\n")
	apply(t, namespace, `
apiVersion: weir.dev/v1alpha1
kind: CacheInvalidation
metadata: {name: now}
spec: {tag: shoes}
`)
	harness.Eventually(t, limit, "the change is served while nobody leads", func() bool {
		return a.generation(namespace, "catalog") == 2
	})
	after := awaitCondition(t, namespace, "catalog", "Programmed", metav1.ConditionTrue, "Programmed")
	if !second.says(leads) {
		t.Error("the second does not lead")
	}
	if was, is := ours(before)[0].Conditions[0].LastTransitionTime, ours(after)[0].Conditions[0].LastTransitionTime; !was.Equal(&is) {
		t.Errorf("Accepted, which stayed True, turned at %v, not %v", is, was)
	}
	awaitConfirmed(t, namespace, "now", metav1.ConditionTrue, "Confirmed")
	if told := a.told(); len(told) != 1 {
		t.Errorf("the replica was told %d times: %+v", len(told), told)
	}
}

// TestSixteenAncestors holds the API's limit on a route with more parents, beside an entry of another controller, which
// stays as it is.
func TestSixteenAncestors(t *testing.T) {
	setUp(t)
	namespace := server.Namespace(t)
	var text, parents strings.Builder
	for i := range 18 {
		fmt.Fprintf(&text, "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: g%02d}\n"+
			"spec: {gatewayClassName: eg, listeners: [{name: http, port: 80, protocol: HTTP}]}\n---\n", i)
		fmt.Fprintf(&parents, "{name: g%02d}, ", i)
	}
	fmt.Fprintf(&text, "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: catalog}\n"+
		"spec: {parentRefs: [%s], rules: [{backendRefs: [{name: catalog, port: 80}]}]}\n", parents.String())
	apply(t, namespace, text.String())
	for i := range 18 {
		acceptRoute(t, namespace, "catalog", fmt.Sprintf("g%02d", i))
	}
	apply(t, namespace, policyOnRoute)
	p := getPolicy(t, namespace, "catalog")
	const other = `{"status":{"ancestors":[{"ancestorRef":{"name":"x"},"controllerName":"other.example/controller","conditions":[
		{"type":"Theirs","status":"True","reason":"R","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}]}}`
	if err := server.Client.Status().Patch(t.Context(), p, client.RawPatch("application/merge-patch+json", []byte(other))); err != nil {
		t.Fatal(err)
	}
	theirs := p.Status.Ancestors[0]
	startController(t)
	harness.Eventually(t, limit, "the status is full", func() bool {
		p = getPolicy(t, namespace, "catalog")
		return len(p.Status.Ancestors) == 16
	})
	if diff := cmp.Diff(theirs, p.Status.Ancestors[0]); len(ours(p)) != 15 || diff != "" {
		t.Errorf("%d entries are ours; the other (-before +after):\n%s", len(ours(p)), diff)
	}
	harness.Eventually(t, limit, "an event says that there is no room", func() bool {
		out, err := server.Kubectl(t.Context(), "", "get", "events.events.k8s.io", "--namespace", namespace, "--output=yaml")
		return err == nil && strings.Contains(out, "AncestorsOmitted") && strings.Contains(out, "3 more ancestors")
	})
}

// awaitConfirmed waits until a CacheInvalidation says so.
func awaitConfirmed(t *testing.T, namespace, name string, want metav1.ConditionStatus, reason string) *v1alpha1.CacheInvalidation {
	t.Helper()
	o := &v1alpha1.CacheInvalidation{}
	harness.Eventually(t, limit, fmt.Sprintf("Confirmed of CacheInvalidation %s is %s, %s", name, want, reason), func() bool {
		if err := server.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o); err != nil {
			t.Fatal(err)
		}
		c := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.InvalidationConfirmed)
		return c != nil && c.Status == want && c.Reason == reason
	})
	return o
}

package controller_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weirproxy/weir/e2e/harness"
)

// cacheStatus is the Cache-Status of an answer for the page.
func cacheStatus(t *testing.T, envoy *harness.Envoy) string {
	t.Helper()
	request := harness.Get(envoy.URL("/products/1"))
	request.Host = "shop.example"
	response := harness.Do(t, request)
	if response.Status != 200 {
		t.Fatalf("status %d", response.Status)
	}
	return response.Header.Get("Cache-Status")
}

// wantStatus wants the Cache-Status to have a word.
func wantStatus(t *testing.T, envoy *harness.Envoy, want string) {
	t.Helper()
	if got := cacheStatus(t, envoy); !strings.Contains(got, want) || want == "" && got != "" {
		t.Errorf("Cache-Status %q, want %q", got, want)
	}
}

// TestWhole has the real weir-extproc behind a real Envoy, whose routes have the names that Envoy Gateway gives: what is
// applied to the API server is served, a lost controller changes nothing, and an invalidation is confirmed and holds.
func TestWhole(t *testing.T) {
	setUp(t)
	namespace := newShop(t)
	address := freeAddress(t)
	args := []string{"--attach=envoy-gateway", "--feed-bind-address=" + address}
	c := startController(t, args...)
	origin := harness.StartOrigin(t)
	origin.Handle("/products/1", harness.Always(harness.Reply{
		Body: []byte("page"), Header: harness.Fields("Cache-Control", "max-age=60", "Content-Type", "text/plain"),
	}))
	envoy := harness.StartEnvoy(t, harness.EnvoyOptions{
		Origins: []string{origin.Address()},
		Routes:  []harness.Route{{Name: "httproute/" + namespace + "/catalog/rule/0/match/0/shop_example"}},
	})
	weir := harness.StartWeir(t, harness.WeirOptions{Args: []string{
		"--policy-dir=", "--controller-address=" + address, "--replica-name=weir-0",
	}})
	envoy.SetWeir(weir.GRPCAddress)
	setReplicas(t, "weir-0")
	wantStatus(t, envoy, "") // no policy

	apply(t, namespace, policyOnRoute)
	acceptExtension(t, namespace, "weir-routes", "public", metav1.ConditionTrue)
	awaitCondition(t, namespace, "catalog", "Programmed", metav1.ConditionTrue, "Programmed")
	wantStatus(t, envoy, "fwd=")
	wantStatus(t, envoy, "hit")
	invalidate(t, namespace, "first", `{url: "http://shop.example/products/1"}`)
	awaitConfirmed(t, namespace, "first", metav1.ConditionTrue, "Confirmed")
	wantStatus(t, envoy, "fwd=")
	wantStatus(t, envoy, "hit")

	c.kill()
	wantStatus(t, envoy, "hit")
	before := writes(t)
	c = startController(t, args...)
	harness.Eventually(t, limit, "the replica is back", func() bool { return c.says(`"Replica connected"`) })
	lookAgain(t, c, namespace)
	lookAgain(t, c, namespace)
	if got := difference(before, writes(t)); len(got) > 0 {
		t.Errorf("after the controller was lost: %v", got)
	}
	invalidate(t, namespace, "second", `{policy: catalog}`)
	awaitConfirmed(t, namespace, "second", metav1.ConditionTrue, "Confirmed")
	wantStatus(t, envoy, "fwd=")
	if err := server.Client.Delete(t.Context(), getPolicy(t, namespace, "catalog")); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, limit, "nothing is cached without a policy", func() bool { return cacheStatus(t, envoy) == "" })
}

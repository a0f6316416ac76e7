package e2e_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/weirproxy/weir/e2e/harness"
)

const shopPolicy = `
apiVersion: weir.dev/v1alpha1
kind: CachePolicy
metadata: {name: catalog, namespace: shop}
spec:
  targetRefs: [{group: weir.dev, kind: EnvoyRoute, name: default}]
`

// TestMissThenHit is the shortest way through everything: a response is stored, and the next client gets it.
func TestMissThenHit(t *testing.T) {
	t.Parallel()
	origin := harness.StartOrigin(t)
	origin.Handle("/page", harness.Always(harness.Reply{
		Body: []byte("page"), Header: harness.Fields("Cache-Control", "max-age=60", "Content-Type", "text/plain"),
	}))
	envoy := harness.StartEnvoy(t, harness.EnvoyOptions{Origins: []string{origin.Address()}})
	weir := harness.StartWeir(t, harness.WeirOptions{
		Policies: map[string]string{"shop.yaml": shopPolicy}, RefillAddress: envoy.RefillAddress(),
	})
	envoy.SetWeir(weir.GRPCAddress)

	for _, want := range []string{"fwd=", "hit"} {
		resp := harness.Do(t, harness.Get(envoy.URL("/page")))
		if resp.Status != http.StatusOK || string(resp.Body) != "page" {
			t.Errorf("%s: %d %q", want, resp.Status, resp.Body)
		}
		if got := resp.Header.Get("Cache-Status"); !strings.HasPrefix(got, "weir") || !strings.Contains(got, want) {
			t.Errorf("Cache-Status: %q, want weir's with %q", got, want)
		}
	}
	if n := origin.Count("/page"); n != 1 {
		t.Errorf("the origin saw %d requests, want 1", n)
	}
	weir.Terminate()
	if resp := harness.Do(t, harness.Get(envoy.URL("/page"))); resp.Status != http.StatusOK {
		t.Errorf("without weir: %d", resp.Status)
	}
}

package e2e_test

import (
	"testing"

	"github.com/weirproxy/weir/e2e/harness"
)

// policies of three routes; the fourth has none.
const modePolicies = `
apiVersion: weir.dev/v1alpha1
kind: CachePolicy
metadata: {name: on, namespace: shop}
spec:
  targetRefs: [{group: weir.dev, kind: EnvoyRoute, name: on}]
---
apiVersion: weir.dev/v1alpha1
kind: CachePolicy
metadata: {name: "off", namespace: shop}
spec:
  mode: Disabled
  targetRefs: [{group: weir.dev, kind: EnvoyRoute, name: "off"}]
---
apiVersion: weir.dev/v1alpha1
kind: CachePolicy
metadata: {name: shadow, namespace: shop}
spec:
  mode: Shadow
  targetRefs: [{group: weir.dev, kind: EnvoyRoute, name: shadow}]
`

// TestModesOfAPolicy: a route without a policy, with a disabled one and with one that only watches pass every request
// to the origin, none waits for another, and each is counted.
func TestModesOfAPolicy(t *testing.T) {
	t.Parallel()
	const clients = 10
	e := startEdge(t, edgeOptions{
		Envoy: harness.EnvoyOptions{Routes: []harness.Route{
			{Name: "none", Prefix: "/none"}, {Name: "off", Prefix: "/off"},
			{Name: "shadow", Prefix: "/shadow"}, {Name: "on", Prefix: "/on"},
			{Name: "anything", Prefix: "/named", Policy: "shop/on"}, {Name: "else", Prefix: "/unknown", Policy: "shop/gone"},
		}},
		Policies: map[string]string{"shop.yaml": modePolicies},
	})
	defer e.settles()
	tests := []struct {
		path    string
		fetches int // of a burst, and of one more request
		want    map[string]int
	}{
		{"/none", clients + 1, map[string]int{"bypass_policy": clients + 1}},
		{"/off", clients + 1, map[string]int{"bypass_policy": clients + 1}},
		{"/unknown", clients + 1, map[string]int{"bypass_policy": clients + 1}},
		{"/on", 1, map[string]int{"miss": 1, "coalesced": clients - 1, "hit": 1}},
		{"/named", 1, map[string]int{"miss": 1, "coalesced": clients - 1, "hit": 1}},
	}
	for _, tt := range tests {
		before := e.weir.Metrics()
		gate := make(chan struct{})
		e.serve(tt.path, harness.Always(harness.Reply{
			Gate: gate, Size: 1000, Header: harness.Fields("Cache-Control", "max-age=60"),
		}))
		answers := e.burst(clients, e.get(tt.path))
		e.answering(tt.path, min(clients, tt.fetches))
		e.waiting(clients - min(clients, tt.fetches))
		close(gate)
		e.wantBody(answers(), harness.GeneratedBody(1000))
		e.do(e.get(tt.path))
		e.wantCount(tt.path, tt.fetches)
		e.wantOutcomesSince(before, tt.path, tt.want)
	}
}

// TestShadow: nobody waits and nothing is served, but what would have been is counted.
func TestShadow(t *testing.T) {
	t.Parallel()
	const clients = 10
	e := startEdge(t, edgeOptions{Spec: "mode: Shadow"})
	defer e.settles()
	gate := make(chan struct{})
	e.serve("/page", numbered(gate, "max-age=60"))
	answers := e.burst(clients, e.get("/page"))
	e.answering("/page", clients)
	close(gate)
	wantDistinct(t, answers())
	before := e.weir.Metrics()
	if later := e.do(e.get("/page")); string(later.Body) != "11" {
		t.Errorf("a later client got %q, want the origin's next answer", later.Body)
	}
	e.wantCount("/page", clients+1)
	e.wantOutcomesSince(before, "later", map[string]int{"shadow": 1})
}

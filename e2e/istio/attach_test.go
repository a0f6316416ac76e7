package istio_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/e2e/harness"
	"github.com/weirproxy/weir/e2e/istio"
)

const catalogRoute = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: catalog}
spec:
  parentRefs: [{name: gw}]
  hostnames: [shop.test]
  rules:
  - {name: products, matches: [{path: {value: /products}}], backendRefs: [{name: web, port: 80}]}
  - {matches: [{path: {value: /unnamed}}], backendRefs: [{name: web, port: 80}]}
  - {backendRefs: [{name: web, port: 80}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: other-host}
spec:
  parentRefs: [{name: gw}]
  hostnames: [other.test]
  rules: [{name: products, backendRefs: [{name: web, port: 80}]}]
`

const productsPolicy = `
apiVersion: weir.dev/v1alpha1
kind: CachePolicy
metadata: {name: pages}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: catalog, sectionName: products}]
  ` + pageSpec + `
`

// TestGatewayCaches: a policy on one rule of a route behind a Gateway of class istio. It is in force there, and not on
// its neighbours, nor on a rule of the same name on another host; it comes and goes while requests flow; without weir
// they flow too.
func TestGatewayCaches(t *testing.T) {
	c := newCached(t)
	c.apply(catalogRoute)
	c.serves("shop.test", "/")
	c.apply(productsPolicy)
	c.attached()
	c.inForce("shop.test", "/products")

	c.missThenHit("shop.test", "/products/1")
	c.notAsked("shop.test", "/unnamed")
	c.notAsked("shop.test", "/")
	c.notAsked("other.test", "/products")

	c.weir.Kill()
	c.notAsked("shop.test", "/products/1")
	c.restart()
	c.missThenHit("shop.test", "/products/1")

	c.remove(productsPolicy)
	removed := time.Now()
	c.reconcile()
	harness.Eventually(t, time.Minute, "weir is not asked any more", func() bool {
		return status(c.get("shop.test", "/products/1")) == ""
	})
	t.Logf("the policy was gone after %v", time.Since(removed))
	if left := c.envoyFilters(); left != "" {
		t.Errorf("left behind: %s", left)
	}
}

// TestGatewayPolicy: a policy on a Gateway is in force on every rule of every route, but where a name does not tell
// which rule it is.
func TestGatewayPolicy(t *testing.T) {
	c := newCached(t)
	c.apply(catalogRoute + `---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: same-name}
spec:
  parentRefs: [{name: gw}]
  hostnames: [shop.test]
  rules: [{name: products, matches: [{path: {value: /same}}], backendRefs: [{name: web, port: 80}]}]
`)
	c.serves("shop.test", "/same")
	c.apply(`
apiVersion: weir.dev/v1alpha1
kind: CachePolicy
metadata: {name: pages}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw}]
  ` + pageSpec + `
`)
	c.attached()
	c.inForce("shop.test", "/")
	c.missThenHit("shop.test", "/unnamed/1")
	c.missThenHit("other.test", "/products/1")
	c.notAsked("shop.test", "/products/1")
	c.notAsked("shop.test", "/same/1")
	out, _ := c.reconcile()
	if message := out.Verdicts[0].Ancestors[0].OverrideMessage; !strings.Contains(message, "HTTPRoute "+c.namespace+
		"/same-name is named \"products\" too") {
		t.Errorf("the status says %q", message)
	}
}

// TestVirtualService: a policy on one route of a VirtualService behind a classic Gateway.
func TestVirtualService(t *testing.T) {
	c := newCached(t)
	port := istio.FreePort(t)
	proxy := mesh.StartClassicGateway(t, c.namespace, "classic", map[string]string{"istio": c.namespace})
	_ = proxy
	c.port = port
	c.apply(`
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: classic}
spec:
  selector: {istio: %s}
  servers: [{port: {number: %s, name: http, protocol: HTTP}, hosts: ["*"]}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: shop}
spec:
  hosts: [shop.test]
  gateways: [classic]
  http:
  - name: products
    match: [{name: m1, uri: {prefix: /products}}, {uri: {prefix: /alias}}]
    route: [{destination: {host: web, port: {number: 80}}}]
  - name: rest
    route: [{destination: {host: web, port: {number: 80}}}]
`, c.namespace, port)
	c.serves("shop.test", "/")
	c.apply(`
apiVersion: weir.dev/v1alpha1
kind: CachePolicy
metadata: {name: pages}
spec:
  targetRefs: [{group: networking.istio.io, kind: VirtualService, name: shop, sectionName: products}]
  ` + pageSpec + `
`)
	c.attached()
	c.inForce("shop.test", "/products")
	c.missThenHit("shop.test", "/products/1")
	c.missThenHit("shop.test", "/alias/1")
	c.notAsked("shop.test", "/")
}

// TestMesh: an HTTPRoute with a Service as parent is cached in the sidecar of a caller, once the policy says that the
// server's authorization may be skipped.
func TestMesh(t *testing.T) {
	c := newCached(t)
	port := istio.FreePort(t)
	c.port = port
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	mesh.Service(t, c.namespace, "catalog", "http", number, c.origin.Address())
	// Without a node there is nothing that sends a caller's connections to its sidecar: it listens on a port instead.
	c.apply(`
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: caller}
spec:
  workloadSelector: {labels: {app: caller}}
  egress:
  - {port: {number: %s, protocol: HTTP, name: http}, bind: 127.0.0.1, captureMode: NONE, hosts: ["*/*"]}
  - {hosts: ["*/*"]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: catalog}
spec:
  parentRefs: [{group: "", kind: Service, name: catalog}]
  rules:
  - {matches: [{path: {value: /products}}], backendRefs: [{name: catalog, port: %s}]}
  - {name: rest, backendRefs: [{name: catalog, port: %s}]}
`, port, port, port)
	mesh.StartSidecar(t, c.namespace, "caller", map[string]string{"app": "caller"})
	host := "catalog." + c.namespace + ".svc.cluster.local"
	c.serves(host, "/products")

	policy := `
apiVersion: weir.dev/v1alpha1
kind: CachePolicy
metadata: {name: pages}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: catalog}]
  ` + pageSpec
	c.apply("%s", policy)
	if _, verdicts := c.reconcile(); len(verdicts) != 0 {
		t.Errorf("attached without the policy's word: %+v", verdicts)
	}
	c.apply("%s", policy+"\n  mesh: {serverAuthorization: SkipOnHit}")
	c.attached()
	c.inForce(host, "/products")
	c.missThenHit(host, "/products/1")
	c.missThenHit(host, "/rest/1")
	c.remove(policy)
	c.reconcile()
	harness.Eventually(t, time.Minute, "weir is not asked any more", func() bool {
		return status(c.get(host, "/products/1")) == ""
	})
	if left := c.envoyFilters(); left != "" {
		t.Errorf("left behind: %s", left)
	}
}

package istio_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	"github.com/weirproxy/weir/controller/attach"
	attachistio "github.com/weirproxy/weir/controller/attach/istio"
	"github.com/weirproxy/weir/controller/translate"
	"github.com/weirproxy/weir/e2e/harness"
	"github.com/weirproxy/weir/e2e/istio"
)

// pageSpec is what the tests' policies say, in the cluster and in the file of the data plane.
const pageSpec = `ttl: {default: 10m}`

// cached is a stage with a data plane and an attacher.
type cached struct {
	*stage
	weir     *harness.Weir
	attacher *attachistio.Attacher
}

// newCached starts one. The data plane has the policy "pages" by a file: what is tested is how requests come to it.
func newCached(t *testing.T) *cached {
	t.Helper()
	c := &cached{stage: newStage(t), attacher: attachistio.New(attachistio.Config{
		RootNamespace: istio.RootNamespace, ClusterDomain: "cluster.local"})}
	c.weir = harness.StartWeir(t, harness.WeirOptions{Policies: map[string]string{"pages.yaml": `
apiVersion: weir.dev/v1alpha1
kind: CachePolicy
metadata: {name: pages, namespace: ` + c.namespace + `}
spec: {` + pageSpec + `}
`}})
	mesh.Service(t, c.namespace, "weir-extproc", "grpc", 9002, c.weir.GRPCAddress)
	return c
}

// reconcile does once what the controller does at each change: learn, translate, attach.
func (c *cached) reconcile() (*translate.Output, []attach.Verdict) {
	c.t.Helper()
	ctx, kube := c.t.Context(), mesh.Kube.Client
	learned, err := c.attacher.Learn(ctx, kube)
	if err != nil {
		c.t.Fatalf("learn: %v", err)
	}
	out := translate.Translate(&translate.Input{
		CachePolicies:  list[*v1alpha1.CachePolicy](c.t, &v1alpha1.CachePolicyList{}, c.namespace),
		GatewayClasses: list[*gatewayv1.GatewayClass](c.t, &gatewayv1.GatewayClassList{}, ""),
		Gateways:       list[*gatewayv1.Gateway](c.t, &gatewayv1.GatewayList{}, c.namespace),
		HTTPRoutes:     list[*gatewayv1.HTTPRoute](c.t, &gatewayv1.HTTPRouteList{}, c.namespace),
		Services:       list[*corev1.Service](c.t, &corev1.ServiceList{}, c.namespace),
		Namespaces:     list[*corev1.Namespace](c.t, &corev1.NamespaceList{}, ""),
		Controllers:    c.attacher.Controllers(), Guards: learned.Guards, Addresses: learned.Addresses,
	})
	verdicts, err := c.attacher.Attach(ctx, kube, attach.Wanted{Attachments: out.Attached, DataPlane: attach.DataPlane{
		Service: types.NamespacedName{Namespace: c.namespace, Name: "weir-extproc"}, Port: 9002, Resolves: true}})
	if err != nil {
		c.t.Fatalf("attach: %v", err)
	}
	return out, verdicts
}

// attached reconciles until policies are in force and all that they are on is attached, as the controller would with
// every change: istiod accepts routes in its own time.
func (c *cached) attached() {
	c.t.Helper()
	var said string
	defer func() { c.t.Log(said) }()
	harness.Eventually(c.t, time.Minute, "the policies are attached", func() bool {
		out, verdicts := c.reconcile()
		said = fmt.Sprintf("verdicts %+v, attached %+v", out.Verdicts, verdicts)
		return len(verdicts) > 0 && !slices.ContainsFunc(verdicts, func(v attach.Verdict) bool { return v.State != attach.Attached })
	})
}

// list returns the objects of a namespace, or of all.
func list[T client.Object](t *testing.T, into client.ObjectList, namespace string) []T {
	t.Helper()
	if err := mesh.Kube.Client.List(t.Context(), into, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	var out []T
	err := meta.EachListItem(into, func(o runtime.Object) error {
		out = append(out, o.(T))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// status is what weir said of a response: "" if it was not asked.
func status(r harness.Response) string {
	for _, member := range strings.Split(r.Header.Get("Cache-Status"), ",") {
		if member = strings.TrimSpace(member); strings.HasPrefix(member, "weir;") {
			return strings.TrimSpace(strings.TrimPrefix(member, "weir;"))
		}
	}
	return ""
}

// isHit says whether a response came from the cache.
func isHit(r harness.Response) bool {
	return r.Status == http.StatusOK && strings.HasPrefix(status(r), "hit")
}

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
// its neighbours; it comes and goes while requests flow; without weir they flow too.
func TestGatewayCaches(t *testing.T) {
	c := newCached(t)
	c.origin.Handle("/", harness.Always(harness.Reply{Body: []byte("hello\n")}))
	c.apply(catalogRoute)
	harness.Eventually(t, time.Minute, "the Gateway listens", c.listening)
	harness.Eventually(t, time.Minute, "the Gateway serves", func() bool { return c.get("shop.test", "/").Status == 200 })

	c.apply(productsPolicy)
	c.attached()
	applied := time.Now()
	harness.Eventually(t, time.Minute, "weir is asked", func() bool { return status(c.get("shop.test", "/products")) != "" })
	t.Logf("the policy was in force after %v", time.Since(applied))

	if r := c.get("shop.test", "/products/1"); isHit(r) || status(r) == "" {
		t.Errorf("first answer: Cache-Status %q", r.Header.Get("Cache-Status"))
	}
	if r := c.get("shop.test", "/products/1"); !isHit(r) || string(r.Body) != "hello\n" {
		t.Errorf("second answer: %d, Cache-Status %q, %q", r.Status, r.Header.Get("Cache-Status"), r.Body)
	}
	for _, path := range []string{"/unnamed", "/"} {
		for range 2 {
			if r := c.get("shop.test", path); status(r) != "" {
				t.Errorf("%s, which no policy is on: Cache-Status %q", path, r.Header.Get("Cache-Status"))
			}
		}
	}

	c.weir.Kill()
	if r := c.get("shop.test", "/products/1"); r.Status != http.StatusOK || status(r) != "" {
		t.Errorf("without weir: %d, Cache-Status %q", r.Status, r.Header.Get("Cache-Status"))
	}
}

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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	release  *metav1.OwnerReference
	resolves bool // the Service of the data plane is there
}

// newCached starts one. The data plane has the policy "pages" by a file: what is tested is how requests come to it.
func newCached(t *testing.T) *cached {
	t.Helper()
	c := &cached{stage: newStage(t), resolves: true, attacher: attachistio.New(attachistio.Config{
		RootNamespace: istio.RootNamespace, ClusterDomain: "cluster.local"})}
	c.origin.Handle("/", harness.Always(harness.Reply{Body: []byte("hello\n")}))
	c.startWeir("")
	mesh.Service(t, c.namespace, "weir-extproc", "grpc", 9002, c.weir.GRPCAddress)
	return c
}

func (c *cached) startWeir(address string) {
	c.t.Helper()
	c.weir = harness.StartWeir(c.t, harness.WeirOptions{GRPCAddress: address, Policies: map[string]string{"pages.yaml": `
apiVersion: weir.dev/v1alpha1
kind: CachePolicy
metadata: {name: pages, namespace: ` + c.namespace + `}
spec: {` + pageSpec + `}
`}})
}

// restart starts weir again, where it was, and waits until it is asked.
func (c *cached) restart() {
	c.t.Helper()
	c.startWeir(c.weir.GRPCAddress)
	c.inForce("shop.test", "/products")
}

// serves waits until the proxy serves a host and path.
func (c *cached) serves(host, path string) {
	c.t.Helper()
	harness.Eventually(c.t, time.Minute, "the proxy listens", c.listening)
	harness.Eventually(c.t, time.Minute, "the proxy serves "+host+path, func() bool {
		return c.get(host, path).Status == http.StatusOK
	})
}

// inForce waits until weir is asked.
func (c *cached) inForce(host, path string) {
	c.t.Helper()
	from := time.Now()
	harness.Eventually(c.t, time.Minute, "weir is asked", func() bool { return status(c.get(host, path)) != "" })
	c.t.Logf("weir was asked after %v", time.Since(from))
}

// missThenHit asks twice for what nobody asked for before.
func (c *cached) missThenHit(host, path string) {
	c.t.Helper()
	if r := c.get(host, path); isHit(r) || status(r) == "" {
		c.t.Errorf("%s%s, first answer: %d, Cache-Status %q", host, path, r.Status, r.Header.Get("Cache-Status"))
	}
	if r := c.get(host, path); !isHit(r) || string(r.Body) != "hello\n" {
		c.t.Errorf("%s%s, second answer: %d, Cache-Status %q, %q", host, path, r.Status, r.Header.Get("Cache-Status"), r.Body)
	}
}

// notAsked asks twice, and finds no trace of weir.
func (c *cached) notAsked(host, path string) {
	c.t.Helper()
	for range 2 {
		if r := c.get(host, path); r.Status != http.StatusOK || status(r) != "" {
			c.t.Errorf("%s%s, which no policy is on: %d, Cache-Status %q", host, path, r.Status, r.Header.Get("Cache-Status"))
		}
	}
}

// remove deletes the objects of documents in the namespace.
func (c *cached) remove(documents string) {
	c.t.Helper()
	mesh.DeleteIn(c.t, c.namespace, documents)
}

// envoyFilter is what is at a path of an EnvoyFilter in the namespace.
func (c *cached) envoyFilter(name, path string) string {
	c.t.Helper()
	return mesh.Kubectl(c.t, "-n", c.namespace, "get", "envoyfilter", name, "--output=jsonpath="+path)
}

// envoyFilters are the names of those that there are.
func (c *cached) envoyFilters() string {
	c.t.Helper()
	return mesh.Kubectl(c.t, "get", "envoyfilters", "-A", "-o", "name")
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
		CachePolicies:   list[*v1alpha1.CachePolicy](c.t, &v1alpha1.CachePolicyList{}, c.namespace),
		GatewayClasses:  list[*gatewayv1.GatewayClass](c.t, &gatewayv1.GatewayClassList{}, ""),
		Gateways:        list[*gatewayv1.Gateway](c.t, &gatewayv1.GatewayList{}, c.namespace),
		VirtualServices: learned.VirtualServices, ClassicGateways: learned.ClassicGateways,
		HTTPRoutes:  list[*gatewayv1.HTTPRoute](c.t, &gatewayv1.HTTPRouteList{}, c.namespace),
		Services:    list[*corev1.Service](c.t, &corev1.ServiceList{}, c.namespace),
		Namespaces:  list[*corev1.Namespace](c.t, &corev1.NamespaceList{}, ""),
		Controllers: c.attacher.Controllers(), Guards: learned.Guards, Addresses: learned.Addresses,
	})
	verdicts, err := c.attacher.Attach(ctx, kube, attach.Wanted{Attachments: out.Attached, Release: c.release,
		DataPlane: attach.DataPlane{Service: types.NamespacedName{Namespace: c.namespace, Name: "weir-extproc"}, Port: 9002,
			Resolves: c.resolves}})
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
	defer func() {
		if c.t.Failed() {
			c.t.Log(said)
		}
	}()
	notYet := func(v attach.Verdict) bool { return v.State != attach.Attached }
	harness.Eventually(c.t, time.Minute, "the policies are attached", func() bool {
		out, verdicts := c.reconcile()
		said = fmt.Sprintf("%+v, attached: %+v", out.Verdicts, verdicts)
		return len(verdicts) > 0 && !slices.ContainsFunc(verdicts, notYet)
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
	for member := range strings.SplitSeq(r.Header.Get("Cache-Status"), ",") {
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

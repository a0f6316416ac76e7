package istio_test

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/e2e/harness"
	"github.com/weirproxy/weir/e2e/istio"
)

const systemNamespace = "weir-system"

// replicaOfWeir says that the Service of the data plane has a ready replica of that name. Its port is another than the
// proxies call: those find weir by a WorkloadEntry, since an EndpointSlice takes no loopback address.
const replicaOfWeir = `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: weir-extproc, labels: {kubernetes.io/service-name: weir-extproc}}
addressType: IPv4
ports: [{name: health, port: 9003, protocol: TCP}]
endpoints: [{addresses: [10.255.0.1], hostname: weir-0, conditions: {ready: true}}]
`

// TestWhole has the real weir-controller and the real weir-extproc, which has its policies by the feed: two rules of one
// route have policies of their own, told apart by their scopes; a lost controller changes nothing.
func TestWhole(t *testing.T) {
	s := newStage(t)
	c := &cached{stage: s}
	c.origin.Handle("/", harness.Always(harness.Reply{Body: []byte("hello\n")}))
	mesh.Kubectl(t, "create", "namespace", systemNamespace)
	feed := "127.0.0.1:" + istio.FreePort(t)
	c.weir = harness.StartWeir(t, harness.WeirOptions{Args: []string{
		"--policy-dir=", "--controller-address=" + feed, "--replica-name=weir-0", "--controller-wait=1ms"}})
	mesh.Service(t, systemNamespace, "weir-extproc", "grpc", 9002, c.weir.GRPCAddress)
	mesh.ApplyIn(t, systemNamespace, replicaOfWeir)
	controller := startController(t, feed)

	c.apply(catalogRoute)
	c.serves("shop.test", "/")
	c.apply(`
apiVersion: weir.dev/v1alpha1
kind: CachePolicy
metadata: {name: products}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: catalog, sectionName: products}]
  ttl: {default: 10m}
---
apiVersion: weir.dev/v1alpha1
kind: CachePolicy
metadata: {name: whole}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: catalog}]
  ttl: {default: 1m}
  jitterPercent: 0
`)
	for _, name := range []string{"products", "whole"} {
		c.programmed(name, "True")
	}
	c.inForce("shop.test", "/products")
	c.inForce("shop.test", "/unnamed")
	c.missThenHit("shop.test", "/products/1")
	c.missThenHit("shop.test", "/unnamed/1")
	c.notAsked("other.test", "/products")
	c.wantTTL("/unnamed/1", time.Minute)
	c.wantTTL("/products/1", 10*time.Minute)

	if err := controller.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, time.Minute, "the controller is gone", func() bool { return !listens(feed) })
	if r := c.get("shop.test", "/products/1"); !isHit(r) {
		t.Errorf("without the controller: Cache-Status %q", r.Header.Get("Cache-Status"))
	}
	mesh.Kubectl(t, "-n", c.namespace, "delete", "cachepolicy", "products", "whole")
	startController(t, feed)
	harness.Eventually(t, time.Minute, "a new controller removes what the lost one left", func() bool {
		return mesh.Kubectl(t, "-n", c.namespace, "get", "envoyfilters", "-o", "name") == "" // other tests leave policies
	})
	harness.Eventually(t, time.Minute, "weir is not asked any more", func() bool {
		return status(c.get("shop.test", "/products/1")) == ""
	})
}

// wantTTL looks which policy's lifetime a hit has, but for the jitter and what has passed of it.
func (c *cached) wantTTL(path string, want time.Duration) {
	c.t.Helper()
	got := status(c.get("shop.test", path))
	_, ttl, _ := strings.Cut(got, "ttl=")
	seconds, err := strconv.Atoi(ttl)
	if left := time.Duration(seconds) * time.Second; err != nil || left > want || left < want/2 {
		c.t.Errorf("%s: Cache-Status %q, want a lifetime of %v", path, got, want)
	}
}

// programmed waits until a policy says so at its only ancestor.
func (c *cached) programmed(name, want string) {
	c.t.Helper()
	harness.Eventually(c.t, time.Minute, "Programmed of "+name+" is "+want, func() bool {
		return mesh.Kubectl(c.t, "-n", c.namespace, "get", "cachepolicy", name,
			"--output=jsonpath={.status.ancestors[0].conditions[?(@.type==\"Programmed\")].status}") == want
	})
}

// startController starts a weir-controller as the cluster's administrator.
func startController(t *testing.T, feed string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(harness.Binary(t, "weir-controller"), "--attach=istio", "--feed-bind-address="+feed,
		"--metrics-bind-address=0", "--health-probe-bind-address=0", "--leader-elect=false",
		"--data-plane-service="+systemNamespace+"/weir-extproc")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+mesh.Kube.Kubeconfig, "POD_NAMESPACE="+systemNamespace)
	harness.StartProgram(t, "weir-controller", cmd, feed)
	return cmd
}

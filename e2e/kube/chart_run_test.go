package kube_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	"github.com/weirproxy/weir/e2e/harness"
	"github.com/weirproxy/weir/e2e/kube"
)

// patience is how long this test waits for others: a busy machine is slow.
const patience = 2 * time.Minute

// TestChartRuns runs controller and data plane as processes, with the settings, certificates, keys and rights that the
// chart gives them: they find each other by mTLS, and a policy comes into force.
func TestChartRuns(t *testing.T) {
	t.Parallel()
	own := kube.Start(t) // a controller acts on all of a cluster
	r := &release{t: t, on: own, name: "weir", namespace: own.Namespace(t)}
	r.helm("install", r.name, weirChart, "--set", "controller.attach={envoy-gateway},controller.config.log-level=debug")
	r.runJob()

	feed := address(t)
	controller := r.program("controller", "--feed-bind-address="+feed, "--metrics-bind-address=0",
		"--health-probe-bind-address=0", "--leader-election-retry-period=200ms")
	controller.Env = append(controller.Env, "KUBECONFIG="+r.kubeconfigOf("weir-controller"), "POD_NAMESPACE="+r.namespace)
	logs := follow(t, controller)
	harness.StartProgram(t, "weir-controller", controller, feed)
	grpc := address(t)
	harness.StartProgram(t, "weir-extproc", r.program("extproc", "--controller-address="+feed, "--grpc-bind-address="+grpc,
		"--metrics-bind-address=", "--health-probe-bind-address=", "--admin-bind-address=", "--replica-name=pod-0"), grpc)
	r.ready("pod-0")
	r.health(grpc)

	shop := own.Namespace(t)
	r.routeAt(shop)
	p := policy(shop, map[string]any{"targetRefs": []any{map[string]any{
		"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "catalog",
	}}})
	if err := own.Client.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	extension := r.acceptExtension(shop)
	if owners := extension.GetOwnerReferences(); len(owners) != 1 || owners[0].Name != r.namespace+"-weir-controller" {
		t.Errorf("what the controller wrote is owned by %+v", owners)
	}
	is := &v1alpha1.CachePolicy{}
	harness.Eventually(t, patience, "the policy is programmed", func() bool {
		if err := own.Client.Get(t.Context(), client.ObjectKeyFromObject(p), is); err != nil || len(is.Status.Ancestors) == 0 {
			return false
		}
		return meta.IsStatusConditionTrue(is.Status.Ancestors[0].Conditions, v1alpha1.PolicyConditionProgrammed)
	})
	text, err := os.ReadFile(logs)
	if err != nil || !strings.Contains(string(text), "Feed serves") || strings.Contains(string(text), "forbidden") {
		t.Errorf("the controller lacks a right: %v\n%s", err, text)
	}
}

// address is one on loopback that nobody listens on.
func address(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// program is a component with what the chart mounts into its pods, and with flags that suit a process of this machine.
func (r *release) program(component string, flags ...string) *exec.Cmd {
	r.t.Helper()
	dir := r.t.TempDir()
	config := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: r.namespace, Name: "weir-" + component}
	if err := r.on.Client.Get(r.t.Context(), key, config); err != nil {
		r.t.Fatal(err)
	}
	files := map[string][]byte{
		"config.yaml": []byte(strings.ReplaceAll(config.Data["config.yaml"], "/etc/weir", dir)),
		"keys/keys":   r.secrets()["weir-keys"]["keys"],
	}
	for name, data := range r.secrets()["weir-"+component+"-tls"] {
		files["tls/"+name] = data
	}
	for name, data := range files {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
	program := exec.Command(harness.Binary(r.t, "weir-"+component),
		append([]string{"--config=" + filepath.Join(dir, "config.yaml")}, flags...)...)
	program.Env = os.Environ()
	return program
}

// follow has a program write its log to a file, by way of a shell.
func follow(t *testing.T, program *exec.Cmd) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "log")
	program.Args = append([]string{"sh", "-c", `exec "$@" 2>"$0"`, file, program.Path}, program.Args[1:]...)
	program.Path = "/bin/sh"
	t.Cleanup(func() {
		if t.Failed() {
			text, _ := os.ReadFile(file)
			t.Logf("--- log:\n%s", text)
		}
	})
	return file
}

// health waits until the data plane serves, and asks as the pod of helm test does.
func (r *release) health(address string) {
	r.t.Helper()
	ca := filepath.Join(r.t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, r.secrets()["weir-extproc-tls"]["ca.crt"], 0o600); err != nil {
		r.t.Fatal(err)
	}
	weirctl := harness.Binary(r.t, "weirctl")
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		out, err := exec.CommandContext(r.t.Context(), weirctl, "health", address, "--timeout=1m",
			"--ca-file="+ca, "--server-name=weir-extproc."+r.namespace+".svc").CombinedOutput()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			r.t.Fatalf("weirctl health: %v: %s", err, out)
		}
	}
}

// ready plays Kubernetes, which lists the data plane's pods that are ready.
func (r *release) ready(pod string) {
	r.t.Helper()
	err := r.on.Client.Create(r.t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: "weir-extproc-1", Namespace: r.namespace,
			Labels: map[string]string{discoveryv1.LabelServiceName: "weir-extproc"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: pod, Namespace: r.namespace},
		}},
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// routeAt makes a route of Envoy Gateway, and plays Envoy Gateway, which accepts it.
func (r *release) routeAt(namespace string) {
	r.t.Helper()
	_, err := r.on.Kubectl(r.t.Context(), `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: eg}
spec: {controllerName: gateway.envoyproxy.io/gatewayclass-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: public}
spec:
  gatewayClassName: eg
  listeners: [{name: http, port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: catalog}
spec:
  parentRefs: [{name: public}]
  hostnames: [shop.example]
  rules: [{backendRefs: [{name: catalog, port: 80}]}]
`, "apply", "-n", namespace, "-f", "-")
	if err != nil {
		r.t.Fatal(err)
	}
	route := &gatewayv1.HTTPRoute{}
	key := client.ObjectKey{Namespace: namespace, Name: "catalog"}
	if err := r.on.Client.Get(r.t.Context(), key, route); err != nil {
		r.t.Fatal(err)
	}
	route.Status.Parents = []gatewayv1.RouteParentStatus{{
		ParentRef: gatewayv1.ParentReference{Name: "public"}, ControllerName: "gateway.envoyproxy.io/gatewayclass-controller",
		Conditions: []metav1.Condition{{
			Type: "Accepted", Status: metav1.ConditionTrue, Reason: "Accepted", LastTransitionTime: metav1.Now(),
			ObservedGeneration: route.Generation,
		}},
	}}
	if err := r.on.Client.Status().Update(r.t.Context(), route); err != nil {
		r.t.Fatal(err)
	}
}

// acceptExtension waits for the controller's EnvoyExtensionPolicy and plays Envoy Gateway, which accepts it.
func (r *release) acceptExtension(namespace string) *unstructured.Unstructured {
	r.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("gateway.envoyproxy.io/v1alpha1")
	list.SetKind("EnvoyExtensionPolicyList")
	harness.Eventually(r.t, patience, "the controller's EnvoyExtensionPolicy is accepted", func() bool {
		err := r.on.Client.List(r.t.Context(), list, client.InNamespace(namespace))
		if err != nil || len(list.Items) != 1 {
			return false
		}
		o := &list.Items[0]
		var status map[string]any
		text := fmt.Sprintf(`ancestors: [{ancestorRef: {name: public, namespace: %s},
  controllerName: gateway.envoyproxy.io/gatewayclass-controller, conditions: [{type: Accepted, status: "True",
  reason: Accepted, message: Yes., observedGeneration: %d, lastTransitionTime: "2026-01-01T00:00:00Z"}]}]`,
			namespace, o.GetGeneration())
		if err := yaml.Unmarshal([]byte(text), &status); err != nil {
			r.t.Fatal(err)
		}
		o.Object["status"] = status
		return r.on.Client.Status().Update(r.t.Context(), o) == nil
	})
	return &list.Items[0]
}

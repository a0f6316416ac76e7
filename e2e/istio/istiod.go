package istio

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirproxy/weir/e2e/harness"
	"github.com/weirproxy/weir/e2e/kube"
)

const (
	// RootNamespace is Istio's own namespace: an EnvoyFilter there is for the whole mesh.
	RootNamespace = "istio-system"
	// startLimit bounds how long a process, or what istiod writes, may take on a busy machine.
	startLimit = time.Minute
)

// Istio is an istiod that serves an API server.
type Istio struct {
	Kube *kube.Server
	// xds is where proxies connect, host:port, in plain text.
	xds string
}

// Main starts an API server and istiod for all tests of a package, runs them, and returns the exit status. For
// TestMain.
func Main(m *testing.M, istio **Istio) int {
	status := 1
	err := harness.Run(context.Background(), os.Stderr, func(tb harness.TB) {
		*istio = Start(tb, kube.Start(tb))
		status = m.Run()
	})
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := goleak.Find(); err != nil && status == 0 {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return status
}

// Start installs Istio's CRDs and settings and starts istiod, which ends with the test. It takes some 3 seconds.
func Start(tb harness.TB, server *kube.Server) *Istio {
	tb.Helper()
	i := &Istio{Kube: server, xds: freeAddress(tb)}
	charts := harness.IstioCharts(tb)
	i.kubectl(tb, "", "apply", "--server-side", "-f", filepath.Join(charts, "base", "files", "crd-all.gen.yaml"))
	i.kubectl(tb, "", "create", "namespace", RootNamespace)
	i.Apply(tb, i.settings(tb, filepath.Join(charts, "istio-discovery")))
	i.ApplyIn(tb, RootNamespace, noMTLS)

	web := freeAddress(tb)
	cmd := exec.Command(harness.IstiodBinary(tb), "discovery",
		"--kubeconfig", server.Kubeconfig, "--domain", "cluster.local",
		"--httpAddr", web, "--grpcAddr", i.xds,
		"--secureGRPCAddr", freeAddress(tb), "--httpsAddr", freeAddress(tb), "--monitoringAddr", freeAddress(tb),
		"--ctrlz_port", "0",
	)
	cmd.Dir = tb.TempDir()
	cmd.Env = append(os.Environ(), "POD_NAME=istiod", "POD_NAMESPACE="+RootNamespace,
		// Plain Envoy has none of Istio's own filters.
		"PILOT_ENABLE_METADATA_EXCHANGE=false", "PILOT_ENABLE_ALPN_FILTER=false",
		// Tests are in a hurry: how long istiod waits for more changes before it pushes.
		"PILOT_DEBOUNCE_AFTER=20ms")
	harness.StartProgram(tb, "istiod", cmd, i.xds)
	harness.Eventually(tb, startLimit, "istiod is ready", func() bool { return answers(tb, "http://"+web+"/ready") })
	return i
}

// noMTLS keeps sidecars from waiting for certificates, which there is no agent to bring.
const noMTLS = `
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: default}
spec: {mtls: {mode: DISABLE}}
`

// settings renders the ConfigMaps of Istio's chart: those of the mesh, and the template of a gateway's Service, which
// istiod makes nothing without.
func (i *Istio) settings(tb harness.TB, chart string) string {
	tb.Helper()
	out, err := i.Kube.Helm(tb.Context(), "template", "istiod", chart, "--namespace", RootNamespace,
		"--set", "telemetry.enabled=false", "--set", "meshConfig.enableAutoMtls=false",
		"-s", "templates/configmap.yaml", "-s", "templates/istiod-injector-configmap.yaml")
	if err != nil {
		tb.Fatalf("render Istio's settings: %v", err)
	}
	return out
}

// Apply applies YAML documents.
func (i *Istio) Apply(tb harness.TB, documents string) {
	tb.Helper()
	i.kubectl(tb, documents, "apply", "--server-side", "--force-conflicts", "-f", "-")
}

// ApplyIn applies YAML documents that name no namespace of their own, in a namespace.
func (i *Istio) ApplyIn(tb harness.TB, namespace, documents string) {
	tb.Helper()
	i.kubectl(tb, documents, "-n", namespace, "apply", "--server-side", "--force-conflicts", "-f", "-")
}

// Service makes a Service whose one endpoint is a process on this machine (host:port).
func (i *Istio) Service(tb harness.TB, namespace, name, portName string, port int, address string) {
	tb.Helper()
	host, number := split(tb, address)
	i.ApplyIn(tb, namespace, fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: %[1]s}
spec: {selector: {app: %[1]s}, ports: [{name: %[2]s, port: %[3]d}]}
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: %[1]s}
spec: {address: %[4]s, labels: {app: %[1]s}, ports: {%[2]s: %[5]s}}
`, name, portName, port, host, number))
}

// DeleteIn deletes the objects of YAML documents that name no namespace of their own, in a namespace.
func (i *Istio) DeleteIn(tb harness.TB, namespace, documents string) {
	tb.Helper()
	i.kubectl(tb, documents, "-n", namespace, "delete", "--ignore-not-found", "-f", "-")
}

// Kubectl runs kubectl, and returns what it printed, without space around it.
func (i *Istio) Kubectl(tb harness.TB, args ...string) string {
	tb.Helper()
	return i.kubectl(tb, "", args...)
}

func (i *Istio) kubectl(tb harness.TB, stdin string, args ...string) string {
	tb.Helper()
	out, err := i.Kube.Kubectl(tb.Context(), stdin, args...)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	return strings.TrimSpace(out)
}

// freeAddress is an address of loopback that nothing listens on. Another process may take it before it is used.
func freeAddress(tb harness.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("find a free port: %v", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// FreePort is a port of loopback that nothing listens on. Another process may take it before it is used.
func FreePort(tb harness.TB) string {
	tb.Helper()
	_, port := split(tb, freeAddress(tb))
	return port
}

// answers says whether a URL answers 200.
func answers(tb harness.TB, url string) bool {
	request, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, url, nil)
	if err != nil {
		tb.Fatalf("ask %s: %v", url, err)
	}
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	defer func() { _ = response.Body.Close() }()
	return response.StatusCode == http.StatusOK
}

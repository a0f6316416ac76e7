package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/weirproxy/weir/e2e/harness"
)

// InstallEnvoyGateway installs Envoy Gateway, its CRDs and those of the Gateway API, and the GatewayClass
// "envoy-gateway", whose Gateways run the Envoy that tools.env pins and get NodePorts.
func (c *Cluster) InstallEnvoyGateway(tb harness.TB) {
	tb.Helper()
	const program, envoy = "/usr/local/bin/envoy-gateway", "/usr/local/bin/envoy"
	dir := harness.EnvoyGatewayDir(tb)
	c.LoadImage(tb, Image{
		Name: envoyGatewayImage, Program: program, User: "65532",
		Files: map[string]string{program: filepath.Join(dir, "bin/envoy-gateway")},
	})
	c.LoadImage(tb, Image{
		Name: EnvoyImage, Program: envoy, User: "65532", Files: map[string]string{envoy: harness.EnvoyBinary(tb)},
	})
	chart, err := envoyGatewayChart(filepath.Join(dir, "chart"))
	if err != nil {
		tb.Fatalf("prepare the chart of Envoy Gateway: %v", err)
	}
	_, err = c.Helm(tb.Context(), "install", "envoy-gateway", chart, "--namespace=envoy-gateway-system",
		"--create-namespace", "--wait", "--timeout="+startLimit.String())
	if err != nil {
		tb.Fatalf("install Envoy Gateway: %v\n%s", err, c.Describe(tb, "envoy-gateway-system"))
	}
	manifests, err := fill("envoygateway.yaml")
	if err != nil {
		tb.Fatalf("%v", err)
	}
	c.Apply(tb, manifests)
}

// envoyGatewayChart returns a copy of the chart with the names in its values that a release of it would have filled in.
func envoyGatewayChart(source string) (string, error) {
	chart := filepath.Join(stateDir, "envoy-gateway-chart")
	if err := os.CopyFS(chart, os.DirFS(source)); err != nil {
		return "", err
	}
	values, err := os.ReadFile(filepath.Join(source, "values.tmpl.yaml"))
	if err != nil {
		return "", err
	}
	filled := strings.NewReplacer(
		"${GatewayImage}", envoyGatewayImage, "${GatewayImagePullPolicy}", "IfNotPresent",
	).Replace(string(values))
	return chart, os.WriteFile(filepath.Join(chart, "values.yaml"), []byte(filled), 0o644)
}

// GatewayURL returns the URL, without a path, that leads to a listener's port of a Gateway of Envoy Gateway: its
// NodePort. It waits until the Gateway is programmed.
func (c *Cluster) GatewayURL(tb harness.TB, namespace, name string, port int) string {
	tb.Helper()
	c.Await(tb, "--namespace="+namespace, "--for=condition=Programmed", "gateway/"+name)
	out, err := c.Kubectl(tb.Context(), "", "get", "service", "--namespace=envoy-gateway-system", "--selector="+
		"gateway.envoyproxy.io/owning-gateway-namespace="+namespace+",gateway.envoyproxy.io/owning-gateway-name="+name,
		"--output=jsonpath={.items[0].spec.ports[?(@.port=="+strconv.Itoa(port)+")].nodePort}")
	if err != nil {
		tb.Fatalf("find the port of the gateway %s/%s: %v", namespace, name, err)
	}
	return fmt.Sprintf("http://%s:%s", NodeIP, out)
}

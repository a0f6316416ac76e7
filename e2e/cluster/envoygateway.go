package cluster

import (
	"net"
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
		"--create-namespace", "--set=config.envoyGateway.extensionApis.enableLua=true", "--wait",
		"--timeout="+startLimit.String())
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
// NodePort. It waits until the Gateway's Envoy is available, not for the Gateway's condition Programmed: Envoy Gateway
// 1.9.1 was seen to leave it at AddressNotAssigned for minutes, with an Envoy that was available.
func (c *Cluster) GatewayURL(tb harness.TB, namespace, name string, port int) string {
	tb.Helper()
	owned := []string{
		"--namespace=envoy-gateway-system", "--selector=gateway.envoyproxy.io/owning-gateway-namespace=" + namespace +
			",gateway.envoyproxy.io/owning-gateway-name=" + name,
	}
	var nodePort string
	harness.Eventually(tb, startLimit, "the gateway "+name+" has a NodePort", func() bool {
		path := "{.items[*].spec.ports[?(@.port==" + strconv.Itoa(port) + ")].nodePort}"
		get := []string{"get", "service", "--output=jsonpath=" + path}
		out, err := c.Kubectl(tb.Context(), "", append(get, owned...)...)
		nodePort = out
		return err == nil && out != ""
	})
	c.Await(tb, append([]string{"--for=condition=Available", "deployment"}, owned...)...)
	return "http://" + net.JoinHostPort(NodeIP, nodePort)
}

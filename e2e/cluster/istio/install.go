package istio

import (
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"

	"github.com/weirproxy/weir/e2e/cluster"
	"github.com/weirproxy/weir/e2e/harness"
)

const (
	// RootNamespace is Istio's own namespace.
	RootNamespace = "istio-system"
	pilotImage    = "weir.test/pilot:local"
	// ProxyImage is the image of gateways and sidecars.
	ProxyImage = "weir.test/proxyv2:local"
	// proxyUser is the user that Istio's charts expect the image of the proxy to name.
	proxyUser = "1337"
)

// Install installs Istio: the class "istio" of Gateways, and sidecars for pods that ask for one. The CRDs of the
// Gateway API must be there.
func Install(tb harness.TB, c *cluster.Cluster) {
	tb.Helper()
	const pilot, agent = "/usr/local/bin/pilot-discovery", "/usr/local/bin/pilot-agent"
	c.LoadImage(tb, cluster.Image{
		Name: pilotImage, Program: pilot, User: proxyUser, Files: map[string]string{pilot: harness.IstiodBinary(tb)},
	})
	nft, err := exec.LookPath("nft")
	if err != nil {
		tb.Fatalf("find nft, which redirects a pod's connections to its sidecar: %v", err)
	}
	envoy := harness.EnvoyBinary(tb)
	files := map[string]string{
		agent:                  harness.IstioProxyFile(tb, "bin/pilot-agent"),
		"/usr/local/bin/envoy": envoy,
		"/usr/local/bin/nft":   nft,
		"/var/lib/istio/envoy/envoy_bootstrap_tmpl.json": harness.IstioProxyFile(tb, "envoy_bootstrap.json"),
	}
	for _, program := range []string{envoy, nft} {
		libraries, err := librariesOf(program)
		if err != nil {
			tb.Fatalf("%v", err)
		}
		maps.Copy(files, libraries)
	}
	c.LoadImage(tb, cluster.Image{Name: ProxyImage, Program: agent, User: proxyUser, Files: files})

	charts := harness.IstioCharts(tb)
	install := func(name, chart string, args ...string) {
		_, err := c.Helm(tb.Context(), append([]string{"install", name, filepath.Join(charts, chart),
			"--namespace=" + RootNamespace, "--create-namespace"}, args...)...)
		if err != nil {
			tb.Fatalf("install %s: %v\n%s", name, err, c.Describe(tb, RootNamespace))
		}
	}
	install("istio-base", "base")
	install("istiod", "istio-discovery", "--values=e2e/cluster/istio/testdata/istio.yaml", "--wait", "--timeout=3m")
}

var libraryPath = regexp.MustCompile(`/\S+`)

// librariesOf are the shared libraries that a program is linked with, at the places they have here.
func librariesOf(program string) (map[string]string, error) {
	out, err := exec.Command("ldd", program).Output()
	if err != nil {
		return nil, fmt.Errorf("find the libraries of %s: %w", program, err)
	}
	libraries := map[string]string{}
	for _, library := range libraryPath.FindAllString(string(out), -1) {
		libraries[library] = library
	}
	return libraries, nil
}

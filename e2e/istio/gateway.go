package istio

import (
	_ "embed"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"

	"github.com/weirproxy/weir/e2e/harness"
)

//go:embed envoy.yaml.tmpl
var envoyTemplate string

// Proxy is an Envoy that has its configuration from istiod.
type Proxy struct {
	// AdminAddress is the host:port of Envoy's admin interface.
	AdminAddress string

	tb harness.TB
}

// proxy is what the template of Envoy's bootstrap configuration is given.
type proxy struct {
	Kind      string // router | sidecar
	IP        string
	Namespace string
	Name      string
	Labels    map[string]string
	Version   string // of Istio

	XDSHost, XDSPort, AdminHost, AdminPort string
}

// StartGateway starts the proxy of a Gateway of class istio, after istiod made the Gateway's Service.
func (i *Istio) StartGateway(tb harness.TB, namespace, name string) *Proxy {
	tb.Helper()
	service := name + "-istio"
	harness.Eventually(tb, startLimit, "istiod made the Service "+service, func() bool {
		_, err := i.Kube.Kubectl(tb.Context(), "", "-n", namespace, "get", "service", service)
		return err == nil
	})
	return i.startProxy(tb, proxy{Kind: "router", Namespace: namespace, Name: name,
		Labels: map[string]string{"gateway.networking.k8s.io/gateway-name": name}})
}

// StartClassicGateway starts a proxy that a Gateway of networking.istio.io selects by a label.
func (i *Istio) StartClassicGateway(tb harness.TB, namespace, name string, labels map[string]string) *Proxy {
	tb.Helper()
	return i.startProxy(tb, proxy{Kind: "router", Namespace: namespace, Name: name, Labels: labels})
}

// StartSidecar starts the sidecar of a workload that has labels. What the workload sends does not come to it by
// itself.
func (i *Istio) StartSidecar(tb harness.TB, namespace, name string, labels map[string]string) *Proxy {
	tb.Helper()
	return i.startProxy(tb, proxy{Kind: "sidecar", Namespace: namespace, Name: name, Labels: labels})
}

// startProxy starts Envoy as one of Istio's proxies. istiod knows it by its address: a WorkloadEntry says which
// Service it belongs to.
func (i *Istio) startProxy(tb harness.TB, p proxy) *Proxy {
	tb.Helper()
	p.IP, p.Version = nextAddress(tb), "1.31.0"
	p.XDSHost, p.XDSPort = split(tb, i.xds)
	admin := freeAddress(tb)
	p.AdminHost, p.AdminPort = split(tb, admin)

	var entry strings.Builder
	fmt.Fprintf(&entry, "apiVersion: networking.istio.io/v1\nkind: WorkloadEntry\n"+
		"metadata: {name: proxy-%s, namespace: %s}\n"+
		"spec:\n  address: %s\n  labels:\n", p.Name, p.Namespace, p.IP)
	for key, value := range p.Labels {
		fmt.Fprintf(&entry, "    %s: %s\n", key, value)
	}
	i.Apply(tb, entry.String())

	dir := tb.TempDir()
	path := filepath.Join(dir, "envoy.yaml")
	f, err := os.Create(path)
	if err != nil {
		tb.Fatalf("write Envoy's configuration: %v", err)
	}
	t, err := template.New("envoy").Parse(envoyTemplate)
	if err != nil {
		tb.Fatalf("write Envoy's configuration: %v", err)
	}
	if err := t.Execute(f, p); err != nil {
		tb.Fatalf("write Envoy's configuration: %v", err)
	}
	if err := f.Close(); err != nil {
		tb.Fatalf("write Envoy's configuration: %v", err)
	}
	cmd := exec.Command(harness.EnvoyBinary(tb), "--config-path", path, "--disable-hot-restart", "--concurrency", "1",
		"--log-level", "warning")
	harness.StartProgram(tb, "envoy "+p.Name, cmd, admin)
	harness.Eventually(tb, startLimit, "Envoy is ready", func() bool { return answers(tb, "http://"+admin+"/ready") })
	return &Proxy{AdminAddress: admin, tb: tb}
}

// nextAddress is an address of loopback by which istiod knows a proxy, of a test by its process and a free port: that
// no other has it.
func nextAddress(tb harness.TB) string {
	tb.Helper()
	_, port := split(tb, freeAddress(tb))
	number, err := strconv.Atoi(port)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	return fmt.Sprintf("127.9.%d.%d", number>>8, number&0xff)
}

// Admin is what Envoy's admin interface says.
func (p *Proxy) Admin(path string) string {
	p.tb.Helper()
	return string(harness.Do(p.tb, harness.Get("http://"+p.AdminAddress+path)).Body)
}

func split(tb harness.TB, address string) (host, port string) {
	tb.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	return host, port
}

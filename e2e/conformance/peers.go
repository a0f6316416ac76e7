package conformance

import (
	"bytes"
	"embed"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"text/template"

	"github.com/weirproxy/weir/e2e/harness"
)

//go:embed peers/*.conf peers/*.vcl peers/*.config peers/*.yaml
var peerFiles embed.FS

// Peers returns the other caches that the suite can be run through: those that Debian ships.
func Peers() []Subject {
	return []Subject{
		{"nginx", "nginx", startNginx},
		{"varnish", "Varnish", startVarnish},
		{"trafficserver", "Traffic Server", startTrafficServer},
	}
}

// peerConfig is what the files in peers/ are filled in with.
type peerConfig struct {
	Dir                            string // a folder of its own
	Address, Host, Port            string // where it listens
	Origin, OriginHost, OriginPort string
	User                           string // the user that runs this
}

func newPeerConfig(tb harness.TB, origin string) peerConfig {
	tb.Helper()
	c := peerConfig{Dir: tb.TempDir(), Address: freeAddress(tb), Origin: origin}
	var err error
	if c.Host, c.Port, err = net.SplitHostPort(c.Address); err != nil {
		tb.Fatalf("configure a peer: %v", err)
	}
	if c.OriginHost, c.OriginPort, err = net.SplitHostPort(origin); err != nil {
		tb.Fatalf("configure a peer: %v", err)
	}
	me, err := user.Current()
	if err != nil {
		tb.Fatalf("configure a peer: %v", err)
	}
	c.User = me.Username
	return c
}

// write fills in the file of peers/ and writes it into the peer's folder. It returns its path.
func (c peerConfig) write(tb harness.TB, file, as string) string {
	tb.Helper()
	t, err := template.ParseFS(peerFiles, "peers/"+file)
	if err != nil {
		tb.Fatalf("configure a peer: %v", err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, c); err != nil {
		tb.Fatalf("configure a peer: %v", err)
	}
	return c.writeText(tb, as, out.String())
}

func (c peerConfig) writeText(tb harness.TB, as, text string) string {
	tb.Helper()
	path := filepath.Join(c.Dir, as)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		tb.Fatalf("configure a peer: %v", err)
	}
	return path
}

func startNginx(tb harness.TB, origin string) endpoint {
	tb.Helper()
	binary, version := debianProgram(tb, "nginx", "nginx")
	c := newPeerConfig(tb, origin)
	cmd := exec.Command(binary, "-e", filepath.Join(c.Dir, "error.log"), "-c", c.write(tb, "nginx.conf", "nginx.conf"))
	harness.StartProgram(tb, "nginx", cmd, c.Address)
	return endpoint{url: "http://" + c.Address, version: version}
}

func startVarnish(tb harness.TB, origin string) endpoint {
	tb.Helper()
	binary, version := debianProgram(tb, "varnish", "varnishd")
	c := newPeerConfig(tb, origin)
	cmd := exec.Command(binary, "-F", "-j", "none", "-n", filepath.Join(c.Dir, "work"), "-a", c.Address,
		"-f", c.write(tb, "varnish.vcl", "default.vcl"), "-s", "malloc,64M",
		"-p", "default_ttl=0", "-p", "default_grace=0", "-p", "default_keep=3600")
	harness.StartProgram(tb, "Varnish", cmd, c.Address)
	return endpoint{url: "http://" + c.Address, version: version}
}

func startTrafficServer(tb harness.TB, origin string) endpoint {
	tb.Helper()
	binary, version := debianProgram(tb, "trafficserver", "traffic_server")
	c := newPeerConfig(tb, origin)
	c.write(tb, "trafficserver-records.config", "records.config")
	c.writeText(tb, "remap.config", "map / http://"+origin+"/\n")
	c.writeText(tb, "storage.config", c.Dir+" 64M\n")
	c.writeText(tb, "ip_allow.yaml", "ip_allow:\n- {apply: in, ip_addrs: 127.0.0.1, action: allow, methods: ALL}\n")
	cmd := exec.Command(binary, "--run-root="+c.write(tb, "trafficserver-runroot.yaml", "runroot.yaml"))
	harness.StartProgram(tb, "Traffic Server", cmd, c.Address)
	return endpoint{url: "http://" + c.Address, version: version}
}

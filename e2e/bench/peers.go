package bench

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

//go:embed peers
var peerFiles embed.FS

// peerConfig is what the files in peers/ are filled in with.
type peerConfig struct {
	Dir                            string // a folder of its own
	Address                        string // where it listens
	Origin, OriginHost, OriginPort string
	User                           string // the user that runs this
}

func newPeerConfig(tb harness.TB, origin string) peerConfig {
	tb.Helper()
	c := peerConfig{Dir: tb.TempDir(), Address: freeAddress(tb), Origin: origin}
	var err error
	if c.OriginHost, c.OriginPort, err = net.SplitHostPort(origin); err != nil {
		tb.Fatalf("configure a cache: %v", err)
	}
	me, err := user.Current()
	if err != nil {
		tb.Fatalf("configure a cache: %v", err)
	}
	c.User = me.Username
	return c
}

// write fills in a file of peers/ and returns its path.
func (c peerConfig) write(tb harness.TB, file string) string {
	tb.Helper()
	t, err := template.ParseFS(peerFiles, "peers/"+file)
	if err != nil {
		tb.Fatalf("configure a cache: %v", err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, c); err != nil {
		tb.Fatalf("configure a cache: %v", err)
	}
	path := filepath.Join(c.Dir, file)
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		tb.Fatalf("configure a cache: %v", err)
	}
	return path
}

// startNginx starts nginx with proxy_cache in front of an origin.
func startNginx(tb harness.TB, origin string) Server {
	tb.Helper()
	c := newPeerConfig(tb, origin)
	cmd := exec.Command(program(tb, "nginx"), "-e", filepath.Join(c.Dir, "error.log"), "-c", c.write(tb, "nginx.conf"))
	pid := harness.StartProgram(tb, "nginx", cmd, c.Address)
	return Server{Addresses: []string{c.Address}, PIDs: family(pid)}
}

// startVarnish starts Varnish in front of an origin.
func startVarnish(tb harness.TB, origin string) Server {
	tb.Helper()
	c := newPeerConfig(tb, origin)
	cmd := exec.Command(program(tb, "varnishd"), "-F", "-j", "none", "-n", filepath.Join(c.Dir, "work"),
		"-a", c.Address, "-f", c.write(tb, "varnish.vcl"), "-s", "malloc,512M", "-p", "listen_depth=8192")
	pid := harness.StartProgram(tb, "Varnish", cmd, c.Address)
	return Server{Addresses: []string{c.Address}, PIDs: family(pid)}
}

// program finds a program in PATH and where Debian puts those for administrators.
func program(tb harness.TB, name string) string {
	tb.Helper()
	for _, candidate := range []string{name, filepath.Join("/usr/sbin", name)} {
		if path, err := exec.LookPath(candidate); err == nil {
			return path
		}
	}
	tb.Fatalf("%s is missing: run .ci/tools bench", name)
	return ""
}

func (s Server) http1Cluster(name string) Cluster {
	return Cluster{Name: name, Addresses: s.Addresses[:1]}
}

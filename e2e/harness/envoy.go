package harness

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// startLimit is how long a process may take to be ready on a busy machine.
const startLimit = 60 * time.Second

// Envoy is a running Envoy with an edge listener, where clients come in and weir is asked, and a refill listener,
// which has the same routes and no cache.
type Envoy struct {
	tb      TB
	process *process
	admin   string // host:port
	client  *http.Client
	config  envoyConfig
	dir     string

	edge, refill string
}

// StartEnvoy starts Envoy and waits until it serves. It knows no weir yet: SetWeir tells it.
func StartEnvoy(tb TB, o EnvoyOptions) *Envoy {
	tb.Helper()
	binary := EnvoyBinary(tb)
	raiseFileLimit(tb)
	dir := tb.TempDir()
	e := &Envoy{tb: tb, dir: dir, client: newClient(tb)}
	e.config = envoyConfig{
		EnvoyOptions: o.withDefaults(),
		Listeners: []listenerConfig{
			{Name: "edge", Port: o.EdgePort},
			{Name: "refill", Port: o.RefillPort, Refill: true},
		},
		AccessLogPath: filepath.Join(dir, "access.log"),
		EndpointsPath: filepath.Join(dir, "endpoints.yaml"),
	}
	configPath := e.writeConfig()
	e.writeEndpoints(nil)

	adminPath := filepath.Join(dir, "admin")
	e.process = startProcess(tb, "envoy", exec.Command(binary,
		"--config-path", configPath,
		"--concurrency", strconv.Itoa(e.config.Concurrency),
		"--disable-hot-restart",
		"--admin-address-path", adminPath,
		"--log-level", "warning",
		"--file-flush-interval-msec", "50",
	), nil)
	Eventually(tb, startLimit, "Envoy is ready", func() bool { return e.isReady(adminPath) })
	e.edge, e.refill = e.listener("edge"), e.listener("refill")
	return e
}

// writeConfig writes the bootstrap configuration and returns its path.
func (e *Envoy) writeConfig() string {
	e.tb.Helper()
	bootstrap := e.config.Bootstrap
	if bootstrap == nil {
		var err error
		if bootstrap, err = e.config.render(); err != nil {
			e.tb.Fatalf("%v", err)
		}
	}
	path := filepath.Join(e.dir, "envoy.yaml")
	if err := os.WriteFile(path, bootstrap, 0o644); err != nil {
		e.tb.Fatalf("write Envoy's configuration: %v", err)
	}
	return path
}

// isReady learns the admin address, which Envoy writes to a file, and asks there.
func (e *Envoy) isReady(adminPath string) bool {
	if !e.process.running() {
		e.tb.Fatalf("Envoy ended before it was ready")
	}
	address, err := os.ReadFile(adminPath)
	if err != nil || len(address) == 0 {
		return false
	}
	e.admin = strings.TrimSpace(string(address))
	resp, err := e.client.Get("http://" + e.admin + "/ready")
	if err != nil {
		return false
	}
	defer func() { _ = resp.Body.Close() }()
	return resp.StatusCode == http.StatusOK
}

// listener returns the address that the named listener took.
func (e *Envoy) listener(name string) string {
	e.tb.Helper()
	var listeners struct {
		Statuses []struct {
			Name    string `json:"name"`
			Address struct {
				Socket struct {
					Address string `json:"address"`
					Port    int    `json:"port_value"`
				} `json:"socket_address"`
			} `json:"local_address"`
		} `json:"listener_statuses"`
	}
	if err := json.Unmarshal([]byte(e.Admin("/listeners?format=json")), &listeners); err != nil {
		e.tb.Fatalf("read Envoy's listeners: %v", err)
	}
	for _, l := range listeners.Statuses {
		if l.Name == name {
			return net.JoinHostPort(l.Address.Socket.Address, strconv.Itoa(l.Address.Socket.Port))
		}
	}
	e.tb.Fatalf("Envoy has no listener %q", name)
	return ""
}

// Address is the edge's host:port.
func (e *Envoy) Address() string { return e.edge }

// URL is the edge's URL of a path.
func (e *Envoy) URL(path string) string { return "http://" + e.edge + path }

// RefillAddress is the host:port of the listener without the filter: weir's --refill-address.
func (e *Envoy) RefillAddress() string { return e.refill }

// AdminAddress is the admin interface's host:port.
func (e *Envoy) AdminAddress() string { return e.admin }

// SetWeir makes addresses (host:port or unix:///path) the endpoints of weir, and waits until Envoy uses them.
// None is allowed: the cache is gone then.
func (e *Envoy) SetWeir(addresses ...string) {
	e.tb.Helper()
	e.writeEndpoints(addresses)
	Eventually(e.tb, startLimit, "Envoy uses the new endpoints of weir", func() bool {
		have := e.weirEndpoints()
		if len(have) != len(addresses) {
			return false
		}
		for _, address := range addresses {
			if !have[strings.TrimPrefix(address, "unix://")] {
				return false
			}
		}
		return true
	})
}

// writeEndpoints replaces the file by a rename, which is what Envoy watches for.
func (e *Envoy) writeEndpoints(addresses []string) {
	e.tb.Helper()
	content, err := endpointsFile(addresses)
	if err != nil {
		e.tb.Fatalf("%v", err)
	}
	next := e.config.EndpointsPath + ".next"
	if err := os.WriteFile(next, content, 0o644); err != nil {
		e.tb.Fatalf("write weir's endpoints: %v", err)
	}
	if err := os.Rename(next, e.config.EndpointsPath); err != nil {
		e.tb.Fatalf("write weir's endpoints: %v", err)
	}
}

// weirEndpoints lists the endpoints Envoy has now. Lines read weir::ADDRESS::STAT::VALUE.
func (e *Envoy) weirEndpoints() map[string]bool {
	e.tb.Helper()
	have := make(map[string]bool)
	for line := range strings.Lines(e.Admin("/clusters")) {
		rest, ok := strings.CutPrefix(line, "weir::")
		if !ok {
			continue
		}
		if address, stat, ok := strings.Cut(rest, "::"); ok && strings.HasPrefix(stat, "weight::") {
			have[address] = true
		}
	}
	return have
}

// Stop ends Envoy. The test's end does the same.
func (e *Envoy) Stop() { e.process.stop(stopGrace) }

// PID is the ID of Envoy's process.
func (e *Envoy) PID() int { return e.process.cmd.Process.Pid }

// ResidentBytes is the memory Envoy's process holds.
func (e *Envoy) ResidentBytes() uint64 {
	e.tb.Helper()
	return residentBytes(e.tb, e.process)
}

// raiseFileLimit lets this process and its children open as many files as the system allows: each held client costs
// Envoy two. A limit set through package syscall is passed on to children.
func raiseFileLimit(tb TB) {
	tb.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		tb.Fatalf("read the limit of open files: %v", err)
	}
	limit.Cur = limit.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		tb.Fatalf("raise the limit of open files: %v", err)
	}
}

func residentBytes(tb TB, p *process) uint64 {
	tb.Helper()
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.cmd.Process.Pid))
	if err != nil {
		tb.Fatalf("read the memory of %s: %v", p.name, err)
	}
	var size, resident uint64
	if _, err := fmt.Sscan(string(statm), &size, &resident); err != nil {
		tb.Fatalf("read the memory of %s: %v", p.name, err)
	}
	return resident * uint64(os.Getpagesize())
}

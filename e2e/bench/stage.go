package bench

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"

	"github.com/weirproxy/weir/e2e/harness"
)

//go:embed envoy.yaml.tmpl
var envoyTemplate string

// Lane is a listener of the Envoy that everything is measured through.
type Lane struct {
	Name string
	// Filter is the cluster of its ext_proc filter; "cache" is Envoy's own cache filter; "" is none.
	Filter string
	// Upstream is the cluster of its route; "": Envoy answers by itself, with the file's content.
	Upstream, BodyFile string
	// FailOpen lets requests go on without the filter. The lanes for hits are closed, so that no failure is cheap.
	FailOpen bool

	Port int
}

// Cluster is what a lane leads to.
type Cluster struct {
	Name      string
	Addresses []string // host:port, unix:///path
	HTTP2     bool
}

// Stage is a running Envoy, with one worker.
type Stage struct {
	tb    harness.TB
	envoy *harness.Envoy
	lanes map[string]int // ports
}

type stageConfig struct {
	Lanes    []Lane
	Clusters []Cluster
}

// startStage starts Envoy. Ports are chosen before the servers behind it start: weir wants to know where refills enter.
func startStage(tb harness.TB, lanes []Lane, clusters []Cluster) *Stage {
	tb.Helper()
	s := &Stage{tb: tb, lanes: map[string]int{}}
	for i := range lanes {
		if lanes[i].Port == 0 {
			lanes[i].Port = portOf(tb, freeAddress(tb))
		}
		s.lanes[lanes[i].Name] = lanes[i].Port
	}
	lanes = append(lanes, Lane{Name: "edge"}, Lane{Name: "refill"})
	t, err := template.New("envoy.yaml").Funcs(template.FuncMap{"q": quote, "endpoint": endpoint}).Parse(envoyTemplate)
	if err != nil {
		tb.Fatalf("parse Envoy's template: %v", err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, stageConfig{lanes, clusters}); err != nil {
		tb.Fatalf("render Envoy's configuration: %v", err)
	}
	s.envoy = harness.StartEnvoy(tb, harness.EnvoyOptions{Bootstrap: out.Bytes(), Concurrency: 1})
	return s
}

// url returns the address of a path on a lane.
func (s *Stage) url(lane, path string) string {
	return fmt.Sprintf("http://127.0.0.1:%d%s", s.lanes[lane], path)
}

func quote(s string) (string, error) {
	b, err := json.Marshal(s)
	return string(b), err
}

// endpoint writes host:port or unix:///path as an lb_endpoint.
func endpoint(address string) (string, error) {
	if path, ok := strings.CutPrefix(address, "unix://"); ok {
		return fmt.Sprintf("endpoint: {address: {pipe: {path: %q}}}", path), nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("endpoint %q: %w", address, err)
	}
	return fmt.Sprintf("endpoint: {address: {socket_address: {address: %q, port_value: %s}}}", host, port), nil
}

// freeAddress returns a port of 127.0.0.1 that was free a moment ago.
func freeAddress(tb harness.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("find a port: %v", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func portOf(tb harness.TB, address string) int {
	tb.Helper()
	_, text, _ := net.SplitHostPort(address)
	port, err := strconv.Atoi(text)
	if err != nil {
		tb.Fatalf("port of %q: %v", address, err)
	}
	return port
}

// bodyFile writes a body that Envoy can answer with.
func bodyFile(tb harness.TB, size int) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "body")
	if err := os.WriteFile(path, harness.GeneratedBody(size), 0o644); err != nil {
		tb.Fatalf("write a body: %v", err)
	}
	return path
}

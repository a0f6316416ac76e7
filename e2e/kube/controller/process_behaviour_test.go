package controller_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/weirproxy/weir/e2e/harness"
)

// freeAddress is an address on loopback where nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// TestProcess follows a process: it is ready when it has something to serve, has metrics, says what it was configured
// with, and ends on SIGTERM without an error.
func TestProcess(t *testing.T) {
	setUp(t)
	health, metrics := freeAddress(t), freeAddress(t)
	file := filepath.Join(t.TempDir(), "weir.yaml")
	config := fmt.Sprintf("health-probe-bind-address: %s\nmetrics-bind-address: %s\nfeed-bind-address: 127.0.0.1:0\n"+
		"log-format: json\nattach: envoy-gateway\nlog-level: debug\n", health, metrics)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p := newProcess(t, "--config="+file, "--leader-elect=false")
	answers := func(url string) bool {
		response, err := http.Get(url)
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	}
	harness.Eventually(t, limit, "it is ready", func() bool { return answers("http://" + health + "/readyz") })
	if !p.says(`"Translated"`) || !answers("http://"+health+"/healthz") || !answers("http://"+metrics+"/metrics") {
		t.Error("ready before it had translated, or without health or metrics")
	}
	if !p.says(`"attach":"[envoy-gateway]"`) || !p.says(`"dataPlaneService":"weir-system/weir-extproc"`) {
		t.Error("the effective configuration is not logged")
	}
	p.stop()
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit status %d", code)
	}
}

// TestBadStart holds that what cannot work is said at once.
func TestBadStart(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"--attach=nginx", "--feed-insecure"}, "nginx"},
		{[]string{"--feed-bind-address=:0"}, "--feed-insecure"},
		{[]string{"--feed-bind-address=" + taken.Addr().String(), "--metrics-bind-address=0", "--health-probe-bind-address=0"},
			"--feed-bind-address"},
		{[]string{"--feed-insecure", "--attach=istio", "--metrics-bind-address=0", "--health-probe-bind-address=0"}, "EnvoyFilter"},
	}
	setUp(t)
	for _, tt := range tests {
		p := newProcess(t, tt.args...)
		if code := p.wait(t); code != 1 || !p.says(tt.want) {
			t.Errorf("%q: exit status %d, without %q in:\n%s", tt.args, code, tt.want, p.output())
		}
	}
}

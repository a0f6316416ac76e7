package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/weirproxy/weir/e2e/harness"
)

// writeFile writes a file of the test and returns its path.
func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestCommandLine: what weir-extproc prints and how it ends when it is not to serve, or will not. Each refusal names the
// flag and what to do.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	policies := filepath.Dir(writeFile(t, "shop.yaml", shopPolicy))
	broken := writeFile(t, "shop.yaml", shopPolicy+"  ttl: {default: soon}\n")
	with := func(args ...string) []string { return append([]string{"--policy-dir=" + policies}, args...) }
	tests := []struct {
		name           string
		args           []string
		exit           int
		stdout, stderr []string // parts
	}{
		{"help", []string{"--help"}, 0, []string{"Usage:", "--policy-dir", "--grpc-bind-address", "(default \"127.0.0.1:9002\")"}, nil},
		{"version", []string{"--version"}, 0, []string{"weir-extproc ", "go1."}, nil},
		{"validate", with("--validate"), 0, []string{"valid"}, nil},
		{"no policies", nil, 1, nil, []string{"--policy-dir: must be set"}},
		{"invalid policy", []string{"--policy-dir=" + filepath.Dir(broken), "--validate"}, 1, nil,
			[]string{broken + ":7: spec.ttl.default"}},
		{"unknown flag", with("--cache-size=3"), 1, nil, []string{"unknown flag: --cache-size"}},
		{"bad value", with("--memory-limit=plenty"), 1, nil, []string{"--memory-limit", "plenty"}},
		{"policies of two kinds", with("--controller-address=c:1"), 1, nil, []string{"--controller-address", "--controller-ca-file"}},
		{"ext_proc for all", with("--grpc-bind-address=0.0.0.0:0"), 1, nil, []string{"--grpc-bind-address", "--grpc-client-ca-file", "--grpc-insecure"}},
		{"ext_proc by name", with("--grpc-bind-address=:0"), 1, nil, []string{"--grpc-bind-address"}},
		{"admin for all", with("--admin-bind-address=0.0.0.0:0"), 1, nil, []string{"--admin-bind-address", "--admin-token-file"}},
		{"admin with a token alone", with("--admin-bind-address=0.0.0.0:0", "--admin-token-file="+broken), 1, nil,
			[]string{"--admin-tls-cert-file"}},
		{"config with an unknown key", with("--config=" + writeFile(t, "weir.yaml", "memory-limit: 8Mi\nmemory-limits: 9Mi\n")), 1,
			nil, []string{"weir.yaml:2", "memory-limits"}},
		{"several faults at once", []string{"--grpc-bind-address=nowhere", "--drain-timeout=-1s"}, 1, nil,
			[]string{"--policy-dir", "--grpc-bind-address", "--drain-timeout"}},
	}
	for _, tt := range tests {
		stdout, stderr, exit := runCommand(t, "weir-extproc", tt.args...)
		if exit != tt.exit {
			t.Errorf("%s: exit status %d, want %d\n%s", tt.name, exit, tt.exit, stderr)
		}
		for _, part := range tt.stdout {
			if !strings.Contains(stdout, part) {
				t.Errorf("%s: printed\n%s\nwant %q", tt.name, stdout, part)
			}
		}
		for _, part := range tt.stderr {
			if !strings.Contains(stderr, part) {
				t.Errorf("%s: said\n%s\nwant %q", tt.name, stderr, part)
			}
		}
	}
}

// TestConfigFile: the file sets what flags set, under their names; a flag beats it. What is in force is logged.
func TestConfigFile(t *testing.T) {
	t.Parallel()
	config := writeFile(t, "weir.yaml", "memory-limit: 16Mi\nenvoy-message-timeout: 3s\nlog-level: debug\n")
	w := harness.StartWeir(t, harness.WeirOptions{
		Policies: map[string]string{"shop.yaml": shopPolicy}, Args: []string{"--config=" + config, "--memory-limit=8Mi"},
	})
	var status struct {
		Limits struct {
			MemoryBytes         int
			EnvoyMessageTimeout string
		}
	}
	w.AdminGet("/v1/status", &status)
	if status.Limits.MemoryBytes != 8*mib || status.Limits.EnvoyMessageTimeout != "3s" {
		t.Errorf("in force are %+v, want 8 MiB from the flag and 3s from the file", status.Limits)
	}
	for _, part := range []string{`"memoryLimit":"8Mi"`, `"envoyMessageTimeout":"3s"`, `"logLevel":"debug"`} {
		if !strings.Contains(w.Output(), part) {
			t.Errorf("the log does not say %s", part)
		}
	}
}

// askPort asks one of weir's ports and returns status and body.
func askPort(t *testing.T, address, path string, fields ...string) (int, string) {
	t.Helper()
	resp := harness.Do(t, harness.Get("http://"+address+path, fields...))
	return resp.Status, string(resp.Body)
}

// TestHealth: weir says that it is ready, by HTTP and by gRPC; when it drains that it is not, while it goes on serving.
func TestHealth(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{Weir: harness.WeirOptions{Args: []string{"--drain-delay=3s"}}})
	e.serve("/page", harness.Always(harness.Reply{Header: harness.Fields("Cache-Control", "max-age=60")}))
	conn, err := grpc.NewClient(e.weir.GRPCAddress, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	states := func() []string {
		live, _ := askPort(t, e.weir.HealthAddress, "/healthz")
		ready, lines := askPort(t, e.weir.HealthAddress, "/readyz?verbose")
		out := []string{fmt.Sprint(live), fmt.Sprint(ready, strings.Contains(lines, "[+] policies"))}
		for _, service := range []string{"", "envoy.service.ext_proc.v3.ExternalProcessor"} {
			r, err := grpc_health_v1.NewHealthClient(conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: service})
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, r.GetStatus().String())
		}
		return out
	}
	if diff := cmp.Diff([]string{"200", "200 true", "SERVING", "SERVING"}, states()); diff != "" {
		t.Errorf("ready (-want +got):\n%s", diff)
	}
	e.weir.Signal(syscall.SIGTERM)
	e.eventually("weir says that it is not ready", func() bool { return !e.weir.IsReady() })
	if diff := cmp.Diff([]string{"200", "503 true", "NOT_SERVING", "NOT_SERVING"}, states()); diff != "" {
		t.Errorf("draining (-want +got):\n%s", diff)
	}
	for range 2 {
		e.ask("/page") // what comes until Envoy has noticed is served as before
	}
	e.wantCount("/page", 1)
	e.weir.WaitDrained()
}

// TestAdminPort: the admin API answers to this machine only, to no web page, and to nobody without the token where there
// is one. Profiles are there and nowhere else.
func TestAdminPort(t *testing.T) {
	t.Parallel()
	token := writeFile(t, "token", "secret\n")
	start := func(args ...string) *harness.Weir {
		return harness.StartWeir(t, harness.WeirOptions{Policies: map[string]string{"shop.yaml": shopPolicy}, Args: args})
	}
	open, guarded := start(), start("--admin-token-file="+token)
	const authorization = "Authorization"
	for _, tt := range []struct {
		weir   *harness.Weir
		path   string
		fields []string
		want   int
	}{
		{open, "/v1/status", nil, 200},
		{open, "/v1/status", []string{"Host", "localhost"}, 200},
		{open, "/v1/status", []string{"Host", "evil.test"}, 403},
		{open, "/v1/status", []string{"Origin", "http://evil.test"}, 403},
		{open, "/v1/status", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{open, "/debug/pprof/", nil, 200},
		{open, "/debug/pprof/", []string{"Host", "evil.test"}, 403},
		{open, "/v1/nothing", nil, 404},
		{open, "/v1/explain?url=http://a/&urls=1", nil, 400},
		{guarded, "/v1/status", nil, 401},
		{guarded, "/v1/status", []string{authorization, "Bearer wrong"}, 401},
		{guarded, "/v1/status", []string{authorization, "Bearer secret"}, 200},
		{guarded, "/debug/pprof/", nil, 401},
	} {
		if got, body := askPort(t, tt.weir.AdminAddress, tt.path, tt.fields...); got != tt.want {
			t.Errorf("%s with %q: %d %.100s, want %d", tt.path, tt.fields, got, body, tt.want)
		}
	}
	for name, address := range map[string]string{"metrics": open.MetricsAddress, "health": open.HealthAddress} {
		if got, _ := askPort(t, address, "/debug/pprof/"); got != 404 {
			t.Errorf("/debug/pprof/ on the %s port: %d", name, got)
		}
		if got, _ := askPort(t, address, "/v1/status"); got != 404 {
			t.Errorf("/v1/status on the %s port: %d", name, got)
		}
	}
	if got, body := askPort(t, open.MetricsAddress, "/metrics"); got != 200 || !strings.Contains(body, "\nweir_build_info{") ||
		!strings.Contains(body, "\ngo_goroutines ") || strings.Contains(body, "shop") {
		t.Errorf("/metrics: %d, %d bytes", got, len(body))
	}
	for _, tt := range []struct {
		args []string
		exit int
	}{
		{[]string{"status", "--admin-address=" + guarded.AdminAddress}, 1},
		{[]string{"status", "--admin-address=" + guarded.AdminAddress, "--token-file=" + token}, 0},
	} {
		if _, errs, exit := runCommand(t, "weirctl", tt.args...); exit != tt.exit {
			t.Errorf("weirctl %q: exit status %d, want %d: %s", tt.args, exit, tt.exit, errs)
		}
	}
}

// TestSecondSignalEndsAtOnce: the first asks weir to drain, for which it would take its time; the second does not wait.
// Who is held then goes to the origin without weir.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	const followers = 5
	e := startEdge(t, edgeOptions{
		Spec: "coalescing: {maxWait: 55s}", Weir: harness.WeirOptions{Args: []string{"--drain-timeout=10m"}},
	})
	gate := make(chan struct{})
	e.serve("/page", harness.Always(harness.Reply{
		Gate: gate, Body: []byte("page"), Header: harness.Fields("Cache-Control", "max-age=60"),
	}))
	answers := e.burst(1+followers, e.get("/page"))
	e.waiting(followers)
	e.weir.Signal(syscall.SIGTERM)
	e.eventually("weir drains", func() bool { return !e.weir.IsReady() })
	if !e.weir.Running() {
		t.Fatal("weir did not wait for those it holds")
	}
	e.weir.Signal(syscall.SIGTERM)
	e.eventually("weir is gone", func() bool { return !e.weir.Running() })
	e.answering("/page", 1+followers)
	close(gate)
	e.wantBody(answers(), []byte("page"))
}

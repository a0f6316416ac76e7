package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// readyWatch is a log that tells when the process is ready.
type readyWatch struct {
	logBuffer
	ready chan map[string]any
}

func (w *readyWatch) Write(p []byte) (int, error) {
	var r map[string]any
	if json.Unmarshal(p, &r) == nil && r["msg"] == "Ready" {
		w.ready <- r
	}
	return w.logBuffer.Write(p)
}

// running is a process started by its command line, on real ports.
type running struct {
	addresses map[string]any
	log       *readyWatch
	stop      func() error // SIGTERM; returns what the process returned
}

func startArgs(t *testing.T, svc *fakeService, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{log: &readyWatch{ready: make(chan map[string]any, 1)}}
	args = append([]string{"--policy-dir=" + t.TempDir(), "--grpc-bind-address=127.0.0.1:0",
		"--admin-bind-address=127.0.0.1:0", "--metrics-bind-address=127.0.0.1:0", "--log-format=json",
		"--health-probe-bind-address=127.0.0.1:0", "--drain-delay=0s"}, args...)
	ended := make(chan error, 1)
	go func() {
		ended <- start(ctx, "v1.2.3", args, io.Discard, r.log,
			func(context.Context, environment) (*parts, error) { return svc.parts(), nil })
	}()
	r.stop = func() error {
		cancel()
		return <-ended
	}
	select {
	case r.addresses = <-r.log.ready:
	case err := <-ended:
		t.Fatalf("ended before it was ready: %v", err)
	}
	return r
}

func (r *running) address(t *testing.T, name string) string {
	t.Helper()
	address, _ := r.addresses[name].(string)
	if address == "" {
		t.Fatalf("Ready has no %s: %v", name, r.addresses)
	}
	return address
}

// TestServesOnEveryPort starts the process by its flags and asks at the
// addresses that it logs.
func TestServesOnEveryPort(t *testing.T) {
	t.Parallel()
	svc := newFakeService()
	r := startArgs(t, svc, "--memory-limit=64Mi")
	for name, path := range map[string]string{
		"adminAddress": "/v1/status", "metricsAddress": "/metrics", "healthAddress": "/readyz",
	} {
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Get("http://" + r.address(t, name) + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s%s: status %d", name, path, resp.StatusCode)
		}
		// pprof is on the admin port only.
		resp, err = client.Get("http://" + r.address(t, name) + "/debug/pprof/cmdline")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if got, want := resp.StatusCode == http.StatusOK, name == "adminAddress"; got != want {
			t.Errorf("%s serves pprof: %v, want %v", name, got, want)
		}
	}
	conn := dialGRPC(t, r.address(t, "grpcAddress"), insecure.NewCredentials())
	held := hold(t, conn, &extprocv3.ProcessingRequest{})
	close(svc.answers)
	if err := <-held; !errors.Is(err, io.EOF) {
		t.Errorf("the stream ended with %v", err)
	}
	_ = conn.Close()
	if err := r.stop(); err != nil {
		t.Errorf("ended with %v", err)
	}
	if got := r.log.record("Configuration"); got["memoryLimit"] != "64Mi" || got["drainDelay"] != "0s" {
		t.Errorf("logged configuration %v", got)
	}
	if got := r.log.record("Memory"); got["memoryLimitBytes"] != float64(64<<20) {
		t.Errorf("logged memory %v", got)
	}
}

func TestServesOnUnixSocket(t *testing.T) {
	t.Parallel()
	svc := newFakeService()
	close(svc.answers)
	address := "unix://" + filepath.Join(t.TempDir(), "weir.sock")
	r := startArgs(t, svc, "--grpc-bind-address="+address, "--admin-bind-address=", "--metrics-bind-address=",
		"--health-probe-bind-address=")
	if got := r.address(t, "grpcAddress"); got != address {
		t.Errorf("Ready says %s, want %s", got, address)
	}
	conn := dialGRPC(t, address, insecure.NewCredentials())
	if err := <-hold(t, conn, &extprocv3.ProcessingRequest{}); !errors.Is(err, io.EOF) {
		t.Errorf("the stream ended with %v", err)
	}
	_ = conn.Close()
	if err := r.stop(); err != nil {
		t.Errorf("ended with %v", err)
	}
}

// TestMutualTLS: only who shows a certificate of the client CA plays Envoy.
func TestMutualTLS(t *testing.T) {
	t.Parallel()
	serverCA, clientCA := newAuthority(t, "servers"), newAuthority(t, "clients")
	envoy, stranger := clientCA.issue(t, "envoy"), serverCA.issue(t, "stranger")
	dir := newTLSDir(t, serverCA.issue(t, "weir"), clientCA.pem)
	svc := newFakeService()
	close(svc.answers)
	r := startArgs(t, svc, "--grpc-tls-cert-file="+dir.files().CertFile, "--grpc-tls-key-file="+dir.files().KeyFile,
		"--grpc-client-ca-file="+dir.files().ClientCAFile)
	for name, tt := range map[string]struct {
		creds credentials.TransportCredentials
		pass  bool
	}{
		"envoy":          {credentials.NewTLS(serverCA.client(t, &envoy)), true},
		"a stranger":     {credentials.NewTLS(serverCA.client(t, &stranger)), false},
		"no certificate": {credentials.NewTLS(serverCA.client(t, nil)), false},
		"plain text":     {insecure.NewCredentials(), false},
	} {
		conn := dialGRPC(t, r.address(t, "grpcAddress"), tt.creds)
		err := <-hold(t, conn, &extprocv3.ProcessingRequest{})
		if tt.pass && !errors.Is(err, io.EOF) || !tt.pass && status.Code(err) != codes.Unavailable {
			t.Errorf("%s: %v, want pass %v", name, err, tt.pass)
		}
		_ = conn.Close()
	}
	if err := r.stop(); err != nil {
		t.Errorf("ended with %v", err)
	}
}

// TestAdminWithTokenAndTLS starts the admin port as it must be off loopback.
func TestAdminWithTokenAndTLS(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "ca")
	dir := newTLSDir(t, ca.issue(t, "weir"), nil)
	dir.write(t, "token", []byte("s3cret\n"))
	r := startArgs(t, newFakeService(), "--admin-bind-address=0.0.0.0:0", "--admin-token-file="+dir.path("token"),
		"--admin-tls-cert-file="+dir.files().CertFile, "--admin-tls-key-file="+dir.files().KeyFile)
	_, port, err := net.SplitHostPort(r.address(t, "adminAddress"))
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: ca.client(t, nil), ForceAttemptHTTP2: true}
	client := http.Client{Transport: transport}
	for token, want := range map[string]int{"s3cret": 200, "guess": 401} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://127.0.0.1:"+port+"/v1/status", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("token %q: status %d, want %d", token, resp.StatusCode, want)
		}
	}
	transport.CloseIdleConnections()
	if err := r.stop(); err != nil {
		t.Errorf("ended with %v", err)
	}
}

// TestStartErrors: what cannot work is said, all of it, and nothing is started.
func TestStartErrors(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	dir := t.TempDir()
	ports := []string{"--policy-dir=" + dir, "--grpc-bind-address=127.0.0.1:0", "--admin-bind-address=127.0.0.1:0",
		"--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=127.0.0.1:0"}
	errAssemble := errors.New("policies are not valid")
	tests := []struct {
		name     string
		args     []string
		assemble error
		want     []string
	}{
		{name: "configuration", args: []string{"--policy-dir=", "--redis-url=x"},
			want: []string{"--policy-dir", "--redis-url"}},
		{name: "memory", args: []string{"--memory-limit=1Ei"}, want: []string{"--memory-limit 1Ei"}},
		{name: "port taken", args: []string{"--metrics-bind-address=" + taken.Addr().String()},
			want: []string{"--metrics-bind-address", "address already in use"}},
		{name: "two ports taken", args: []string{"--metrics-bind-address=" + taken.Addr().String(),
			"--admin-bind-address=" + taken.Addr().String()},
			want: []string{"--metrics-bind-address", "--admin-bind-address"}},
		{name: "certificate", args: []string{"--grpc-tls-cert-file=x", "--grpc-tls-key-file=y", "--admin-token-file=z"},
			want: []string{"TLS certificate: open x", "--admin-token-file: open z"}},
		{name: "policies", assemble: errAssemble, want: []string{"policies are not valid"}},
	}
	for _, tt := range tests {
		for _, validate := range []bool{false, true} {
			if validate && strings.Contains(tt.name, "taken") {
				continue // to validate opens no port
			}
			var stdout bytes.Buffer
			args := append(append([]string{}, ports...), tt.args...)
			if validate {
				args = append(args, "--validate")
			}
			err := start(t.Context(), "v1", args, &stdout, io.Discard,
				func(context.Context, environment) (*parts, error) { return newFakeService().parts(), tt.assemble })
			wantError(t, err, tt.want)
			if stdout.Len() > 0 {
				t.Errorf("%s: stdout has %q", tt.name, stdout.String())
			}
		}
	}
}

func TestValidateOnly(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	var stdout bytes.Buffer
	closed := false
	err = start(t.Context(), "v1", []string{"--validate", "--policy-dir=" + t.TempDir(),
		"--grpc-bind-address=" + taken.Addr().String()}, &stdout, io.Discard,
		func(context.Context, environment) (*parts, error) {
			p := newFakeService().parts()
			p.close = func() error { closed = true; return nil }
			return p, nil
		})
	if err != nil || !closed || !strings.Contains(stdout.String(), "valid") {
		t.Errorf("--validate: %v, closed %v, stdout %q", err, closed, stdout.String())
	}
}

// TestStoppedAtOnce: who ends the process before it serves sees no error.
func TestStoppedAtOnce(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 50 { // who is first, the server or its end, is chance
		err := start(ctx, "v1.2.3", []string{"--policy-dir=" + t.TempDir(), "--grpc-bind-address=127.0.0.1:0",
			"--admin-bind-address=", "--metrics-bind-address=", "--health-probe-bind-address=", "--drain-delay=0s"},
			io.Discard, io.Discard, func(context.Context, environment) (*parts, error) { return newFakeService().parts(), nil })
		if err != nil {
			t.Fatalf("ended with %v", err)
		}
	}
}

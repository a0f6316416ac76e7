package e2e_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirproxy/weir/e2e/harness"
)

const envoySamples = "../config/samples/envoy"

func TestEnvoySampleIsValid(t *testing.T) {
	t.Parallel()
	validate := exec.CommandContext(t.Context(), harness.EnvoyBinary(t),
		"--mode", "validate", "--config-path", filepath.Join(envoySamples, "envoy.yaml"))
	if out, err := validate.CombinedOutput(); err != nil {
		t.Errorf("envoy --mode validate: %v\n%s", err, out)
	}
}

// TestEnvoySampleServes runs the sample as it is, but for the addresses, with the sample policies.
func TestEnvoySampleServes(t *testing.T) {
	t.Parallel()
	origin := harness.StartOrigin(t)
	origin.Handle("/", harness.Always(harness.Reply{
		Body: []byte("page"), Header: harness.Fields("Content-Type", "text/plain"),
	}))
	socket := filepath.Join(t.TempDir(), "weir.sock")
	envoy := harness.StartEnvoy(t, harness.EnvoyOptions{Bootstrap: sampleBootstrap(t, origin.Address(), socket)})
	harness.StartWeir(t, harness.WeirOptions{
		Policies: samplePolicies(t), RefillAddress: envoy.RefillAddress(), GRPCAddress: "unix://" + socket,
	})

	tests := []struct {
		path        string
		wantFetches int
	}{
		{"/account/me", 2},     // the filter is off
		{"/news/today", 1},     // policy by initial metadata
		{"/catalog?page=1", 1}, // policy by the route's name
	}
	for _, tt := range tests {
		before := origin.Count("/")
		for range 2 {
			resp := harness.Do(t, harness.Get(envoy.URL(tt.path)))
			if resp.Status != 200 || string(resp.Body) != "page" {
				t.Errorf("%s: %d %q", tt.path, resp.Status, resp.Body)
			}
		}
		if got := origin.Count("/") - before; got != tt.wantFetches {
			t.Errorf("%s: the origin saw %d requests, want %d", tt.path, got, tt.wantFetches)
		}
	}
}

// sampleBootstrap is the sample with ports from the system, this origin, and weir at a Unix socket.
func sampleBootstrap(t *testing.T, origin, weirSocket string) []byte {
	t.Helper()
	sample, err := os.ReadFile(filepath.Join(envoySamples, "envoy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	_, originPort, err := net.SplitHostPort(origin)
	if err != nil {
		t.Fatal(err)
	}
	text := string(sample)
	for _, change := range [][2]string{
		{"{address: 127.0.0.1, port_value: 9901}", "{address: 127.0.0.1, port_value: 0}"},
		{"{address: 0.0.0.0, port_value: 8080}", "{address: 127.0.0.1, port_value: 0}"},
		{"{address: 127.0.0.1, port_value: 8081}", "{address: 127.0.0.1, port_value: 0}"},
		{"{address: 127.0.0.1, port_value: 3000}", "{address: 127.0.0.1, port_value: " + originPort + "}"},
		{"{socket_address: {address: 127.0.0.1, port_value: 9002}}", "{pipe: {path: " + weirSocket + "}}"},
	} {
		if strings.Count(text, change[0]) != 1 {
			t.Fatalf("the sample does not have %q once", change[0])
		}
		text = strings.Replace(text, change[0], change[1], 1)
	}
	return []byte(text)
}

func samplePolicies(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(envoySamples, "policies", "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no sample policies: %v", err)
	}
	policies := make(map[string]string)
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		policies[filepath.Base(path)] = string(content)
	}
	return policies
}

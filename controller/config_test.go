package controller

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirproxy/weir/config/settings"
)

var update = flag.Bool("update", false, "rewrite testdata/help.txt and docs/reference/controller-flags.md")

// inPod is the environment that the chart gives.
func inPod(name string) string {
	return map[string]string{"POD_NAMESPACE": "weir-system", "POD_NAME": "weir-controller-1"}[name]
}

func outside(string) string { return "" }

// TestPrecedence: defaults, then the file, then flags.
func TestPrecedence(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		file string
		args []string
		want func(*Config)
	}{
		{name: "defaults", want: func(*Config) {}},
		{name: "a flag", args: []string{"--data-plane-port=9443"}, want: func(c *Config) { c.DataPlanePort = 9443 }},
		{name: "a file", file: "attach: envoy-gateway,istio\nleader-elect: false\nleader-election-retry-period: 1s\n",
			want: func(c *Config) {
				c.Attach, c.LeaderElect, c.RetryPeriod = []string{"envoy-gateway", "istio"}, false, time.Second
			}},
		{name: "a flag beats the file", file: "attach: istio\n", args: []string{"--attach=envoy-gateway"},
			want: func(c *Config) { c.Attach = []string{"envoy-gateway"} }},
		{name: "a flag twice", args: []string{"--attach=envoy-gateway", "--attach=istio"},
			want: func(c *Config) { c.Attach = []string{"envoy-gateway", "istio"} }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			args := tt.args
			if tt.file != "" {
				path := filepath.Join(t.TempDir(), "weir.yaml")
				if err := os.WriteFile(path, []byte(tt.file), 0o600); err != nil {
					t.Fatal(err)
				}
				args = append(args, "--config", path)
			}
			got, _, _, err := parse(args, inPod)
			if err != nil {
				t.Fatal(err)
			}
			want := defaultConfig(inPod)
			tt.want(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("configuration (-want +got):\n%s", diff)
			}
		})
	}
}

// TestValidate holds that each fault is an error that names the flag.
func TestValidate(t *testing.T) {
	t.Parallel()
	insecure := "--feed-insecure"
	tests := []struct {
		name   string
		args   []string
		getenv func(string) string
		want   []string // parts of the error; none: valid
	}{
		{name: "in a pod", args: []string{insecure}, getenv: inPod},
		{name: "mTLS", args: []string{"--feed-tls-cert-file=c", "--feed-tls-key-file=k", "--feed-client-ca-file=a"}, getenv: inPod},
		{name: "loopback", args: []string{"--feed-bind-address=127.0.0.1:0"}, getenv: inPod},
		{name: "nothing said", getenv: outside, want: []string{"--data-plane-service", "--leader-election-namespace", "--feed-bind-address"}},
		{name: "alone", args: []string{insecure, "--leader-elect=false", "--data-plane-service=a/b"}, getenv: outside},
		{name: "off loopback without TLS", getenv: inPod, want: []string{"--feed-tls-cert-file", "--feed-insecure"}},
		{name: "half of TLS", args: []string{"--feed-tls-cert-file=c", "--feed-tls-key-file=k"}, getenv: inPod, want: []string{"go together"}},
		{name: "TLS and none", args: []string{insecure, "--feed-tls-cert-file=c"}, getenv: inPod, want: []string{"contradicts"}},
		{name: "no address", args: []string{"--feed-bind-address=here"}, getenv: inPod, want: []string{"--feed-bind-address"}},
		{name: "no such attachment", args: []string{insecure, "--attach=nginx"}, getenv: inPod, want: []string{`"nginx"`, "envoy-gateway"}},
		{name: "none and one", args: []string{insecure, "--attach=none,istio"}, getenv: inPod, want: []string{"none stands alone"}},
		{name: "no service", args: []string{insecure, "--data-plane-service=weir"}, getenv: inPod, want: []string{"namespace/name"}},
		{name: "no port", args: []string{insecure, "--data-plane-port=0"}, getenv: inPod, want: []string{"--data-plane-port"}},
		{name: "a lease too short", args: []string{insecure, "--leader-election-lease-duration=1s"}, getenv: inPod, want: []string{"lease-duration"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, _, _, err := parse(tt.args, tt.getenv)
			if err != nil {
				t.Fatal(err)
			}
			err = c.Validate()
			if (err == nil) != (len(tt.want) == 0) {
				t.Fatalf("error %v, want %q", err, tt.want)
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not say %q", err, part)
				}
			}
		})
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	var stdout bytes.Buffer
	_, _, groups, err := parse([]string{"--help"}, outside)
	if err != nil {
		t.Fatal(err)
	}
	settings.PrintHelp(&stdout, introduction, groups)
	golden(t, filepath.Join("testdata", "help.txt"), stdout.Bytes())
}

func TestVersion(t *testing.T) {
	t.Parallel()
	var stdout bytes.Buffer
	if err := Main(t.Context(), "v1.2.3", []string{"--version"}, &stdout, &stdout); err != nil {
		t.Fatal(err)
	}
	if got := stdout.String(); !strings.HasPrefix(got, "weir-controller v1.2.3 (") || strings.Count(got, "\n") != 1 {
		t.Errorf("--version prints %q", got)
	}
}

// TestReference wants docs/reference/controller-flags.md to say what --help says.
func TestReference(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	b.WriteString("# Flags of weir-controller\n\nGenerated from `controller`; do not edit.\n\n" +
		"`--config FILE` reads the same settings from YAML, under the same names:\n\n" +
		"```yaml\nattach: envoy-gateway\ndata-plane-service: weir-system/weir-extproc\nlog-format: json\n```\n\n" +
		"Flags win over the file. A field that is not known is an error, with its line. " +
		"Durations are written as in Go (`250ms`, `1m30s`), several words of `attach` divided by commas.\n" +
		"The environment gives `POD_NAMESPACE` (defaults of `--data-plane-service` and `--leader-election-namespace`) and " +
		"`KUBECONFIG` (which API server; by default the pod's).\n")
	settings.Reference(&b, flagGroups(defaultConfig(outside), &command{}))
	golden(t, filepath.Join("..", "docs", "reference", "controller-flags.md"), b.Bytes())
}

// golden compares with the file, or writes it under -update.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is out of date; run go test ./controller -update (-file +code):\n%s", path, diff)
	}
}

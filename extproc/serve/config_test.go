package serve

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// configOf parses args, with content (unless empty) as the file of --config.
func configOf(t *testing.T, content string, args ...string) (*Config, error) {
	t.Helper()
	if content != "" {
		path := filepath.Join(t.TempDir(), "weir.yaml")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config", path)
	}
	cfg, _, _, err := parse(args)
	return cfg, err
}

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
		{name: "a flag", args: []string{"--drain-delay=250ms", "--grpc-insecure"},
			want: func(c *Config) { c.DrainDelay, c.GRPCInsecure = 250*time.Millisecond, true }},
		{name: "a file", file: "drain-delay: 1m30s\ngrpc-insecure: true\nmemory-limit: 64Mi\n",
			want: func(c *Config) {
				c.DrainDelay, c.GRPCInsecure = 90*time.Second, true
				c.MemoryLimit = MemoryLimit{Bytes: 64 << 20}
			}},
		{name: "a flag beats the file", file: "drain-delay: 1m\ndrain-timeout: 1m\n",
			args: []string{"--drain-delay=0s"},
			want: func(c *Config) { c.DrainDelay, c.DrainTimeout = 0, time.Minute }},
		{name: "a flag that says the default beats the file", file: "drain-delay: 1m\n",
			args: []string{"--drain-delay=5s"}, want: func(*Config) {}},
		{name: "quoted", file: `"grpc-bind-address": "unix:///run/weir.sock"`,
			want: func(c *Config) { c.GRPCBindAddress = "unix:///run/weir.sock" }},
		{name: "numbers", file: "memory-limit: 1048576\nadmin-bind-address: \"\"\n",
			want: func(c *Config) { c.MemoryLimit, c.AdminBindAddress = MemoryLimit{Bytes: 1 << 20}, "" }},
		{name: "an empty file", file: "# nothing yet\n", want: func(*Config) {}},
		{name: "TLS", args: []string{"--grpc-tls-cert-file=c", "--grpc-tls-key-file=k", "--grpc-client-ca-file=a"},
			want: func(c *Config) { c.GRPCTLS = TLSFiles{"c", "k", "a"} }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := configOf(t, tt.file, tt.args...)
			if err != nil {
				t.Fatal(err)
			}
			want := defaultConfig()
			tt.want(want)
			if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Config{})); diff != "" {
				t.Errorf("configuration (-want +got):\n%s", diff)
			}
		})
	}
}

// TestParseErrors: each fault, with its place, and more than one at a time.
func TestParseErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, file string
		args       []string
		want       []string
	}{
		{name: "unknown flag", args: []string{"--nonsense"}, want: []string{"--nonsense", "see --help"}},
		{name: "argument", args: []string{"serve"}, want: []string{`"serve"`}},
		{name: "no duration", args: []string{"--drain-delay=5"}, want: []string{"--drain-delay", "duration"}},
		{name: "no size", args: []string{"--memory-limit=much"}, want: []string{"--memory-limit", "64Mi", "25%"}},
		{name: "no file", args: []string{"--config=nowhere.yaml"}, want: []string{"--config", "nowhere.yaml"}},
		{name: "unknown field", file: "drain-delay: 5s\n\ndrain-delays: 5s\n",
			want: []string{"weir.yaml:3: drain-delays: is no field"}},
		{name: "two faults", file: "x: 1\ny: 2\n", want: []string{"weir.yaml:1: x:", "weir.yaml:2: y:"}},
		{name: "flag of the command line only", file: "validate: true\n", want: []string{"validate: is no field"}},
		{name: "twice", file: "drain-delay: 5s\ndrain-delay: 6s\n",
			want: []string{"weir.yaml:2: drain-delay: is set in line 1 already"}},
		{name: "a value", file: "\ndrain-delay: soon\n", want: []string{`weir.yaml:2: drain-delay: "soon"`}},
		{name: "a list", file: "policy-dir: [a, b]\n", want: []string{"weir.yaml:1: policy-dir: want a string"}},
		{name: "nothing", file: "policy-dir:\n", want: []string{"weir.yaml:1: policy-dir: want a string"}},
		{name: "no mapping", file: "- policy-dir\n", want: []string{"weir.yaml:1: want lines"}},
		{name: "no YAML", file: "a: b: c\n", want: []string{"--config", "not allowed"}},
		{name: "wrong even if the command line wins", file: "drain-delay: [a]\n", args: []string{"--drain-delay=1s"},
			want: []string{"weir.yaml:1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := configOf(t, tt.file, tt.args...)
			wantError(t, err, tt.want)
		})
	}
}

// wantError wants an error that contains all of want; none wants no error.
func wantError(t *testing.T, err error, want []string) {
	t.Helper()
	if len(want) == 0 {
		if err != nil {
			t.Errorf("error %v, want none", err)
		}
		return
	}
	if err == nil {
		t.Fatalf("no error, want one with %q", want)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	mtls := []string{"--grpc-tls-cert-file=c", "--grpc-tls-key-file=k", "--grpc-client-ca-file=a"}
	adminTLS := []string{"--admin-tls-cert-file=c", "--admin-tls-key-file=k"}
	tests := []struct {
		name string
		args []string
		want []string // parts of the error; none: valid
	}{
		{name: "least"},
		{name: "unix socket", args: []string{"--grpc-bind-address=unix:///run/weir.sock"}},
		{name: "IPv6 loopback", args: []string{"--grpc-bind-address=[::1]:9002"}},
		{name: "localhost", args: []string{"--grpc-bind-address=localhost:9002"}},
		{name: "all interfaces", args: []string{"--grpc-bind-address=:9002"},
			want: []string{"play Envoy", "--grpc-client-ca-file", "--grpc-insecure"}},
		{name: "an address", args: []string{"--grpc-bind-address=192.0.2.7:9002"}, want: []string{"play Envoy"}},
		{name: "a name", args: []string{"--grpc-bind-address=cache.shop.example:9002"}, want: []string{"play Envoy"}},
		{name: "TLS without client CA", args: append([]string{"--grpc-bind-address=:9002"}, mtls[:2]...),
			want: []string{"--grpc-client-ca-file"}},
		{name: "mTLS", args: append([]string{"--grpc-bind-address=:9002"}, mtls...)},
		{name: "insecure on purpose", args: []string{"--grpc-bind-address=:9002", "--grpc-insecure"}},
		{name: "no ext_proc port", args: []string{"--grpc-bind-address="}, want: []string{"must not be empty"}},
		{name: "no port", args: []string{"--grpc-bind-address=127.0.0.1"}, want: []string{"host:port"}},
		{name: "key missing", args: mtls[:1], want: []string{"--grpc-tls-key-file: must be set"}},
		{name: "certificate missing", args: mtls[1:2], want: []string{"--grpc-tls-cert-file: must be set"}},
		{name: "client CA alone", args: mtls[2:], want: []string{"--grpc-client-ca-file: wants"}},
		{name: "connection age", args: []string{"--grpc-max-connection-age=-1s"}, want: []string{"negative"}},

		{name: "admin off loopback", args: []string{"--admin-bind-address=:9004"},
			want: []string{"--admin-token-file", "--admin-tls-cert-file"}},
		{name: "admin with TLS only", args: append([]string{"--admin-bind-address=:9004"}, adminTLS...),
			want: []string{"--admin-token-file"}},
		{name: "admin with token only", args: []string{"--admin-bind-address=:9004", "--admin-token-file=t"},
			want: []string{"--admin-tls-cert-file"}},
		{name: "admin with both",
			args: append([]string{"--admin-bind-address=:9004", "--admin-token-file=t"}, adminTLS...)},
		{name: "no admin port", args: []string{"--admin-bind-address="}},
		{name: "no metrics, no health", args: []string{"--metrics-bind-address=", "--health-probe-bind-address="}},
		{name: "metrics port", args: []string{"--metrics-bind-address=9090"}, want: []string{"--metrics-bind-address"}},
		{name: "health port", args: []string{"--health-probe-bind-address=x"}, want: []string{"--health-probe"}},

		{name: "no policies", args: []string{"--policy-dir="}, want: []string{"--policy-dir: must be set"}},
		{name: "no message timeout", args: []string{"--envoy-message-timeout=0s"},
			want: []string{"--envoy-message-timeout"}},
		{name: "Envoy's bound", args: []string{"--envoy-max-message-timeout=61m"},
			want: []string{"to 1h", "0 where"}},
		{name: "no override", args: []string{"--envoy-max-message-timeout=0s"}},
		{name: "warm without refill", args: []string{"--warm-file=urls"}, want: []string{"--refill-address"}},
		{name: "negative ramp", args: []string{"--ramp-rate=-1"}, want: []string{"--ramp-rate", "negative"}},
		{name: "negative wait", args: []string{"--warm-timeout=-1s"}, want: []string{"--warm-timeout"}},
		{name: "no pace", args: []string{"--warm-rate=0"}, want: []string{"--warm-rate", "above 0"}},
		{name: "nobody loads", args: []string{"--warm-concurrency=0"}, want: []string{"--warm-concurrency"}},
		{name: "ramp", args: []string{"--ramp-rate=2.5", "--ramp-duration=0s"}},
		{name: "refill through a socket", args: []string{"--refill-address=unix:///run/envoy.sock"}},
		{name: "refill without port", args: []string{"--refill-address=127.0.0.1"}, want: []string{"host:port"}},
		{name: "drain", args: []string{"--drain-delay=-1s"}, want: []string{"negative"}},
		{name: "log level", args: []string{"--log-level=loud"}, want: []string{`"loud"`, "debug, info, warn or error"}},
		{name: "log format", args: []string{"--log-format=xml"}, want: []string{`"xml"`}},
		{name: "fleet", args: []string{"--redis-url=rediss://weir@redis", "--redis-password-file=p", "--redis-ca-file=c",
			"--secret-file=s", "--replica-name=weir-0"}},
		{name: "fleet without keys", args: []string{"--redis-url=redis://redis"},
			want: []string{"--redis-url: wants --secret-file", "same keys for all", "openssl rand -hex 32"}},
		{name: "no URL of Redis", args: []string{"--redis-url=http://weir:pa55word@redis", "--secret-file=s"},
			want: []string{"--redis-url", "want redis, redis+sentinel or redis+cluster"}},
		{name: "Redis's files without its URL", args: []string{"--redis-password-file=p", "--redis-ca-file=c"},
			want: []string{"--redis-password-file: wants --redis-url", "--redis-ca-file: wants --redis-url"}},
		{name: "replica name with a slash", args: []string{"--replica-name=a/b"}, want: []string{`--replica-name "a/b"`}},
		{name: "replica name with a space", args: []string{"--replica-name=a b"}, want: []string{"--replica-name"}},
		{name: "endless replica name", args: []string{"--replica-name=" + strings.Repeat("x", 129)},
			want: []string{"--replica-name", "128 bytes"}},
		{name: "everything at once", args: []string{"--policy-dir=", "--log-format=xml", "--grpc-bind-address=:9002",
			"--admin-bind-address=:9004", "--redis-url=redis://x"},
			want: []string{"--policy-dir", "xml", "play Envoy", "--admin-token-file", "--redis-url"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg, err := configOf(t, "", append([]string{"--policy-dir=policies"}, tt.args...)...)
			if err != nil {
				t.Fatal(err)
			}
			wantError(t, cfg.Validate(), tt.want)
		})
	}
}

// TestControllerFlags: what may stand beside --controller-address, and what it wants.
func TestControllerFlags(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, args string
		want       []string // of the error; none: valid
	}{
		{"loopback", "--controller-address=127.0.0.1:18000", nil},
		{"TLS", "--controller-address=weir-controller:18000 --controller-ca-file=ca.crt", nil},
		{"mTLS", "--controller-address=weir-controller:18000 --controller-ca-file=ca.crt " +
			"--controller-tls-cert-file=tls.crt --controller-tls-key-file=tls.key --controller-server-name=c", nil},
		{"warm file", "--controller-address=127.0.0.1:1 --warm-file=urls", nil},
		{"neither", "", []string{"--policy-dir: must be set, or --controller-address"}},
		{"both", "--controller-address=127.0.0.1:1 --policy-dir=p", []string{"policies come from one of them"}},
		{"another machine without TLS", "--controller-address=weir-controller:18000", []string{"set --controller-ca-file"}},
		{"no port", "--controller-address=weir-controller", []string{"--controller-address", "want host:port"}},
		{"certificate alone", "--controller-address=127.0.0.1:1 --controller-tls-cert-file=tls.crt",
			[]string{"--controller-tls-key-file: must be set", "wants --controller-ca-file"}},
		{"refill address", "--controller-address=127.0.0.1:1 --refill-address=127.0.0.1:2", []string{"--refill-address: not under"}},
		{"negative wait", "--controller-address=127.0.0.1:1 --controller-wait=-1s", []string{"--controller-wait"}},
		{"files without a controller", "--policy-dir=p --controller-ca-file=ca.crt --controller-server-name=x",
			[]string{"--controller-ca-file: wants --controller-address", "--controller-server-name: wants"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg, err := configOf(t, "", strings.Fields(tt.args)...)
			if err != nil {
				t.Fatal(err)
			}
			if err := cfg.Validate(); len(tt.want) > 0 {
				wantError(t, err, tt.want)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

package kube_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestChartRefuses holds what values are errors, and that the message says what to do about it.
func TestChartRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, values, want string }{
		{"an unknown value", "redis.host=x", "host"},
		{"an unknown component", "exproc.kind=DaemonSet", "exproc"},
		{"a word that is none", "extproc.kind=StatefulSet", "/extproc/kind"},
		{"an attachment that is none", "controller.attach={nginx}", "/controller/attach/0"},
		{"a password in the open", "redis.url=redis://user:secret@redis:6379", "/redis/url"},
		{"a scheme that is none", "redis.url=http://redis", "/redis/url"},
		{"a setting that is no flag", "extproc.config.MemoryLimit=1Gi", "MemoryLimit"},
		{"mTLS without TLS", "extproc.callers=Certificate,extproc.tls.enabled=false", "wants extproc.tls.enabled"},
		{"nobody to give policies", "controller.enabled=false", "extproc.policyConfigMap: name a ConfigMap"},
		{"two to give policies", "extproc.policyConfigMap=p", "the controller gives the policies"},
		{"certificates that are not named", "tls.mode=Secrets", "tls.secrets."},
		{"a DaemonSet that scales", "extproc.kind=DaemonSet,extproc.autoscaling.enabled=true", "does not scale"},
		{"both bounds of disruption", "controller.podDisruptionBudget.minAvailable=1," +
			"controller.podDisruptionBudget.maxUnavailable=1", "not both"},
		{"a digest that is none", "extproc.image.digest=latest", "/extproc/image/digest"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := server.Helm(t.Context(), "template", "weir", weirChart, "--set", tt.values)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("helm template --set %s: %v, want %s", tt.values, err, tt.want)
			}
		})
	}
}

// configOf returns the settings that a component gets.
func configOf(t *testing.T, objects []*unstructured.Unstructured, name string) map[string]any {
	t.Helper()
	text, _, err := unstructured.NestedString(find(t, objects, "ConfigMap", name).Object, "data", "config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	config := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(text), &config); err != nil {
		t.Fatal(err)
	}
	return config
}

// TestChartConfig holds what values become settings of weir-extproc.
func TestChartConfig(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, values string
		want         map[string]any // nil: not set
	}{
		{"by default the network keeps others out", "", map[string]any{
			"grpc-insecure": true, "grpc-client-ca-file": nil, "grpc-tls-cert-file": "/etc/weir/tls/tls.crt",
			"controller-address": "weir-controller.weir-system.svc:18000", "policy-dir": nil, "redis-url": nil,
		}},
		{"callers with a certificate", "extproc.callers=Certificate", map[string]any{
			"grpc-insecure": nil, "grpc-client-ca-file": "/etc/weir/tls/ca.crt",
		}},
		{"Redis", "redis.url=rediss://r:6379,redis.passwordSecret.name=p", map[string]any{
			"redis-url": "rediss://r:6379", "redis-password-file": "/etc/weir/redis/password", "redis-ca-file": nil,
		}},
		{"a Secret without Redis", "redis.passwordSecret.name=p", map[string]any{"redis-password-file": nil}},
		{"no controller", "controller.enabled=false,extproc.policyConfigMap=p", map[string]any{
			"controller-address": nil, "controller-ca-file": nil, "policy-dir": "/etc/weir/policies",
		}},
		{"what the user says wins", "extproc.config.log-format=text,extproc.config.memory-limit=64Mi", map[string]any{
			"log-format": "text", "memory-limit": "64Mi",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			config := configOf(t, rendered(t, "--set", tt.values), "weir-extproc")
			got := map[string]any{}
			for key := range tt.want {
				got[key] = config[key]
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestChartRollsOut holds that pods are replaced when what they read changes, and not when something else does.
func TestChartRollsOut(t *testing.T) {
	t.Parallel()
	checksum := func(component string, values ...string) string {
		t.Helper()
		o := find(t, rendered(t, values...), "Deployment", "weir-"+component)
		sum, _, err := unstructured.NestedString(o.Object, "spec", "template", "metadata", "annotations", "checksum/config")
		if err != nil || sum == "" {
			t.Fatalf("%s has no checksum: %v", component, err)
		}
		return sum
	}
	before := checksum("extproc")
	if checksum("extproc", "--set", "extproc.config.memory-limit=64Mi") == before {
		t.Error("another configuration replaces no pod")
	}
	if checksum("extproc", "--set", "controller.replicaCount=3") != before {
		t.Error("more controllers replace pods of the data plane")
	}
}

// TestChartJobIsNamedByWhatItDoes holds that a Job, which cannot be changed, never has to be.
func TestChartJobIsNamedByWhatItDoes(t *testing.T) {
	t.Parallel()
	job := func(values ...string) (name string) {
		t.Helper()
		for _, o := range rendered(t, values...) {
			if o.GetKind() == "Job" {
				name = o.GetName()
			}
		}
		return name
	}
	first := job()
	if first == "" || job("--set", "extproc.replicaCount=3") != first {
		t.Errorf("the Job is called %s, and another once there are more replicas", first)
	}
	if job("--set", "controller.image.tag=v2") == first || job("--set", "tls.selfSigned.days=90") == first {
		t.Error("a Job that does something else has the same name")
	}
	if got := job("--set", "tls.mode=CertManager,keys.existingSecret=k"); got != "" {
		t.Errorf("with nothing to make there is a Job %s", got)
	}
}

// TestChartPolicyOfNetwork holds whom the network lets in.
func TestChartPolicyOfNetwork(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]bool{
		"extproc.callers=NetworkPolicy": true, "extproc.callers=Certificate": false, "extproc.callers=Anyone": false,
	} {
		got := false
		for _, o := range rendered(t, "--set", values) {
			got = got || o.GetKind() == "NetworkPolicy" && o.GetName() == "weir-extproc"
		}
		if got != want {
			t.Errorf("%s: a NetworkPolicy: %v, want %v", values, got, want)
		}
	}
}

// TestChartNotes holds that the notes name what to do next, and warn where something is open.
func TestChartNotes(t *testing.T) {
	t.Parallel()
	namespace := server.Namespace(t)
	tests := []struct{ name, values, want string }{
		{"nothing attached", "", "controller.attach is empty"},
		{"the next command", "controller.attach={envoy-gateway}", "helm test weir -n " + namespace},
		{"open to anyone", "extproc.callers=Anyone", "WARNING: whoever reaches port 9002"},
		{"a certificate for Envoy", "extproc.callers=Certificate", "Secret weir-envoy-tls"},
		{"replicas that are alone", "extproc.replicaCount=2", "Without redis.url each replica is a cache of its own"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out, err := server.Helm(t.Context(), "install", "weir", weirChart, "--namespace", namespace, "--dry-run=server",
				"--set", tt.values)
			_, notes, ok := strings.Cut(out, "NOTES:")
			if err != nil || !ok || !strings.Contains(strings.Join(strings.Fields(notes), " "), tt.want) {
				t.Errorf("%v; want %q in the notes:\n%s", err, tt.want, notes)
			}
		})
	}
}

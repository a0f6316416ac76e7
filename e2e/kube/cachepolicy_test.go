package kube_test

import (
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// validateCase is a case of cachepolicy/testdata/validate.yaml.
type validateCase struct {
	Name string         `json:"name"`
	Spec map[string]any `json:"spec"`
	Want []string       `json:"want"`
}

// goOnly are the cases that the API server accepts and cachepolicy.Validate refuses, each with the reason. The
// controller reports those in the condition Accepted.
var goOnly = map[string]string{}

// TestCachePolicyRules runs the table that cachepolicy.Validate is held to against the API server: what is wrong is
// refused, by an error that names the field, and what is right is not. Each CEL rule passes and fails at least once.
func TestCachePolicyRules(t *testing.T) {
	t.Parallel()
	namespace, covered := server.Namespace(t), newCoverage()
	cases := readYAML[[]validateCase](t, "../../cachepolicy/testdata/validate.yaml")
	var running sync.WaitGroup
	for _, tc := range cases {
		running.Go(func() {
			object := policy(namespace, tc.Spec)
			err := server.Client.Create(t.Context(), object.DeepCopy(), dryRun)
			causes := causesOf(err)
			switch _, excepted := goOnly[tc.Name]; {
			case err != nil && len(causes) == 0:
				t.Errorf("%s: %v", tc.Name, err)
			case err == nil && excepted == (len(tc.Want) == 0):
				t.Errorf("%s: accepted, want %q", tc.Name, tc.Want)
			case err == nil:
				covered.accept(object.Object)
			case excepted || len(tc.Want) == 0:
				t.Errorf("%s: refused: %v", tc.Name, err)
			default:
				covered.refuse(causes)
				for _, want := range tc.Want {
					if path, _, _ := strings.Cut(want, ": "); !names(causes, path) {
						t.Errorf("%s: no error names %s: %v", tc.Name, path, err)
					}
				}
			}
		})
	}
	running.Wait()
	covered.check(t, rulesOf(t, "weir.dev_cachepolicies.yaml"))
	for name := range goOnly {
		if !has(cases, name) {
			t.Errorf("goOnly names %q, which is no case", name)
		}
	}
}

// names reports whether a cause names the path, or what it is in.
func names(causes []metav1.StatusCause, path string) bool {
	for _, c := range causes {
		if c.Field != "spec" && strings.HasPrefix(path, c.Field) {
			return true
		}
	}
	return false
}

func has(cases []validateCase, name string) bool {
	for _, tc := range cases {
		if tc.Name == name {
			return true
		}
	}
	return false
}

// TestCachePolicyBounds holds the ends of what a schema bounds: the longest name passes, one byte more does not; and
// the largest policy there can be stays within the budget of its rules.
func TestCachePolicyBounds(t *testing.T) {
	t.Parallel()
	const route = `targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: `
	n := strings.Repeat
	tests := []struct {
		name string
		spec string
		want string // the field that is refused; none if empty
	}{
		{"target of 253 bytes", route + n("n", 253) + "}]", ""},
		{"target of 254 bytes", route + n("n", 254) + "}]", "spec.targetRefs[0].name"},
		{"section of 253 bytes", route + "a, sectionName: " + n("s", 253) + "}]", ""},
		{"section of 254 bytes", route + "a, sectionName: " + n("s", 254) + "}]", "spec.targetRefs[0].sectionName"},
		{"section with capitals", route + "a, sectionName: Products}]", "spec.targetRefs[0].sectionName"},
		{"header of 256 bytes", "key: {headers: [" + n("h", 256) + "]}", ""},
		{"header of 257 bytes", "key: {headers: [" + n("h", 257) + "]}", "spec.key.headers[0]"},
		{"cookie of 256 bytes", "key: {cookies: [" + n("c", 256) + "]}", ""},
		{"cookie of 257 bytes", "key: {cookies: [" + n("c", 257) + "]}", "spec.key.cookies[0]"},
		{"parameter of 256 bytes", "key: {query: {names: [{value: " + n("q", 256) + "}]}}", ""},
		{"parameter of 257 bytes", "key: {query: {names: [{value: " + n("q", 257) + "}]}}", "spec.key.query.names[0].value"},
		{"longest duration", "ttl: {max: 00001h00001m00001s00001ms}", ""},
		{"duration of 29 bytes", "ttl: {max: 00001h00001m00001s000001ms}", "spec.ttl.max"},
		{"a number where a duration belongs", "ttl: {max: 60}", "spec.ttl.max"},
		{"a number where a percentage belongs, as a string", `jitterPercent: "10"`, "spec.jitterPercent"},
		{"a size in plain bytes", "storage: {maxObjectSize: 65536}", ""},
		{"a size of a broken number of kibibytes", "storage: {maxObjectSize: 1.5Ki}", ""},
		{"a size that is none", "storage: {maxObjectSize: big}", "spec.storage.maxObjectSize"},
		{"the largest policy", largestPolicy(), ""},
	}
	namespace := server.Namespace(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var spec map[string]any
			if err := yaml.Unmarshal([]byte(tt.spec), &spec); err != nil {
				t.Fatal(err)
			}
			err := server.Client.Create(t.Context(), policy(namespace, spec), dryRun)
			switch causes := causesOf(err); {
			case tt.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.want != "" && !names(causes, tt.want):
				t.Errorf("no error names %s: %v", tt.want, err)
			}
		})
	}
}

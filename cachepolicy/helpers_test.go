package cachepolicy_test

import (
	"os"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
)

// spec reads the spec of a policy as its author writes it.
func spec(t testing.TB, text string) *v1alpha1.CachePolicySpec {
	t.Helper()
	out := &v1alpha1.CachePolicySpec{}
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		t.Fatalf("spec %s: %v", text, err)
	}
	return out
}

// compile compiles the spec as policy shop/catalog.
func compile(t testing.TB, text string) *cachepolicy.Policy {
	t.Helper()
	policy, err := cachepolicy.Compile("shop", "catalog", spec(t, text))
	if err != nil {
		t.Fatalf("Compile: %v", err)
	}
	return policy
}

// readYAML reads a table of cases.
func readYAML[T any](t testing.TB, path string) T {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out T
	if err := yaml.UnmarshalStrict(data, &out); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return out
}

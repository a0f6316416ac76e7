package cachepolicy_test

import (
	"os"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
)

// spec reads the spec of a policy as its author writes it.
func spec(tb testing.TB, text string) *v1alpha1.CachePolicySpec {
	tb.Helper()
	out := &v1alpha1.CachePolicySpec{}
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		tb.Fatalf("spec %s: %v", text, err)
	}
	return out
}

// compile compiles the spec as policy shop/catalog.
func compile(tb testing.TB, text string) *cachepolicy.Policy {
	tb.Helper()
	policy, err := cachepolicy.Compile("shop", "catalog", spec(tb, text))
	if err != nil {
		tb.Fatalf("Compile: %v", err)
	}
	return policy
}

// readYAML reads a table of cases.
func readYAML[T any](tb testing.TB, path string) T {
	tb.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	var out T
	if err := yaml.UnmarshalStrict(data, &out); err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	return out
}

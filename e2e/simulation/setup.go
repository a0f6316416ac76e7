package simulation

import (
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
)

// Setup is one way to run weir.
type Setup struct {
	Name string
	Spec *v1alpha1.CachePolicySpec
}

// Setups are the four ways that are compared. They are policies: the program is
// the same in all runs.
func Setups() ([]Setup, error) {
	var setups []Setup
	for _, s := range []struct{ name, spec string }{
		{"no cache", `{mode: Disabled}`},
		{"TTL only", `{ttl: {default: 60s}, jitterPercent: 0, xfetch: {mode: "Off"}, coalescing: {scope: "Off"},
			stale: {whileRevalidate: 0s, ifError: 0s, softTimeout: 0s}}`},
		{"single-flight only", `{ttl: {default: 0s}, jitterPercent: 0, xfetch: {mode: "Off"},
			stale: {whileRevalidate: 0s, ifError: 0s, softTimeout: 0s}}`},
		{"all layers", `{ttl: {default: 60s}, negativeTTL: [{status: 5xx, ttl: 1s}, {status: Unreachable, ttl: 1s}]}`},
	} {
		spec := new(v1alpha1.CachePolicySpec)
		if err := yaml.UnmarshalStrict([]byte(s.spec), spec); err != nil {
			return nil, fmt.Errorf("setup %s: %w", s.name, err)
		}
		setups = append(setups, Setup{s.name, spec})
	}
	return setups, nil
}

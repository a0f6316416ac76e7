package cachepolicy

import (
	"strconv"

	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
)

// Unsupported returns the fields that do not work without the controller, where
// policies come from files: they are refused, not ignored.
func Unsupported(spec *v1alpha1.CachePolicySpec) []FieldError {
	var errs []FieldError
	for i := range spec.TargetRefs {
		switch ref := &spec.TargetRefs[i]; ref.Kind {
		case KindHTTPRoute, KindGateway, KindVirtualService:
			errs = append(errs, FieldError{"spec.targetRefs[" + strconv.Itoa(i) + "].kind", strconv.Quote(string(ref.Kind)) +
				": needs weir-controller; a policy from a file can only target an EnvoyRoute (group " +
				v1alpha1.GroupName + ")"})
		}
	}
	if spec.Mesh != nil {
		errs = append(errs, FieldError{"spec.mesh",
			"needs weir-controller; a policy from a file applies wherever the filter was put"})
	}
	return errs
}

// StandaloneBindings returns the bindings of a policy that comes from a file:
// one for each EnvoyRoute it targets, and, unless that is exactly one, one for
// requests that only the policy's name leads to. Those share their entries,
// whatever their route: routes that answer the same URL differently need
// targets.
//
// The scope is namespace and route, not the policy's name: renaming a policy
// moves no entry of its routes.
func StandaloneBindings(p *Policy, spec *v1alpha1.CachePolicySpec) []Binding {
	var out []Binding
	for i := range spec.TargetRefs {
		if ref := &spec.TargetRefs[i]; ref.Kind == KindEnvoyRoute {
			name := string(ref.Name)
			out = append(out, Binding{Policy: p, Route: name, Scope: p.Namespace + "/route/" + name})
		}
	}
	if len(out) != 1 {
		out = append(out, Binding{Policy: p, Scope: p.Namespace + "/policy/" + p.Name})
	}
	return out
}

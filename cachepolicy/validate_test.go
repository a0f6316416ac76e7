package cachepolicy_test

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
)

// validateCase is a case of testdata/validate.yaml.
type validateCase struct {
	Name string                   `json:"name"`
	Spec v1alpha1.CachePolicySpec `json:"spec"`
	Want []string                 `json:"want"`
}

func TestValidate(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, tc := range readYAML[[]validateCase](t, "testdata/validate.yaml") {
		if names[tc.Name] {
			t.Errorf("two cases are named %q", tc.Name)
		}
		names[tc.Name] = true
		t.Run(tc.Name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, e := range cachepolicy.Validate(&tc.Spec) {
				got = append(got, e.Error())
			}
			if diff := cmp.Diff(tc.Want, got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
			_, err := cachepolicy.Compile("shop", "catalog", &tc.Spec)
			if len(tc.Want) > 0 && (err == nil || err.Error() != strings.Join(tc.Want, "; ")) {
				t.Errorf("Compile: %v, want what Validate says", err)
			}
		})
	}
}

// TestValidateTableCoversEveryField holds the table to the API: a field that is
// added without a bad value in the table fails here.
func TestValidateTableCoversEveryField(t *testing.T) {
	t.Parallel()
	index := regexp.MustCompile(`\[\d+\]`)
	covered := map[string]bool{}
	for _, tc := range readYAML[[]validateCase](t, "testdata/validate.yaml") {
		for _, want := range tc.Want {
			path, _, _ := strings.Cut(want, ": ")
			covered[index.ReplaceAllString(path, "[]")] = true
		}
	}
	for _, path := range leafPaths(reflect.TypeFor[v1alpha1.CachePolicySpec](), "spec") {
		if !covered[path] {
			t.Errorf("no case of testdata/validate.yaml has a bad %s", path)
		}
	}
}

// leafPaths are the paths of all fields that hold a value, [] for any index.
func leafPaths(typ reflect.Type, path string) []string {
	switch {
	case typ.Kind() == reflect.Pointer:
		return leafPaths(typ.Elem(), path)
	case typ.Kind() == reflect.Slice:
		return leafPaths(typ.Elem(), path+"[]")
	case typ.Kind() != reflect.Struct || typ.Name() == "Quantity":
		return []string{path}
	}
	var out []string
	for field := range typ.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" {
			out = append(out, leafPaths(field.Type, path)...)
			continue
		}
		out = append(out, leafPaths(field.Type, path+"."+name)...)
	}
	slices.Sort(out)
	return out
}

func TestUnsupported(t *testing.T) {
	t.Parallel()
	s := spec(t, `{targetRefs: [{group: weir.dev, kind: EnvoyRoute, name: a},
		{group: gateway.networking.k8s.io, kind: Gateway, name: b},
		{group: gateway.networking.k8s.io, kind: HTTPRoute, name: c},
		{group: networking.istio.io, kind: VirtualService, name: d}],
		mesh: {serverAuthorization: SkipOnHit}}`)
	var got []string
	for _, e := range cachepolicy.Unsupported(s) {
		got = append(got, e.Error())
	}
	const reason = `: needs weir-controller; a policy from a file can only target an EnvoyRoute (group weir.dev)`
	want := []string{`spec.targetRefs[1].kind: "Gateway"` + reason, `spec.targetRefs[2].kind: "HTTPRoute"` + reason,
		`spec.targetRefs[3].kind: "VirtualService"` + reason,
		`spec.mesh: needs weir-controller; a policy from a file applies wherever the filter was put`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

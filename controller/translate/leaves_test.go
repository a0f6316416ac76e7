package translate

import (
	"math/bits"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
)

// eachLeaf calls f with a spec for each leaf of the API, which sets that leaf alone.
func eachLeaf(f func(path string, spec *v1alpha1.CachePolicySpec)) {
	var walk func(t reflect.Type, path string, index [][]int)
	walk = func(t reflect.Type, path string, index [][]int) {
		for field := range t.Fields() {
			at, name := append(slices.Clip(index), field.Index), path+"."+field.Name
			if field.Type.Kind() == reflect.Pointer && isBlock(field.Type.Elem()) {
				walk(field.Type.Elem(), name, at)
				continue
			}
			spec := &v1alpha1.CachePolicySpec{}
			v := reflect.ValueOf(spec).Elem()
			for _, step := range at[:len(at)-1] {
				v = v.FieldByIndex(step)
				v.Set(reflect.New(v.Type().Elem()))
				v = v.Elem()
			}
			v = v.FieldByIndex(field.Index)
			if v.Kind() == reflect.Slice {
				v.Set(reflect.MakeSlice(v.Type(), 0, 0))
			} else {
				v.Set(reflect.New(v.Type().Elem()))
			}
			f(name, spec)
		}
	}
	walk(reflect.TypeFor[v1alpha1.CachePolicySpec](), "spec", nil)
}

// TestLeavesAreThoseOfTheMerge wants a bit for each leaf, and what has the same bit to
// be what supersedes it in a merge.
func TestLeavesAreThoseOfTheMerge(t *testing.T) {
	t.Parallel()
	var all leaves
	var specs []*v1alpha1.CachePolicySpec
	eachLeaf(func(path string, spec *v1alpha1.CachePolicySpec) {
		if path == "spec.TargetRefs" {
			if leavesOf(spec) != 0 {
				t.Errorf("%s is a leaf", path)
			}
			return
		}
		set := leavesOf(spec)
		if bits.OnesCount64(uint64(set)) != 1 || all&set != 0 {
			t.Errorf("%s has the bits %b, of which %b are taken", path, set, all&set)
		}
		all |= set
		specs = append(specs, spec)
	})
	if n := bits.OnesCount64(uint64(all)); n != len(specs) || n < 30 || n > 64 {
		t.Errorf("%d bits for %d leaves", n, len(specs))
	}
	for _, a := range specs {
		for _, b := range specs {
			if got, want := leavesOf(cachepolicy.Merge(a, b)), leavesOf(a)|leavesOf(b); got != want {
				t.Errorf("merged: %b, want %b", got, want)
			}
		}
	}
}

func TestExtents(t *testing.T) {
	t.Parallel()
	size := resource.MustParse("1Ki")
	jitter := int32(1)
	both := &v1alpha1.CachePolicySpec{JitterPercent: &jitter, Storage: &v1alpha1.Storage{MaxObjectSize: &size}}
	one := &v1alpha1.CachePolicySpec{JitterPercent: &jitter}
	list := func(specs ...*v1alpha1.CachePolicySpec) []Override {
		var policies []*policy
		for _, s := range specs {
			policies = append(policies, &policy{leaves: leavesOf(s)})
		}
		return extents(policies)
	}
	for name, tc := range map[string]struct{ got, want []Override }{
		"alone":                      {list(both), []Override{OverrideNone}},
		"in part":                    {list(both, one), []Override{OverridePartial, OverrideNone}},
		"wholly":                     {list(one, both), []Override{OverrideFull, OverrideNone}},
		"by several":                 {list(both, one, both), []Override{OverrideFull, OverrideFull, OverrideNone}},
		"one that says nothing":      {list(&v1alpha1.CachePolicySpec{}, one), []Override{OverrideNone, OverrideNone}},
		"one that has other leaves":  {list(one, &v1alpha1.CachePolicySpec{Storage: both.Storage}), []Override{OverrideNone, OverrideNone}},
		"only what comes after does": {list(one, &v1alpha1.CachePolicySpec{}), []Override{OverrideNone, OverrideNone}},
	} {
		if !reflect.DeepEqual(tc.got, tc.want) {
			t.Errorf("%s: %q, want %q", name, tc.got, tc.want)
		}
	}
}

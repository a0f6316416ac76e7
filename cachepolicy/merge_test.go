package cachepolicy_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
)

func TestMerge(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		layers []string // least specific first
		want   string
	}{
		{"no layer", nil, `{}`},
		{"one layer", []string{`{mode: Shadow}`}, `{mode: Shadow}`},
		{"the more specific leaf wins", []string{`{mode: Shadow}`, `{mode: Enabled}`}, `{mode: Enabled}`},
		{"what it does not set is inherited",
			[]string{`{ttl: {default: 60s, max: 1h}}`, `{ttl: {default: 5s}}`}, `{ttl: {default: 5s, max: 1h}}`},
		{"blocks of either",
			[]string{`{ttl: {min: 1s}}`, `{stale: {ifError: 1m}}`}, `{ttl: {min: 1s}, stale: {ifError: 1m}}`},
		{"an empty block changes nothing", []string{`{ttl: {min: 1s}}`, `{ttl: {}}`}, `{ttl: {min: 1s}}`},
		{"a zero is a value", []string{`{jitterPercent: 10}`, `{jitterPercent: 0}`}, `{jitterPercent: 0}`},
		{"lists replace whole",
			[]string{`{negativeTTL: [{status: "404", ttl: 1s}, {status: 5xx, ttl: 1s}]}`,
				`{negativeTTL: [{status: "410", ttl: 9s}]}`},
			`{negativeTTL: [{status: "410", ttl: 9s}]}`},
		{"an empty list is a list", []string{`{key: {headers: [x-a]}}`, `{key: {headers: []}}`}, `{key: {headers: []}}`},
		{"mode and names of a query are leaves of their own",
			[]string{`{key: {query: {mode: Include, names: [{value: a}]}}}`, `{key: {query: {names: [{value: b}]}}}`},
			`{key: {query: {mode: Include, names: [{value: b}]}}}`},
		{"three layers", []string{`{mode: Shadow, jitterPercent: 1}`, `{mode: Disabled}`, `{jitterPercent: 3}`},
			`{mode: Disabled, jitterPercent: 3}`},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			layers := []*v1alpha1.CachePolicySpec{nil} // a layer that is not there
			for _, text := range tc.layers {
				layers = append(layers, spec(t, text))
			}
			if diff := cmp.Diff(spec(t, tc.want), cachepolicy.Merge(layers...)); diff != "" {
				t.Errorf("merged (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMergeTakesEachLeaf goes through every leaf of the API: set in the more
// specific layer alone, it is the only one that changes.
func TestMergeTakesEachLeaf(t *testing.T) {
	t.Parallel()
	base := filled(1)
	before := base.DeepCopy()
	leaves := 0
	eachLeaf(reflect.ValueOf(filled(2)).Elem(), "spec", nil, func(path string, index []int) {
		leaves++
		over := &v1alpha1.CachePolicySpec{}
		copyLeaf(over, filled(2), index)
		want := base.DeepCopy()
		copyLeaf(want, filled(2), index)
		got := cachepolicy.Merge(base, over)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
		if diff := cmp.Diff(before, base); diff != "" {
			t.Errorf("%s: Merge changed its input:\n%s", path, diff)
		}
	})
	if leaves != 34 {
		t.Errorf("went through %d leaves, want 34: the test does not see the whole API", leaves)
	}
}

func TestMergeSharesNothing(t *testing.T) {
	t.Parallel()
	base, over := filled(1), filled(2)
	got := cachepolicy.Merge(base, over)
	*got.Mode = "changed"
	got.NegativeTTL[0].Status = "changed"
	*got.TTL.Default = "changed"
	if diff := cmp.Diff(filled(2), over); diff != "" {
		t.Errorf("the result shares memory with its input:\n%s", diff)
	}
}

// filled sets every leaf to a value made from n; most are not valid.
func filled(n int) *v1alpha1.CachePolicySpec {
	out := &v1alpha1.CachePolicySpec{}
	fill(reflect.ValueOf(out).Elem(), n)
	return out
}

func fill(v reflect.Value, n int) {
	switch {
	case v.Type() == reflect.TypeFor[resource.Quantity]():
		v.Set(reflect.ValueOf(resource.MustParse(fmt.Sprint(n))))
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(v.Index(i), n)
		}
	case v.Kind() == reflect.Struct:
		for _, field := range v.Fields() {
			fill(field, n)
		}
	case v.Kind() == reflect.String:
		v.SetString(fmt.Sprint("value ", n))
	default:
		v.SetInt(int64(n))
	}
}

// eachLeaf calls f for each leaf of the merge: each pointer to something that is
// not a block, and each list.
func eachLeaf(v reflect.Value, path string, index []int, f func(string, []int)) {
	for i := range v.NumField() {
		at := append(append([]int{}, index...), i)
		name := path + "." + v.Type().Field(i).Name
		field := v.Field(i)
		if field.Kind() == reflect.Pointer && field.Elem().Kind() == reflect.Struct &&
			field.Type() != reflect.TypeFor[*resource.Quantity]() {
			eachLeaf(field.Elem(), name, at, f)
			continue
		}
		f(name, at)
	}
}

// copyLeaf sets one leaf of dst, and the blocks around it, from src.
func copyLeaf(dst, src *v1alpha1.CachePolicySpec, index []int) {
	d, s := reflect.ValueOf(dst).Elem(), reflect.ValueOf(src).Elem()
	for depth, i := range index {
		d, s = d.Field(i), s.Field(i)
		if depth == len(index)-1 {
			d.Set(s)
			return
		}
		if d.IsNil() {
			d.Set(reflect.New(d.Type().Elem()))
		}
		d, s = d.Elem(), s.Elem()
	}
}

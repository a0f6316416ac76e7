package cachepolicy_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirproxy/weir/cachepolicy"
)

// bindings are those of a policy from a file with the targets given.
func bindings(tb testing.TB, namespace, name string, targets ...string) []cachepolicy.Binding {
	tb.Helper()
	s := spec(tb, `{}`)
	for _, target := range targets {
		one := spec(tb, `{targetRefs: [{group: weir.dev, kind: EnvoyRoute, name: `+target+`}]}`)
		s.TargetRefs = append(s.TargetRefs, one.TargetRefs...)
	}
	policy, err := cachepolicy.Compile(namespace, name, s)
	if err != nil {
		tb.Fatal(err)
	}
	return cachepolicy.StandaloneBindings(policy, s)
}

func newSet(tb testing.TB, lists ...[]cachepolicy.Binding) *cachepolicy.Set {
	tb.Helper()
	var all []cachepolicy.Binding
	for _, list := range lists {
		all = append(all, list...)
	}
	set, err := cachepolicy.NewSet(all...)
	if err != nil {
		tb.Fatal(err)
	}
	return set
}

func TestSetFind(t *testing.T) {
	t.Parallel()
	set := newSet(t, bindings(t, "shop", "one", "a"), bindings(t, "shop", "two", "b", "c"), bindings(t, "shop", "none"))
	tests := []struct {
		name, policy, route string
		want                string // scope
	}{
		{"by route", "", "a", "shop/route/a"},
		{"by the second route", "", "c", "shop/route/c"},
		{"unknown route", "", "x", ""},
		{"neither", "", "", ""},
		{"by the name of a policy with one route", "shop/one", "", "shop/route/a"},
		{"by the name of a policy with two routes", "shop/two", "", "shop/policy/two"},
		{"by the name of a policy with none", "shop/none", "", "shop/policy/none"},
		{"by name and its own route", "shop/two", "b", "shop/route/b"},
		{"by name on another policy's route", "shop/none", "a", "shop/policy/none"},
		{"by name on an unknown route", "shop/two", "x", "shop/policy/two"},
		{"unknown name decides alone", "shop/x", "a", ""},
		{"name without a namespace", "one", "a", ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if b, ok := set.Find(tc.policy, tc.route); ok {
				got = b.Scope
			}
			if got != tc.want {
				t.Errorf("Find(%q, %q) has scope %q, want %q", tc.policy, tc.route, got, tc.want)
			}
		})
	}
	if set.Len() != 3 {
		t.Errorf("Len() = %d, want 3", set.Len())
	}
	var routes []string
	for b := range set.Bindings() {
		routes = append(routes, b.Policy.Name+" "+b.Route)
	}
	if diff := cmp.Diff([]string{"one a", "two b", "two c", "two ", "none "}, routes); diff != "" {
		t.Errorf("Bindings (-want +got):\n%s", diff)
	}
}

func TestNilSetIsEmpty(t *testing.T) {
	t.Parallel()
	var set *cachepolicy.Set
	if _, ok := set.Find("a/b", "c"); ok || set.Len() != 0 {
		t.Error("a nil set is not empty")
	}
	for range set.Bindings() {
		t.Error("a nil set has a binding")
	}
}

// TestRenamingMovesNothing: the entries of a route stay where they are when its
// policy is renamed; those of another namespace or route are apart.
func TestRenamingMovesNothing(t *testing.T) {
	t.Parallel()
	scopeOf := func(namespace, name string) string {
		b, _ := newSet(t, bindings(t, namespace, name, "a", "b")).ByRoute("a")
		return b.Scope
	}
	if scopeOf("shop", "old") != scopeOf("shop", "new") {
		t.Error("renaming a policy moves the keys of its route")
	}
	if scopeOf("shop", "old") == scopeOf("blog", "old") {
		t.Error("two namespaces share the keys of a route")
	}
}

func TestSetConflicts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		lists [][]cachepolicy.Binding
		want  string
	}{
		{"two policies on one route", [][]cachepolicy.Binding{
			bindings(t, "shop", "one", "a", "b"), bindings(t, "shop", "two", "b")},
			`policies shop/one and shop/two both target EnvoyRoute "b": a route takes one policy`},
		{"of two namespaces", [][]cachepolicy.Binding{bindings(t, "shop", "one", "a"), bindings(t, "blog", "one", "a")},
			`policies shop/one and blog/one both target EnvoyRoute "a": a route takes one policy`},
		{"one name twice is one conflict", [][]cachepolicy.Binding{
			bindings(t, "shop", "one", "a", "b"), bindings(t, "shop", "one", "c", "d")},
			`policy shop/one is defined twice: names must be unique within a namespace`},
		{"all of them", [][]cachepolicy.Binding{
			bindings(t, "shop", "one", "a", "b"), bindings(t, "shop", "two", "b", "a")},
			`policies shop/one and shop/two both target EnvoyRoute "b": a route takes one policy` + "\n" +
				`policies shop/one and shop/two both target EnvoyRoute "a": a route takes one policy`},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var all []cachepolicy.Binding
			for _, list := range tc.lists {
				all = append(all, list...)
			}
			_, err := cachepolicy.NewSet(all...)
			if err == nil || err.Error() != tc.want {
				t.Errorf("NewSet: %v, want %s", err, tc.want)
			}
			if _, ok := errors.AsType[*cachepolicy.ConflictError](err); !ok {
				t.Error("the error holds no ConflictError")
			}
		})
	}
}

// BenchmarkFind compares look-ups among 10 and among 10,000 routes.
func BenchmarkFind(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		var all []cachepolicy.Binding
		names := make([]string, n)
		for i := range n {
			names[i] = fmt.Sprintf("httproute/shop/catalog-%d/rule/0", i)
			all = append(all, bindings(b, "shop", fmt.Sprintf("p%d", i), names[i])...)
		}
		set := newSet(b, all)
		for _, hot := range []int{1, n} { // routes that are asked for in turn
			b.Run(fmt.Sprintf("%d routes, %d asked for", n, hot), func(b *testing.B) {
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					i = (i + 7) % hot
					if _, ok := set.Find("", names[i]); !ok {
						b.Fatal("not found")
					}
				}
			})
		}
	}
}

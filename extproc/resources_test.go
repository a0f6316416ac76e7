package extproc

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
)

// setOf makes a set of one policy in each namespace, which leaves the named query parameter out of its keys.
func setOf(t *testing.T, excluded map[string]string) *cachepolicy.Set {
	t.Helper()
	var bindings []cachepolicy.Binding
	for namespace, name := range excluded {
		spec := &v1alpha1.CachePolicySpec{}
		if name != "" {
			spec.Key = &v1alpha1.Key{Query: &v1alpha1.Query{Names: []v1alpha1.NameMatch{{Value: name}}}}
		}
		p, err := cachepolicy.Compile(namespace, "catalog", spec)
		if err != nil {
			t.Fatal(err)
		}
		bindings = append(bindings, cachepolicy.Binding{Policy: p, Scope: namespace})
	}
	set, err := cachepolicy.NewSet(bindings...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// formsOf are the URIs that an invalidation of the path stamps.
func (r *resources) formsOf(namespace, path string) []string {
	return r.forms(namespace, "https://a.test"+path)
}

// TestResources: a URL is stamped in each form that anything stored may be known by, and in no other.
func TestResources(t *testing.T) {
	t.Parallel()
	var r resources
	noForget := func(namespace string) { t.Errorf("forgot namespace %s", namespace) }
	want := func(namespace, path string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, r.formsOf(namespace, path)); diff != "" {
			t.Errorf("%s in %q (-want +got):\n%s", path, namespace, diff)
		}
	}
	want("shop", "/p?x=1&y=2") // no policy: only as it is
	changes := 0
	changed := func() { changes++ }
	both := setOf(t, map[string]string{"shop": "x", "blog": ""})
	r.learn(both, noForget, changed)
	r.learn(both, noForget, changed)
	r.learn(setOf(t, map[string]string{"shop": "x"}), noForget, changed)
	if changes != 1 {
		t.Errorf("the rules changed %d times, want once", changes)
	}
	r.learn(both, noForget, changed)
	want("shop", "/p?x=1&y=2", "https://a.test/p?y=2")
	want("shop", "/p?y=2", "https://a.test/p?y=2")
	want("blog", "/p?x=1&y=2", "https://a.test/p?x=1&y=2")
	want("", "/p?x=1&y=2", "https://a.test/p?x=1&y=2", "https://a.test/p?y=2")

	// The policy of shop changes. What was stored before is there if it changes back.
	r.learn(setOf(t, map[string]string{"shop": "y", "blog": ""}), noForget, changed)
	want("shop", "/p?x=1&y=2", "https://a.test/p?x=1", "https://a.test/p?y=2")
	r.learn(setOf(t, map[string]string{"blog": ""}), noForget, changed)
	want("shop", "/p?x=1&y=2", "https://a.test/p?x=1", "https://a.test/p?y=2")
	want("blog", "/p?x=1&y=2", "https://a.test/p?x=1&y=2")
}

// TestResourcesAreBounded: rules over the bound are forgotten, and said to be.
func TestResourcesAreBounded(t *testing.T) {
	t.Parallel()
	var r resources
	var forgotten []string
	for i := range maxRetired + 3 {
		r.learn(setOf(t, map[string]string{"shop": fmt.Sprintf("p%d", i)}),
			func(namespace string) { forgotten = append(forgotten, namespace) }, func() {})
	}
	if diff := cmp.Diff([]string{"shop", "shop"}, forgotten); diff != "" {
		t.Errorf("forgotten (-want +got):\n%s", diff)
	}
	if got := r.formsOf("shop", "/p?p0=&p1=&p2="); len(got) != 2 { // by the rules of p2, and by all others
		t.Errorf("forms %q", got)
	}
}

package kube_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
)

// invalidationCase is a case of testdata/cacheinvalidation.yaml.
type invalidationCase struct {
	Name   string         `json:"name"`
	Spec   map[string]any `json:"spec"`
	Change map[string]any `json:"change"`
	Want   []string       `json:"want"`
}

// TestCacheInvalidationRules runs the table; each CEL rule passes and fails at least once.
func TestCacheInvalidationRules(t *testing.T) {
	t.Parallel()
	namespace, covered := server.Namespace(t), newCoverage()
	for _, tc := range readYAML[[]invalidationCase](t, "testdata/cacheinvalidation.yaml") {
		o := object("CacheInvalidation", namespace, tc.Spec)
		err := server.Client.Create(t.Context(), o)
		if tc.Change != nil && err == nil {
			patch, errJSON := json.Marshal(map[string]any{"spec": tc.Change})
			if errJSON != nil {
				t.Fatal(errJSON)
			}
			err = server.Client.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, patch))
		} else if tc.Change != nil {
			t.Errorf("%s: %v", tc.Name, err)
		}
		causes := causesOf(err)
		covered.refuse(causes)
		if err == nil {
			covered.accept(o.Object)
		}
		var got []string
		for _, c := range causes {
			got = append(got, c.Field)
		}
		slices.Sort(got)
		if got = slices.Compact(got); !slices.Equal(got, tc.Want) || (err == nil) != (len(tc.Want) == 0) {
			t.Errorf("%s: errors name %q, want %q: %v", tc.Name, got, tc.Want, err)
		}
	}
	covered.check(t, rulesOf(t, "weir.dev_cacheinvalidations.yaml"))
}

// TestCacheInvalidationDefaults holds the defaults, which nobody inherits.
func TestCacheInvalidationDefaults(t *testing.T) {
	t.Parallel()
	o := &v1alpha1.CacheInvalidation{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "case-", Namespace: server.Namespace(t)},
		Spec:       v1alpha1.CacheInvalidationSpec{Tag: new("a")},
	}
	if err := server.Client.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if got := ptr.Deref(o.Spec.Mode, ""); got != v1alpha1.InvalidationHard {
		t.Errorf("mode: %q, want Hard", got)
	}
	if got := ptr.Deref(o.Spec.TTLSecondsAfterFinished, 0); got != 3600 {
		t.Errorf("ttlSecondsAfterFinished: %d, want 3600", got)
	}
}

// TestCacheInvalidationBounds holds that the longest strings pass and stay within the budget of the rules.
func TestCacheInvalidationBounds(t *testing.T) {
	t.Parallel()
	const url = "https://shop.example/"
	tests := []struct {
		spec map[string]any
		want string // the field that is refused; none if empty
	}{
		{map[string]any{"url": url + strings.Repeat("a", 8192-len(url))}, ""},
		{map[string]any{"url": url + strings.Repeat("a", 8193-len(url))}, "spec.url"},
		{map[string]any{"tag": strings.Repeat("t", 1024)}, ""},
		{map[string]any{"tag": strings.Repeat("t", 1025)}, "spec.tag"},
		{map[string]any{"host": strings.Repeat("h", 253) + ":12345"}, ""},
		{map[string]any{"host": strings.Repeat("h", 254) + ":12345"}, "spec.host"},
		{map[string]any{"policy": strings.Repeat("p", 253)}, ""},
		{map[string]any{"policy": strings.Repeat("p", 254)}, "spec.policy"},
	}
	namespace := server.Namespace(t)
	for _, tt := range tests {
		err := server.Client.Create(t.Context(), object("CacheInvalidation", namespace, tt.spec), dryRun)
		if (err == nil) != (tt.want == "") || tt.want != "" && !names(causesOf(err), tt.want) {
			t.Errorf("want an error of %q, got: %.200v", tt.want, err)
		}
	}
}

package admin_test

import (
	"strings"
	"testing"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/admin"
)

func TestFindPolicy(t *testing.T) {
	t.Parallel()
	catalog := &cachepolicy.Policy{Namespace: "shop", Name: "catalog"}
	news := &cachepolicy.Policy{Namespace: "blog", Name: "news"}
	set := func(bindings ...cachepolicy.Binding) *cachepolicy.Set {
		t.Helper()
		s, err := cachepolicy.NewSet(bindings...)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	none := set()
	one := set(cachepolicy.Binding{Policy: catalog, Route: "a"}, cachepolicy.Binding{Policy: catalog, Route: "b"})
	two := set(cachepolicy.Binding{Policy: catalog, Route: "a"}, cachepolicy.Binding{Policy: news, Route: "n"})
	tests := []struct {
		name          string
		set           *cachepolicy.Set
		policy, route string
		want          *cachepolicy.Policy
		wantErr       string
	}{
		{name: "none", set: none},
		{name: "the only one", set: one, want: catalog},
		{name: "by route", set: two, route: "n", want: news},
		{name: "by name", set: two, policy: "shop/catalog", want: catalog},
		{name: "route without policy", set: two, route: "x"},
		{name: "no such policy", set: two, policy: "shop/x", wantErr: "no policy shop/x"},
		{name: "which", set: two, wantErr: "policy=namespace/name"},
	}
	for _, tt := range tests {
		got, err := admin.FindPolicy(tt.set, tt.policy, tt.route)
		if tt.wantErr != "" {
			if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
				t.Errorf("%s: error %v, want %q", tt.name, err, tt.wantErr)
			}
			continue
		}
		if err != nil || (got == nil) != (tt.want == nil) || got != nil && got.Policy != tt.want {
			t.Errorf("%s: %+v, %v, want %v", tt.name, got, err, tt.want)
		}
	}
}

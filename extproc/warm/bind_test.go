package warm

import (
	"testing"

	"github.com/weirproxy/weir/cachepolicy"
)

func TestBind(t *testing.T) {
	t.Parallel()
	catalog := &cachepolicy.Policy{Namespace: "shop", Name: "catalog"}
	news := &cachepolicy.Policy{Namespace: "blog", Name: "news"}
	binding := func(p *cachepolicy.Policy, route string) cachepolicy.Binding {
		return cachepolicy.Binding{Policy: p, Route: route, Scope: p.Namespace + "/" + route}
	}
	set := func(bindings ...cachepolicy.Binding) *cachepolicy.Set {
		t.Helper()
		s, err := cachepolicy.NewSet(bindings...)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	none, one := set(), set(binding(catalog, "a"))
	twoRoutes := set(binding(catalog, "a"), binding(catalog, "b"))
	oneScope := set(cachepolicy.Binding{Policy: catalog, Route: "a", Scope: "s"},
		cachepolicy.Binding{Policy: catalog, Route: "b", Scope: "s"})
	twoPolicies := set(binding(catalog, "a"), binding(news, "n"))
	tests := []struct {
		name          string
		set           *cachepolicy.Set
		policy, route string
		want          string // route
		wantErr       string
	}{
		{name: "none", set: none, wantErr: "no policy"},
		{name: "nil", wantErr: "no policy"},
		{name: "the only one", set: one, want: "a"},
		{name: "one policy, two routes", set: twoRoutes, wantErr: "policy=namespace/name or route=name"},
		{name: "one policy by name, two routes", set: twoRoutes, policy: "shop/catalog", wantErr: "add route=name"},
		{name: "one policy, two routes, by route", set: twoRoutes, route: "b", want: "b"},
		{name: "both", set: twoRoutes, policy: "shop/catalog", route: "b", want: "b"},
		{name: "routes of one scope", set: oneScope, want: "a"},
		{name: "which policy", set: twoPolicies, wantErr: "add policy="},
		{name: "by policy", set: twoPolicies, policy: "blog/news", want: "n"},
		{name: "no such policy", set: twoPolicies, policy: "blog/x", wantErr: "no policy blog/x"},
		{name: "a route without policy", set: twoPolicies, route: "x", wantErr: `route "x"`},
	}
	for _, tt := range tests {
		got, err := Bind(tt.set, tt.policy, tt.route)
		if tt.wantErr != "" {
			wantError(t, tt.name, err, []string{tt.wantErr})
			continue
		}
		if err != nil || got.Route != tt.want {
			t.Errorf("%s: %+v, %v, want route %s", tt.name, got, err, tt.want)
		}
	}
}

package cachepolicy_test

import (
	"testing"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/cachepolicy/feed"
)

// TestValidateIsWhatApplyDoes asks Apply whether it agrees.
func TestValidateIsWhatApplyDoes(t *testing.T) {
	t.Parallel()
	route := func(matches ...feed.Match) *feed.Route {
		return &feed.Route{Kind: "HTTPRoute", Namespace: "shop", Name: "a",
			Rules: []feed.Rule{{Policies: []string{}, Scope: "shop/httproute/a/0", Matches: matches}}}
	}
	entrance := func(address, ca string) *feed.Entrance {
		return &feed.Entrance{Namespace: "shop", Gateway: "g", Listener: "l", Address: address, Scheme: "https", CA: ca}
	}
	for name, tc := range map[string]struct {
		object feed.Object
		want   bool
	}{
		"route":           {route(feed.Match{Path: &feed.PathMatch{Type: "PathPrefix", Value: "/a"}}), true},
		"route, regex":    {route(feed.Match{Path: &feed.PathMatch{Type: "RegularExpression", Value: "("}}), false},
		"entrance":        {entrance("10.0.0.1:443", ""), true},
		"entrance, no CA": {entrance("10.0.0.1:443", "nothing"), false},
		"entrance, where": {entrance("10.0.0.1", ""), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var err error
			switch o := tc.object.(type) {
			case *feed.Route:
				err = cachepolicy.ValidateRoute(o)
			case *feed.Entrance:
				err = cachepolicy.ValidateEntrance(o)
			}
			if got := err == nil; got != tc.want {
				t.Errorf("validate: %v", err)
			}
			resource := tc.object.Resource()
			_, verdicts := cachepolicy.NewTable().Apply([]cachepolicy.Change{{Name: resource, Object: tc.object}})
			if got := verdicts[resource] == nil; got != tc.want {
				t.Errorf("Apply: %v", verdicts[resource])
			}
		})
	}
}

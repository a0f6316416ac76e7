package feed

import (
	"fmt"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
)

// In a merge a list replaces a list, and an empty one takes a Gateway's away. The JSON
// of the API types leaves empty lists out, so a policy says beside its spec which
// there are.

// emptyLists returns the lists of a spec that are there and empty, by their fields.
func emptyLists(s *v1alpha1.CachePolicySpec) []string {
	var out []string
	note := func(field string, there bool, n int) {
		if there && n == 0 {
			out = append(out, field)
		}
	}
	note("negativeTTL", s.NegativeTTL != nil, len(s.NegativeTTL))
	if k := s.Key; k != nil {
		note("key.headers", k.Headers != nil, len(k.Headers))
		note("key.cookies", k.Cookies != nil, len(k.Cookies))
		if q := k.Query; q != nil {
			note("key.query.names", q.Names != nil, len(q.Names))
		}
	}
	return out
}

// restoreLists makes the lists that emptyLists named.
func restoreLists(s *v1alpha1.CachePolicySpec, fields []string) error {
	for _, field := range fields {
		switch k := s.Key; {
		case field == "negativeTTL" && s.NegativeTTL == nil:
			s.NegativeTTL = []v1alpha1.NegativeTTL{}
		case field == "key.headers" && k != nil && k.Headers == nil:
			k.Headers = []gatewayv1.HeaderName{}
		case field == "key.cookies" && k != nil && k.Cookies == nil:
			k.Cookies = []string{}
		case field == "key.query.names" && k != nil && k.Query != nil && k.Query.Names == nil:
			k.Query.Names = []v1alpha1.NameMatch{}
		default:
			return fmt.Errorf("empty: %q is no list that could be empty here", field)
		}
	}
	return nil
}

package warm

import (
	"errors"
	"fmt"

	"github.com/weirproxy/weir/cachepolicy"
)

// Bind returns what a request falls under. Envoy, which knows the route of a
// request, is not asked: a route's name decides, or a policy's name if it is
// attached to one route only, or nothing at all where there is only one of both.
func Bind(set *cachepolicy.Set, policy, route string) (*cachepolicy.Binding, error) {
	if route != "" {
		b, ok := set.Find(policy, route)
		if !ok {
			return nil, fmt.Errorf("no policy covers route %q", route)
		}
		return b, nil
	}
	var found *cachepolicy.Binding
	for b := range set.Bindings() {
		switch {
		case policy != "" && b.Policy.String() != policy:
		case found == nil:
			found = b
		case found.Scope != b.Scope:
			return nil, fmt.Errorf("several routes have a policy: add %s", missing(policy))
		}
	}
	switch {
	case found != nil:
		return found, nil
	case policy != "":
		return nil, fmt.Errorf("no policy %s", policy)
	default:
		return nil, errors.New("there is no policy")
	}
}

func missing(policy string) string {
	if policy != "" {
		return "route=name"
	}
	return "policy=namespace/name or route=name"
}

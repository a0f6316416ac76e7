package cachepolicy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirproxy/weir/cachepolicy/feed"
)

// maxFilterTimeout is the largest message timeout of a filter.
const maxFilterTimeout = time.Hour

// rule is a rule of a route as a Set has it. It is immutable once in a Set.
type rule struct {
	base Binding // without policy and entrances, which are other resources
	slot int32   // where its binding is found
	// route is namespace/name and kind of the route; created and place order rules
	// that are alike in all else.
	route   string
	created int64
	place   int

	policies  []string
	entrances []string // names of resources
	exact     []string // route names
	prefixes  []string // of route names, each up to a slash
	hosts     []string // keys of hosts
	matches   []matcher
	chain     *chain // nil: no policy
}

// compareRules is the order of rules that match equally well: the older route, then
// its name, then the place in it.
func compareRules(a, b *rule) int {
	return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.route, b.route), cmp.Compare(a.place, b.place))
}

// compileRoute compiles what a route says but for its policies and entrances, which
// are other resources.
func compileRoute(in *feed.Route) ([]*rule, error) {
	if in.Kind != "HTTPRoute" && in.Kind != "VirtualService" {
		return nil, fmt.Errorf("kind %q: want HTTPRoute or VirtualService", in.Kind)
	}
	out := make([]*rule, len(in.Rules))
	for i := range in.Rules {
		r, err := compileRule(in, i)
		if err != nil {
			return nil, fmt.Errorf("rules[%d].%w", i, err)
		}
		out[i] = r
	}
	return out, nil
}

func compileRule(route *feed.Route, place int) (*rule, error) {
	in := &route.Rules[place]
	if !strings.HasPrefix(in.Scope, route.Namespace+"/") {
		return nil, fmt.Errorf("scope %s: must begin with the namespace of the route", quote(in.Scope))
	}
	r := &rule{
		route: route.Namespace + "/" + route.Name + "/" + route.Kind, created: in.Created, place: place,
		policies: in.Policies, entrances: in.Entrances,
		base: Binding{
			Scope: in.Scope, Route: in.Scope, Namespace: route.Namespace, Fed: true,
			MessageTimeout:    time.Duration(in.MessageTimeoutMillis) * time.Millisecond,
			MaxMessageTimeout: time.Duration(in.MaxMessageTimeoutMillis) * time.Millisecond,
		},
	}
	for _, d := range []time.Duration{r.base.MessageTimeout, r.base.MaxMessageTimeout} {
		if d < 0 || d > maxFilterTimeout {
			return nil, fmt.Errorf("messageTimeoutMillis: %s is not between 0s and %s", d, maxFilterTimeout)
		}
	}
	if err := r.compileNames(in.EnvoyRoutes); err != nil {
		return nil, err
	}
	var err error
	if r.hosts, err = compileHosts(in.Hosts); err != nil {
		return nil, err
	}
	r.matches, err = compileMatches(in.Matches)
	return r, err
}

func (r *rule) compileNames(names []string) error {
	for i, name := range names {
		prefix, many := strings.CutSuffix(name, "*")
		switch {
		case !many && name != "":
			r.exact = append(r.exact, name)
		case !strings.HasSuffix(prefix, "/") || strings.Count(prefix, "/") > maxPrefixDepth:
			return fmt.Errorf("envoyRoutes[%d] %s: want a name, or one that ends in /*", i, quote(name))
		default:
			r.prefixes = append(r.prefixes, prefix)
		}
	}
	return nil
}

func compileHosts(list []string) ([]string, error) {
	if len(list) == 0 {
		return []string{anyHost}, nil
	}
	out := make([]string, len(list))
	for i, host := range list {
		var err error
		if out[i], err = hostKey(host); err != nil {
			return nil, fmt.Errorf("hosts[%d]: %w", i, err)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

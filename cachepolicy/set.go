package cachepolicy

import (
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"slices"
	"strings"
)

// Set says which binding a request falls under. It is immutable and safe for
// concurrent use; a look-up takes the same time however many routes there are. It
// is made of policies from files by NewSet, or of a controller's feed by a Table.
type Set struct {
	bindings []Binding       // of NewSet
	byName   index[*Binding] // namespace/name of the policy
	byRoute  index[*Binding] // xds.route_name, of NewSet

	// Of a feed: the rules of routes, which are found by the names that Envoy has for
	// them, by such names up to a slash, by scope (x-weir-scope) and by what they match;
	// and where their bindings are.
	fed             bool
	names, prefixes index[*rule]
	depths          uint64 // bit n: there is a prefix with n slashes
	byScope         index[*rule]
	hosts           hosts
	inForce         slots
	entrances       []*Entrance

	queries []NamespaceQuery // see Queries
	size    int              // policies
}

// NamespaceQuery is rules of queries that a policy has by which answers are stored in
// a namespace.
type NamespaceQuery struct {
	Namespace string
	Rules     *QueryRules
}

// ConflictError reports two policies where only one can be: on one route, or
// under one name.
type ConflictError struct {
	Route         string   // empty: both have the same name
	First, Second *Binding // in the order given to NewSet
}

// Error names both policies.
func (e *ConflictError) Error() string {
	if e.Route == "" {
		return fmt.Sprintf("policy %s is defined twice: names must be unique within a namespace", e.First.Policy)
	}
	return fmt.Sprintf("policies %s and %s both target EnvoyRoute %q: a route takes one policy",
		e.First.Policy, e.Second.Policy, e.Route)
}

// NewSet makes a set of bindings. A policy's name leads to its binding without a
// route, or, if it has none, to its first. The error joins a *ConflictError for
// each conflict.
func NewSet(bindings ...Binding) (*Set, error) {
	s := &Set{bindings: slices.Clone(bindings)}
	byName, byRoute := s.byName.edit(), s.byRoute.edit()
	var conflicts []error
	repeated := map[*Policy]bool{} // reported as defined twice, once for all its bindings
	queries := queryCount{}
	for i := range s.bindings {
		b := &s.bindings[i]
		name := b.Policy.String()
		queries.add(b.Tenant(), b.Policy)
		other, ok := byName.get(name)
		switch {
		case !ok:
			byName.set(name, b)
		case other.Policy != b.Policy:
			if !repeated[b.Policy] {
				repeated[b.Policy] = true
				conflicts = append(conflicts, &ConflictError{First: other, Second: b})
			}
			continue
		case b.Route == "" && other.Route != "":
			byName.set(name, b)
		}
		if b.Route == "" {
			continue
		}
		if other, ok := byRoute.get(b.Route); ok {
			conflicts = append(conflicts, &ConflictError{Route: b.Route, First: other, Second: b})
			continue
		}
		byRoute.set(b.Route, b)
	}
	if len(conflicts) > 0 {
		return nil, errors.Join(conflicts...)
	}
	s.byName, s.byRoute, s.queries = byName.done(), byRoute.done(), queries.list()
	s.size = s.byName.size
	return s, nil
}

// ByName returns the binding of the policy namespace/name, as the metadata
// x-weir-policy gives it. A nil set is empty.
func (s *Set) ByName(nsName string) (*Binding, bool) {
	if s == nil {
		return nil, false
	}
	return s.byName.get(nsName)
}

// ByRoute returns the binding of a route, as the attribute xds.route_name gives
// its name. Under a controller a scope is a route's name too.
func (s *Set) ByRoute(routeName string) (*Binding, bool) {
	if s == nil || routeName == "" {
		return nil, false
	}
	b, ok := s.route(routeName)
	if !ok {
		b = s.scope(routeName)
	}
	return b, b != nil
}

// route looks a name up as it is, and then cut at each slash where a prefix may end,
// the longest first. Under Envoy Gateway that is one cut: after rule/<n>/.
func (s *Set) route(name string) (*Binding, bool) {
	if !s.fed {
		return s.byRoute.get(name)
	}
	if r, ok := s.names.get(name); ok {
		return s.inForce.at(r.slot), true
	}
	var ends [maxPrefixDepth + 1]int
	n := 0
	for i := 0; i < len(name) && n < maxPrefixDepth; i++ {
		if name[i] == '/' {
			n++
			ends[n] = i + 1
		}
	}
	for depths := s.depths & (1<<(n+1) - 1); depths != 0; {
		deepest := bits.Len64(depths) - 1
		if r, ok := s.prefixes.get(name[:ends[deepest]]); ok {
			return s.inForce.at(r.slot), true
		}
		depths &^= 1 << deepest
	}
	return nil, false
}

// scope returns the binding of the rule with a scope, nil where no policy is in force.
func (s *Set) scope(scope string) *Binding {
	if r, ok := s.byScope.get(scope); ok {
		return s.inForce.at(r.slot)
	}
	return nil
}

// maxPrefixDepth is how many slashes a prefix of route names has at most.
const maxPrefixDepth = 32

// Find returns the binding of a request: that of the policy named in the
// metadata if there is a name, else that of the route. A name decides alone,
// known or not: whoever put it on the route did not mean another policy. Where
// the named policy also targets the route, the route's binding is the one, so
// that both ways lead to the same keys.
func (s *Set) Find(nsName, routeName string) (*Binding, bool) {
	route, ok := s.ByRoute(routeName)
	if nsName == "" {
		return route, ok
	}
	named, found := s.ByName(nsName)
	if ok && route.Policy.String() == nsName && (found || s.fed) {
		return route, true
	}
	return named, found
}

// The names that Envoy Gateway gives to routes begin with one of these: such a name
// says which rule it is, known here or not.
const (
	httpRoutes = "httproute/"
	grpcRoutes = "grpcroute/"
)

// Identify returns the binding of a request by what Envoy was configured to say of
// it: the scope and policy in the stream's metadata (x-weir-scope, x-weir-policy),
// then the name of the route. decided says that this settles the question, with or
// without a binding; else Match is asked. It allocates nothing.
func (s *Set) Identify(policy, scope, route string) (b *Binding, decided bool) {
	switch {
	case s == nil:
		return nil, true
	case scope != "" && (s.fed || s.byScope.size > 0): // a set from files knows no scopes, and goes by the policy
		return s.scope(scope), true
	case policy != "":
		b, _ = s.Find(policy, route)
		return b, true
	case route == "":
		return nil, s.hosts.byHost.size == 0
	}
	b, known := s.route(route)
	return b, known || s.hosts.byHost.size == 0 || strings.HasPrefix(route, httpRoutes) ||
		strings.HasPrefix(route, grpcRoutes)
}

// Match returns the binding of a request of which nothing is said but the request
// itself, by hosts and matches of the rules of routes, in the order of the Gateway
// API; nil: none, or the rule that matches best has no policy.
func (s *Set) Match(in *MatchInput) *Binding {
	if r := s.hosts.find(in); r != nil {
		return s.inForce.at(r.slot)
	}
	return nil
}

// Bindings are all bindings: in the order given to NewSet, and of a feed, in no
// order, those of the rules of routes.
func (s *Set) Bindings() iter.Seq[*Binding] {
	return func(yield func(*Binding) bool) {
		if s == nil {
			return
		}
		for i := range s.bindings {
			if !yield(&s.bindings[i]) {
				return
			}
		}
		for _, page := range s.inForce.pages {
			for _, b := range page {
				if b != nil && !yield(b) {
					return
				}
			}
		}
	}
}

// Policies are the policies that a request may fall under, compiled; some more than
// once.
func (s *Set) Policies() iter.Seq[*Policy] {
	return func(yield func(*Policy) bool) {
		for b := range s.Bindings() {
			if !yield(b.Policy) {
				return
			}
		}
		if s.Fed() {
			s.byName.all(func(_ string, b *Binding) bool { return yield(b.Policy) })
		}
	}
}

// Entrances are those of a feed, whether or not a route names them. The slice is not
// to be changed.
func (s *Set) Entrances() []*Entrance {
	if s == nil {
		return nil
	}
	return s.entrances
}

// Queries returns, once each, the query rules by which answers may be stored. As
// long as these are the same, so is the slice. It is not to be changed.
func (s *Set) Queries() []NamespaceQuery {
	if s == nil {
		return nil
	}
	return s.queries
}

// Fed reports whether the set is made of a controller's feed.
func (s *Set) Fed() bool { return s != nil && s.fed }

// Len is the number of policies.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return s.size
}

// queryCount counts by what query rules answers may be stored.
type queryCount map[queryID]*countedQuery

type queryID struct{ namespace, rules string }

type countedQuery struct {
	rules *QueryRules
	n     int
}

// add counts a policy by which answers may be stored in a namespace, and reports
// whether its rules are new there.
func (q queryCount) add(namespace string, p *Policy) bool {
	id := queryID{namespace, p.Key.Query.String()}
	c, ok := q[id]
	if !ok {
		c = &countedQuery{rules: &p.Key.Query}
		q[id] = c
	}
	c.n++
	return !ok
}

// remove takes it off, and reports whether it was the last with its rules.
func (q queryCount) remove(namespace string, p *Policy) bool {
	id := queryID{namespace, p.Key.Query.String()}
	c, ok := q[id]
	if !ok {
		return false
	}
	if c.n--; c.n == 0 {
		delete(q, id)
	}
	return c.n == 0
}

func (q queryCount) list() []NamespaceQuery {
	out := make([]NamespaceQuery, 0, len(q))
	for id, c := range q {
		out = append(out, NamespaceQuery{id.namespace, c.rules})
	}
	return out
}

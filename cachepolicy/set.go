package cachepolicy

import (
	"errors"
	"fmt"
	"iter"
	"slices"
)

// Binding attaches a policy to what Envoy calls a route.
type Binding struct {
	Policy *Policy
	// Scope is the first part of every cache key made under this binding. Two
	// routes with different scopes share no entry.
	Scope string
	// Route is the name of the route in Envoy's configuration (xds.route_name);
	// empty if only the policy's name leads here.
	Route string
}

// Set says which binding a request falls under. It is immutable and safe for
// concurrent use; a look-up takes the same time however many routes there are.
type Set struct {
	bindings []Binding
	byName   map[string]*Binding // namespace/name of the policy
	byRoute  map[string]*Binding
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
	s := &Set{
		bindings: slices.Clone(bindings),
		byName:   make(map[string]*Binding, len(bindings)),
		byRoute:  make(map[string]*Binding, len(bindings)),
	}
	var conflicts []error
	repeated := map[*Policy]bool{} // reported as defined twice, once for all its bindings
	for i := range s.bindings {
		b := &s.bindings[i]
		name := b.Policy.String()
		other := s.byName[name]
		switch {
		case other == nil:
			s.byName[name] = b
		case other.Policy != b.Policy:
			if !repeated[b.Policy] {
				repeated[b.Policy] = true
				conflicts = append(conflicts, &ConflictError{First: other, Second: b})
			}
			continue
		case b.Route == "" && other.Route != "":
			s.byName[name] = b
		}
		if b.Route == "" {
			continue
		}
		if other := s.byRoute[b.Route]; other != nil {
			conflicts = append(conflicts, &ConflictError{Route: b.Route, First: other, Second: b})
			continue
		}
		s.byRoute[b.Route] = b
	}
	if len(conflicts) > 0 {
		return nil, errors.Join(conflicts...)
	}
	return s, nil
}

// ByName returns the binding of the policy namespace/name, as the metadata
// x-weir-policy gives it. A nil set is empty.
func (s *Set) ByName(nsName string) (*Binding, bool) {
	if s == nil {
		return nil, false
	}
	b, ok := s.byName[nsName]
	return b, ok
}

// ByRoute returns the binding of a route, as the attribute xds.route_name gives
// its name.
func (s *Set) ByRoute(routeName string) (*Binding, bool) {
	if s == nil || routeName == "" {
		return nil, false
	}
	b, ok := s.byRoute[routeName]
	return b, ok
}

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
	if found && ok && route.Policy == named.Policy {
		return route, true
	}
	return named, found
}

// Bindings are all bindings, in the order given to NewSet.
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
	}
}

// Len is the number of policies.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return len(s.byName)
}

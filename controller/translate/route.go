package translate

import (
	"strconv"
	"time"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy/feed"
)

// route is a route object of any kind, in the form that all kinds have in common.
type route struct {
	target     Target // without section
	group      string // of its kind
	created    time.Time
	generation int64
	hosts      []string // in lower case; none: every host
	rules      []rule
	parents    []parent
}

// rule is a rule of a route.
type rule struct {
	index   int
	name    string // empty: it has none
	matches []feed.Match
	scope   string
	// repeats is the index of an earlier rule with the same matches, which takes all
	// requests of this one; -1: none.
	repeats int
	// problem is why no policy can be in force on it, wherever; empty: none.
	problem string
	// envoyNames are what its routes are called in Envoy, if name does not tell.
	envoyNames []string
	// weighted: requests are divided among several backends.
	weighted bool
}

// parent is what a route wants to be attached to.
type parent struct {
	ref gatewayv1.ParentReference // as the route has it
	// key is the parent, without section and port.
	key ancestorKey
	// answers are what implementations say of it.
	answers []answer
}

// answer is what an implementation says of a route at a parent.
type answer struct {
	controller string // empty: whichever takes routes of the kind
	accepted   bool
	message    string
}

// accepted reports whether the implementation has taken the route on; an empty one
// stands for any. The message says why not.
func (p *parent) accepted(controller string) (message string, ok bool) {
	for _, a := range p.answers {
		switch {
		case controller != "" && a.controller != "" && a.controller != controller:
		case a.accepted:
			return "", true
		default:
			message = a.message
		}
	}
	return message, false
}

// finish gives the rules their scopes, and finds the rules that repeat another.
func (r *route) finish() {
	first := make(map[string]int, len(r.rules))
	for i := range r.rules {
		u := &r.rules[i]
		u.index, u.repeats = i, -1
		u.scope = scope(r.target, u.matches)
		if at, ok := first[u.scope]; ok {
			u.repeats = at
		} else {
			first[u.scope] = i
		}
	}
}

// rule returns the rule of that name.
func (r *route) rule(name string) *rule {
	for i := range r.rules {
		if r.rules[i].name == name {
			return &r.rules[i]
		}
	}
	return nil
}

// String is the route in messages.
func (r *route) String() string { return r.target.String() }

// describe is a rule in messages.
func (r *route) describe(u *rule) string {
	s := r.String() + ", rule " + strconv.Itoa(u.index)
	if u.name != "" {
		s += " (" + u.name + ")"
	}
	return s
}

// String returns kind, namespace/name and section.
func (t Target) String() string {
	s := t.Kind + " " + t.Namespace + "/" + t.Name
	if t.SectionName != "" {
		s += " (" + t.SectionName + ")"
	}
	return s
}

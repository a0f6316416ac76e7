package translate

import (
	"slices"
	"strings"
	"time"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
)

// levels are the places in the order of the merge: Gateway, listener, route, rule.
const levels = 4

// chain is the claims that hold on a rule at a place.
type chain struct {
	*merged
	layers []Layer
}

// merged is what the policies of a chain come to.
type merged struct {
	policies []*policy // the least specific first, each once
	names    []string
	extents  []Override // how far the others supersede each
	compiled *cachepolicy.Policy
	longest  time.Duration
	// fault is why nothing can be in force: a sentence. own: the most specific policy is
	// to blame.
	fault string
	own   bool
}

// chainOf returns the chain of up to one claim per level; nil: none.
func (t *translation) chainOf(claims [levels]*claim) *chain {
	var ids [levels]int32
	for i, c := range claims {
		if c != nil {
			ids[i] = c.id
		}
	}
	if ids == [levels]int32{} {
		return nil
	}
	if c := t.chains[ids]; c != nil {
		return c
	}
	c := &chain{}
	var policies []*policy
	for i, k := range claims {
		// A policy that is there twice counts where it is more specific.
		if k == nil || slices.ContainsFunc(claims[i+1:], func(o *claim) bool { return o != nil && o.policy == k.policy }) {
			continue
		}
		policies = append(policies, k.policy)
		c.layers = append(c.layers, Layer{Policy: k.policy.name, Target: k.target})
	}
	c.merged = t.merge(policies)
	t.chains[ids] = c
	return c
}

// merge merges policies, the least specific first.
func (t *translation) merge(policies []*policy) *merged {
	var key [levels]int32
	for i, p := range policies {
		key[i] = int32(p.age + 1) //nolint:gosec // far below
	}
	if m := t.merges[key]; m != nil {
		return m
	}
	m := &merged{policies: policies, extents: extents(policies)}
	specs := make([]*v1alpha1.CachePolicySpec, len(policies))
	for i, p := range policies {
		m.names = append(m.names, p.name)
		specs[i] = &p.object.Spec
		if len(p.faults) > 0 && m.fault == "" {
			m.fault = p.String() + " is not valid."
		}
	}
	if m.fault == "" {
		m.compile(specs)
	}
	t.merges[key] = m
	return m
}

func (m *merged) compile(specs []*v1alpha1.CachePolicySpec) {
	last := m.policies[len(m.policies)-1].object
	compiled, err := cachepolicy.Compile(last.Namespace, last.Name, cachepolicy.Merge(specs...))
	switch {
	case err == nil:
		m.compiled, m.longest = compiled, longestWait(compiled)
	case len(m.names) == 1:
		m.own, m.fault = true, "The policy is not complete: "+err.Error()+"."
	default:
		m.own, m.fault = true, "The policies "+strings.Join(m.names, ", ")+" do not go together: "+err.Error()+"."
	}
}

// longestWait is for how long a request may be held: for the fetch of another, for its
// turn at the origin, for a slow origin. Only Enabled holds.
func longestWait(p *cachepolicy.Policy) time.Duration {
	if p.Mode != cachepolicy.ModeEnabled {
		return 0
	}
	return max(p.Coalescing.MaxWait, p.Stale.SoftTimeout)
}

// superseders are the names of the policies that supersede leaves of one.
func (m *merged) superseders(of int) []string {
	var names []string
	for i := of + 1; i < len(m.policies); i++ {
		if m.policies[i].leaves&m.policies[of].leaves != 0 {
			names = append(names, m.names[i])
		}
	}
	return names
}

// extents says how far each policy is superseded by those after it.
func extents(policies []*policy) []Override {
	out := make([]Override, len(policies))
	var above leaves
	for i, p := range slices.Backward(policies) {
		switch p.leaves & above {
		case 0:
		case p.leaves:
			out[i] = OverrideFull
		default:
			out[i] = OverridePartial
		}
		above |= p.leaves
	}
	return out
}

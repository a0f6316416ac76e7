package translate

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weirproxy/weir/cachepolicy/feed"
)

// conclude lists the policies, the ways in and the verdicts.
func (t *translation) conclude() {
	for _, p := range t.policies {
		t.out.Verdicts = append(t.out.Verdicts, p.verdict())
		if p.claimed && len(p.faults) == 0 {
			spec := p.object.Spec
			spec.TargetRefs = nil
			t.out.Policies = append(t.out.Policies, feed.Policy{Namespace: p.object.Namespace, Name: p.object.Name,
				Generation: p.object.Generation, Spec: spec})
		}
	}
	slices.SortFunc(t.out.Verdicts, func(a, b Verdict) int { return compareNames(a.Policy, b.Policy) })
	slices.SortFunc(t.out.Policies, func(a, b feed.Policy) int { return cmp.Compare(a.Resource(), b.Resource()) })
	for _, e := range t.entrances {
		if e != nil {
			t.out.Entrances = append(t.out.Entrances, *e)
		}
	}
	slices.SortFunc(t.out.Entrances, func(a, b feed.Entrance) int { return cmp.Compare(a.Resource(), b.Resource()) })
	t.out.Attached = slices.Concat(t.attached...)
	t.affectGateways()
}

// affectGateways lists the Gateways that policies target and are accepted at.
func (t *translation) affectGateways() {
	for _, g := range t.gateways {
		a := Affected{Kind: kindGateway, Namespace: g.name.Namespace, Name: g.name.Name, Generation: g.generation}
		affect := func(c *claim) {
			if c == nil {
				return
			}
			f := c.policy.facts[g.key]
			if name := c.policy.name; f.accepted(c.policy).Status == metav1.ConditionTrue &&
				!slices.Contains(a.Policies, name) {
				a.Policies = append(a.Policies, name)
			}
		}
		affect(g.claim)
		for _, l := range g.listeners {
			affect(l.claim)
		}
		if len(a.Policies) > 0 {
			slices.Sort(a.Policies)
			t.out.Affected = append(t.out.Affected, a)
		}
	}
	slices.SortFunc(t.out.Affected, func(a, b Affected) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// verdict is what a policy's status has to say.
func (p *policy) verdict() Verdict {
	v := Verdict{Policy: types.NamespacedName{Namespace: p.object.Namespace, Name: p.object.Name},
		Generation: p.object.Generation}
	type ranked struct {
		Ancestor
		key ancestorKey
	}
	list := make([]ranked, 0, len(p.facts))
	for key, f := range p.facts {
		list = append(list, ranked{f.ancestor(p), key})
	}
	slices.SortFunc(list, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.importance(), b.importance()), a.key.compare(b.key))
	})
	for _, a := range list[:min(len(list), MaxAncestors)] {
		v.Ancestors = append(v.Ancestors, a.Ancestor)
	}
	if v.Omitted = len(list) - len(v.Ancestors); v.Omitted > 0 {
		last := &v.Ancestors[len(v.Ancestors)-1].Accepted
		last.Message = sentences(last.Message, fmt.Sprintf("The policy has %d more ancestors: a status can list %d.",
			v.Omitted, MaxAncestors))
	}
	return v
}

// importance is low for what a reader must see.
func (a *Ancestor) importance() int {
	switch {
	case a.Accepted.Status != metav1.ConditionTrue:
		return 0
	case a.ResolvedRefs.Status != metav1.ConditionTrue:
		return 1
	case a.Override == OverrideFull:
		return 2
	case a.Override == OverridePartial:
		return 3
	}
	return 4
}

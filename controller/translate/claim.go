package translate

import (
	"cmp"
	"slices"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
)

// policy is a CachePolicy, with what became of it.
type policy struct {
	object  *v1alpha1.CachePolicy
	name    string // namespace/name
	age     int    // its place among all, the oldest first
	faults  cachepolicy.FieldErrors
	leaves  leaves
	claimed bool // it has a target that can be served
	facts   map[ancestorKey]*facts
}

// claim is a target of a policy that no older policy has.
type claim struct {
	id     int32
	policy *policy
	target Target
}

// newPolicies returns the policies, the oldest first.
func newPolicies(list []*v1alpha1.CachePolicy) []*policy {
	sorted := slices.SortedFunc(slices.Values(list), func(a, b *v1alpha1.CachePolicy) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name))
	})
	out := make([]*policy, len(sorted))
	for i, o := range sorted {
		out[i] = &policy{
			object: o, name: o.Namespace + "/" + o.Name, age: i,
			faults: cachepolicy.Validate(&o.Spec), leaves: leavesOf(&o.Spec),
			facts: map[ancestorKey]*facts{},
		}
	}
	return out
}

// String is the policy in messages.
func (p *policy) String() string { return "CachePolicy " + p.name }

// at returns the facts of a policy at an ancestor.
func (p *policy) at(key ancestorKey, controller string) *facts {
	f := p.facts[key]
	if f == nil {
		f = &facts{key: key, controller: controller}
		p.facts[key] = f
	}
	return f
}

// claimAll gives each target to the oldest policy that names it, valid or not: where
// the policy of a target is broken, nothing is cached, since what it would have kept
// apart is not known.
func (t *translation) claimAll() {
	for _, p := range t.policies {
		refs := p.object.Spec.TargetRefs
		if len(refs) == 0 {
			p.at(policyKey(p), "").problem(no(gatewayv1.PolicyReasonInvalid,
				"The policy has no target: name HTTPRoutes or Gateways in spec.targetRefs."))
		}
		for i := range refs {
			t.claim(p, string(refs[i].Group), Target{string(refs[i].Kind), p.object.Namespace, string(refs[i].Name),
				string(deref(refs[i].SectionName))})
		}
	}
}

// claim finds the target, and gives it to the policy unless an older one has it.
func (t *translation) claim(p *policy, group string, target Target) {
	sites, missing := t.find(group, target)
	if missing != nil {
		for _, s := range sites {
			p.at(s.key, s.controller).miss(*missing)
		}
		return
	}
	if older := t.claims[target]; older != nil {
		for _, s := range sites {
			p.at(s.key, s.controller).conflict(target, older.policy)
		}
		return
	}
	t.claims[target] = &claim{id: int32(len(t.claims) + 1), policy: p, target: target} //nolint:gosec // far below
	for _, s := range sites {
		if f := p.at(s.key, s.controller); s.problem != nil {
			f.problem(*s.problem)
		} else {
			f.held++
			p.claimed = true
		}
	}
}

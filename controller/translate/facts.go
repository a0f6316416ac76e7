package translate

import (
	"strconv"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy/feed"
	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
)

// facts is what was found of a policy at an ancestor. Of its targets there each is
// held, missing, in conflict, or has a problem; of the rules under those at each place,
// each is served (in part, perhaps), or overridden, failed or refused.
type facts struct {
	key        ancestorKey
	controller string

	held                         int
	missed, conflicted, problems examples
	missing, trouble             *Condition // the first ones

	rules, partly, overridden, failed, failedOwn, refused int
	superseded, faults, refusals                          examples
	refusal                                               *Condition // the first one

	notes     examples
	weighted  examples // rules with several backends
	resources []string // of routes, sorted
}

func (f *facts) miss(c Condition) {
	f.missed.add(nil, func() string { return c.Message })
	if f.missing == nil {
		f.missing = &c
	}
}

func (f *facts) problem(c Condition) {
	f.problems.add(nil, func() string { return c.Message })
	if f.trouble == nil {
		f.trouble = &c
	}
}

func (f *facts) conflict(target Target, winner *policy) {
	f.conflicted.add(nil, func() string {
		return winner.String() + " has " + target.String() +
			": a target takes one policy, the oldest, or else the first by namespace and name."
	})
}

// served says that a route has rules on which the policy is in force. Routes come in
// order.
func (f *facts) served(resource string) {
	if n := len(f.resources); n == 0 || f.resources[n-1] != resource {
		f.resources = append(f.resources, resource)
	}
}

// accepted is the condition Accepted.
func (f *facts) accepted(p *policy) Condition {
	switch {
	case len(p.faults) > 0:
		return no(gatewayv1.PolicyReasonInvalid, "The policy is not valid: "+p.faults.Error()+
			". While it is not, nothing is cached on its targets.")
	case f.held > 0:
	case f.conflicted.count > 0:
		return no(gatewayv1.PolicyReasonConflicted, f.conflicted.String())
	case f.missing != nil:
		return no(f.missing.Reason, f.missed.String())
	case f.trouble != nil:
		return no(f.trouble.Reason, f.problems.String())
	}
	switch {
	case f.rules > 0 && f.rules == f.refused:
		return no(f.refusal.Reason, f.refusals.String())
	case f.failedOwn > 0 && f.rules == f.failedOwn+f.refused:
		return no(gatewayv1.PolicyReasonInvalid, f.faults.String())
	case f.rules == 0 && f.refusal != nil:
		return *f.refusal
	}
	return yes(gatewayv1.PolicyReasonAccepted, sentences("The policy is accepted.", f.notes.String(), f.backends()))
}

// backends says what caching means where requests are divided among backends.
func (f *facts) backends() string {
	if f.weighted.count == 0 {
		return ""
	}
	where := strings.Join(f.weighted.list, "; ")
	if more := f.weighted.count - len(f.weighted.list); more > 0 {
		where += "; and " + strconv.Itoa(more) + " more"
	}
	return "Several backends share the requests of " + where +
		": what one of them answered is served to all clients, so the weights only hold for what is fetched."
}

// resolved is the condition ResolvedRefs.
func (f *facts) resolved() Condition {
	if f.missing != nil {
		return no(f.missing.Reason, f.missed.String())
	}
	return yes(reasonResolvedRefs, "All targets exist.")
}

// override says how much of the policy is not in force, though it is accepted.
func (f *facts) override() (Override, string) {
	message := sentences(f.superseded.String(), f.faults.String(), f.refusals.String(), f.conflicted.String(),
		f.problems.String())
	switch lost := f.overridden + f.failed; {
	case f.rules > 0 && f.rules == lost+f.refused:
		return OverrideFull, bounded(message)
	case lost > 0 || f.partly+f.refused+f.conflicted.count+f.problems.count > 0:
		return OverridePartial, bounded(message)
	}
	return OverrideNone, ""
}

// ancestor is what is to be written.
func (f *facts) ancestor(p *policy) Ancestor {
	a := Ancestor{Ref: f.key.ref(), Accepted: f.accepted(p), ResolvedRefs: f.resolved(), Controller: f.controller}
	if a.Accepted.Reason == string(gatewayv1.PolicyReasonAccepted) {
		a.Override, a.OverrideMessage = f.override()
		a.Resources = append([]string{feed.PolicyResource(p.name)}, f.resources...)
	}
	return a
}

// sentences joins what is not empty.
func sentences(list ...string) string {
	var out []string
	for _, s := range list {
		if s != "" {
			out = append(out, s)
		}
	}
	return strings.Join(out, " ")
}

func quoted(s string) string { return strconv.Quote(s) }

// among says which names there are.
func among(names []string) string {
	if len(names) == 0 {
		return "; none has a name."
	}
	const most = 20
	rest := ""
	if len(names) > most {
		rest = " and " + strconv.Itoa(len(names)-most) + " more"
		names = names[:most]
	}
	return "; there are " + strings.Join(names, ", ") + rest + "."
}

func policyKey(p *policy) ancestorKey {
	return ancestorKey{v1alpha1.GroupName, "CachePolicy", p.object.Namespace, p.object.Name}
}

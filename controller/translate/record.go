package translate

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/weirproxy/weir/cachepolicy"
)

// record puts down what the decision means for each policy.
func (t *translation) record(r *placed, d *decision) {
	for i := range d.units {
		u := &d.units[i]
		for j, p := range u.chain.policies {
			if d.rule.repeats >= 0 && j < len(u.chain.policies)-1 {
				continue // only who means this rule has to know
			}
			f := p.at(u.place.key, u.place.controller())
			f.rules++
			switch {
			case d.rule.repeats >= 0:
				f.overridden++
				f.superseded.add(d.rule, func() string {
					return r.describe(d.rule) + " is never reached: it has the matches of rule " +
						strconv.Itoa(d.rule.repeats) + "."
				})
			case u.refusal != nil:
				f.refused++
				if f.refusal == nil {
					f.refusal = u.refusal
				}
				f.refusals.once(u.refusal.Message)
			case u.fault != "":
				f.failed++
				if u.chain.own && j == len(u.chain.policies)-1 {
					f.failedOwn++
				}
				f.faults.add(d.rule, func() string {
					return "On " + r.describe(d.rule) + " no policy is in force: " + u.fault
				})
			default:
				f.inForce(r, d, u, p)
			}
		}
	}
}

// inForce puts down how much of a policy is in force on a rule.
func (f *facts) inForce(r *placed, d *decision, u *unit, p *policy) {
	w := d.winner.chain
	at := slices.Index(w.policies, p)
	switch {
	case at >= 0:
	case sameValues(w.compiled, u.chain.compiled):
		w, at = u.chain, slices.Index(u.chain.policies, p) // no matter whose they are
	default:
		f.overridden++
		f.superseded.add(d.rule, func() string {
			return "On " + r.describe(d.rule) + " the policies at " + d.winner.place.describe() +
				" hold, which comes first: a request does not tell where it came in."
		})
		return
	}
	extent := w.extents[at]
	switch extent {
	case OverrideNone:
	case OverrideFull:
		f.overridden++
	case OverridePartial:
		f.partly++
	}
	if extent != OverrideNone {
		f.superseded.add(d.rule, func() string {
			extent := "in part"
			if w.extents[at] == OverrideFull {
				extent = "wholly"
			}
			return "On " + r.describe(d.rule) + " it is superseded " + extent + " by " +
				strings.Join(w.superseders(at), ", ") + "."
		})
	}
	f.served(r.resource)
	f.notes.once(u.guard.Note)
	if d.rule.weighted {
		f.weighted.add(d.rule, func() string { return r.describe(d.rule) })
	}
}

// describe is a place in messages.
func (p *place) describe() string {
	if p.listener == nil {
		return p.key.String()
	}
	return p.key.String() + ", listener " + p.listener.name
}

// sameValues reports whether two policies do the same, whatever they are called.
func sameValues(a, b *cachepolicy.Policy) bool {
	if a == b {
		return true
	}
	x, y := *a, *b
	x.Namespace, x.Name, y.Namespace, y.Name = "", "", "", ""
	return reflect.DeepEqual(x, y)
}

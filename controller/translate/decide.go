package translate

import (
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy"
)

// unit is a rule at a place, where policies claim it.
type unit struct {
	place *place
	chain *chain
	guard Guard
	// refusal and fault are why no policy may be in force here; the fault is a sentence,
	// the chain's own or that of another place.
	refusal *Condition
	fault   string
}

// live reports whether the policies of the unit can be in force.
func (u *unit) live() bool { return u.refusal == nil && u.fault == "" }

// named reports whether it is, or may be, the name of the route that tells the rule.
func (u *unit) named() bool {
	h := u.place.handler()
	return u.place.listener != nil && (h == nil || h.RouteNames == RouteNamesEnvoyGateway)
}

// liveByName reports whether the name of the rule's route may lead to the policies.
func (u *unit) liveByName() bool { return u.live() && u.named() }

// decision is what holds on a rule.
type decision struct {
	rule   *rule
	units  []unit
	winner *unit // whose chain is in force at all live units; nil: none is
}

// decide says which policies are in force on a rule. What tells the data plane which
// rule it is, the name of its route in Envoy or its scope, does not tell by which
// Gateway a request came. So where its places have different policies, those of the
// first place hold everywhere, that of the oldest Gateway.
func (t *translation) decide(r *placed, u *rule, whole *claim) decision {
	d := decision{rule: u}
	var named *claim
	if u.name != "" && r.rule(u.name) == u {
		named = t.claims[Target{r.target.Kind, r.target.Namespace, r.target.Name, u.name}]
	}
	for i := range r.places {
		p := &r.places[i]
		claims := [levels]*claim{2: whole, 3: named}
		if p.listener != nil {
			claims[0], claims[1] = p.listener.gateway.claim, p.listener.claim
		}
		if c := t.chainOf(claims); c != nil {
			d.units = append(d.units, unit{place: p, chain: c, fault: c.fault})
		}
	}
	if u.repeats >= 0 {
		if named == nil {
			d.units = nil
		}
		return d
	}
	for i := range d.units {
		t.guard(r, u, &d.units[i])
	}
	d.widen(r)
	d.agree(r)
	d.winner = d.first((*unit).live)
	return d
}

// refuse keeps every policy from being in force.
func (d *decision) refuse(r *placed, reason, why string) {
	d.winner = nil
	c := no(reason, "On "+r.describe(d.rule)+" no policy is in force: "+why)
	for i := range d.units {
		if d.units[i].live() {
			d.units[i].refusal = &c
		}
	}
}

// first is the first unit of which something is so; nil: none.
func (d *decision) first(so func(*unit) bool) *unit {
	for i := range d.units {
		if so(&d.units[i]) {
			return &d.units[i]
		}
	}
	return nil
}

// guard finds out whether a policy may be in force on a rule at a place.
func (t *translation) guard(r *placed, u *rule, n *unit) {
	if u.problem != "" {
		c := no(ReasonUnsupported, "On "+r.describe(u)+" no policy is in force: "+u.problem)
		n.refusal = &c
		return
	}
	if n.place.listener == nil && n.chain.fault == "" &&
		n.chain.compiled.ServerAuthorization != cachepolicy.ServerAuthorizationSkipOnHit {
		c := no(ReasonServerAuthorization, r.describe(u)+" is served to the callers of "+n.place.key.String()+
			": a hit in the caller's sidecar would skip the authorization on the server's side. "+
			"If that is wanted, set spec.mesh.serverAuthorization to SkipOnHit.")
		n.refusal = &c
		return
	}
	if n.guard = t.guardAt(r, u, n.place); n.guard.RefuseReason != "" {
		c := no(n.guard.RefuseReason, n.guard.RefuseMessage)
		n.refusal = &c
	}
}

// guardAt is what the attachments know of a rule at a place.
func (t *translation) guardAt(r *placed, u *rule, p *place) Guard {
	if len(t.guards) == 0 {
		return Guard{}
	}
	targets := make([]Target, 0, levels)
	if u.name != "" {
		targets = append(targets, Target{r.target.Kind, r.target.Namespace, r.target.Name, u.name})
	}
	targets = append(targets, r.target)
	if p.listener != nil {
		targets = append(targets, Target{kindGateway, p.key.namespace, p.key.name, p.listener.name})
	}
	targets = append(targets, Target{Kind: p.key.kind, Namespace: p.key.namespace, Name: p.key.name})
	return t.guards.of(p.controller(), targets...)
}

// widen takes what keeps policies from being in force at one Gateway whose routes are
// told by their names to the others: the rule has one name in all of them, and the
// filter may be there for the sake of other rules.
func (d *decision) widen(r *placed) {
	from := d.first(func(u *unit) bool { return u.named() && !u.live() })
	if from == nil {
		return
	}
	for i := range d.units {
		u := &d.units[i]
		switch {
		case !u.named() || !u.live():
		case from.refusal != nil:
			c := no(from.refusal.Reason, from.refusal.Message+" "+r.String()+" is attached to "+
				from.place.describe()+" too, and a request does not tell where it came in.")
			u.refusal = &c
		default:
			u.fault = from.fault
		}
	}
}

// agree finds places whose policies do not do together: what one of them keeps apart,
// the other would share.
func (d *decision) agree(r *placed) {
	w := d.first((*unit).live)
	if w == nil {
		return
	}
	other := d.first(func(u *unit) bool { return u.live() && differsIn(w.chain.compiled, u.chain.compiled) != "" })
	if other == nil {
		return
	}
	d.refuse(r, string(gatewayv1.PolicyReasonConflicted), "the policies at "+w.place.describe()+" and "+
		other.place.describe()+" differ in "+differsIn(w.chain.compiled, other.chain.compiled)+
		", and a request does not tell where it came in. Give them the same, or each Gateway a route of its own.")
}

// differsIn names the field by which two policies, taken for each other, would cache or
// share what the other does not.
func differsIn(a, b *cachepolicy.Policy) string {
	switch {
	case a == b:
	case a.Mode != b.Mode:
		return "spec.mode"
	case a.Key.Hash != b.Key.Hash:
		return "spec.key"
	case a.TTL.Origin != b.TTL.Origin:
		return "spec.ttl.origin"
	case a.Storage.RequestCookies != b.Storage.RequestCookies:
		return "spec.storage.requestCookies"
	}
	return ""
}

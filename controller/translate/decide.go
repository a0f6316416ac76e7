package translate

import (
	"slices"
	"strconv"
	"strings"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/cachepolicy/feed"
)

// unit is a rule at a place, where policies claim it.
type unit struct {
	place   *place
	chain   *chain
	guard   Guard
	refusal *Condition // why no policy may be in force here
}

// live reports whether the policies of the unit can be in force.
func (u *unit) live() bool { return u.refusal == nil && u.chain.fault == "" }

// decision is what holds on a rule.
type decision struct {
	rule   *rule
	units  []unit
	winner *unit // whose chain is in force at all live units; nil: none is
	fault  string
}

// decide says which policies are in force on a rule. Where its places have different
// ones, those of the first place hold everywhere, that of the oldest Gateway: neither
// the name of the rule's route in Envoy nor its scope tell by which Gateway a request
// came.
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
			d.units = append(d.units, unit{place: p, chain: c})
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
	for i := range d.units {
		if d.units[i].live() {
			d.winner = &d.units[i]
			break
		}
	}
	return d
}

// guard finds out whether a policy may be in force on a rule at a place.
func (t *translation) guard(r *placed, u *rule, n *unit) {
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
	return t.guards.of(p.controller(), append(targets, Target{Kind: p.key.kind, Namespace: p.key.namespace, Name: p.key.name})...)
}

// widen refuses a rule at all Gateways of Envoy Gateway where it is refused at one of
// them and a policy targets the route: what is attached to a route is so at all its
// parents.
func (d *decision) widen(r *placed) {
	refused := slices.IndexFunc(d.units, func(u unit) bool {
		return u.refusal != nil && u.place.listener != nil && u.chain.byRoute && u.named()
	})
	if refused < 0 {
		return
	}
	from := &d.units[refused]
	for i := range d.units {
		if u := &d.units[i]; u.refusal == nil && u.chain.byRoute && u.named() {
			c := no(from.refusal.Reason, from.refusal.Message+" "+r.String()+" is attached to "+
				from.place.key.String()+" too, and the filter is attached to routes as a whole.")
			u.refusal = &c
		}
	}
}

// named reports whether it is the name of the route that tells the policy.
func (u *unit) named() bool {
	h := u.place.handler()
	return h != nil && h.RouteNames == RouteNamesEnvoyGateway
}

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
			case d.fault != "" || u.chain.fault != "":
				f.failed++
				if d.fault != "" || u.chain.own && j == len(u.chain.policies)-1 {
					f.failedOwn++
				}
				f.faults.add(d.rule, func() string {
					return "On " + r.describe(d.rule) + " no policy is in force: " + d.fault + u.chain.fault
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
	if at < 0 {
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

// feedRule is what the data plane is told of a rule.
func (t *translation) feedRule(r *placed, d *decision) feed.Rule {
	out := feed.Rule{Policies: []string{}, Scope: d.rule.scope, Matches: d.rule.matches}
	if !r.created.IsZero() {
		out.Created = r.created.Unix()
	}
	if t.named(r) {
		out.EnvoyRoutes = []string{"httproute/" + r.target.Namespace + "/" + r.target.Name + "/rule/" +
			strconv.Itoa(d.rule.index) + "/*"}
	}
	if d.winner == nil {
		hosts := make([][]string, len(r.places))
		for i := range r.places {
			hosts[i] = r.places[i].hosts
		}
		out.Hosts = union(hosts)
		return out
	}
	out.Policies = d.winner.chain.names
	hosts := make([][]string, 0, len(d.units))
	for i := range d.units {
		if d.units[i].live() {
			hosts = append(hosts, d.units[i].place.hosts)
		}
	}
	out.Hosts = union(hosts)
	out.Entrances = t.entrancesOf(d)
	out.MessageTimeoutMillis, out.MaxMessageTimeoutMillis = d.timeouts()
	return out
}

// named reports whether Envoy's route names tell the rules of a route.
func (t *translation) named(r *placed) bool {
	return r.target.Kind == kindHTTPRoute && (t.anyController || slices.ContainsFunc(r.places, func(p place) bool {
		h := p.handler()
		return h != nil && h.RouteNames == RouteNamesEnvoyGateway
	}))
}

// timeouts are the shortest that the filter is configured with at the rule's places.
func (d *decision) timeouts() (message, longest int64) {
	least := func(a, b int64) int64 {
		if a == 0 || b > 0 && b < a {
			return b
		}
		return a
	}
	for i := range d.units {
		h := d.units[i].place.handler()
		if h == nil || !d.units[i].live() {
			continue
		}
		m, x := h.MessageTimeout, h.MaxMessageTimeout
		if h.HoldMargin > 0 {
			m = d.winner.chain.longest + h.HoldMargin
			x = m
		}
		message, longest = least(message, m.Milliseconds()), least(longest, x.Milliseconds())
	}
	return message, longest
}

// union returns what is in any of the lists, sorted; none where one of them is empty,
// which stands for every host.
func union(lists [][]string) []string {
	var all []string
	for _, list := range lists {
		if len(list) == 0 {
			return nil
		}
		all = append(all, list...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

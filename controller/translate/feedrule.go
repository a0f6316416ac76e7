package translate

import (
	"slices"
	"strconv"

	"github.com/weirproxy/weir/cachepolicy/feed"
)

// feedRule is what the data plane is told of a rule.
func (t *translation) feedRule(r *placed, d *decision) feed.Rule {
	out := feed.Rule{Policies: []string{}, Scope: d.rule.scope, Matches: d.rule.matches}
	if !r.created.IsZero() {
		out.Created = r.created.Unix()
	}
	if t.named(r) && (d.winner == nil || d.first((*unit).liveByName) != nil) {
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

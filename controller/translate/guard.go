package translate

import (
	"cmp"
	"slices"
	"strings"
)

// guards are the Guards by target, each list in an order that does not depend on that
// of the Input.
type guards map[Target][]*Guard

func newGuards(list []Guard) guards {
	out := make(guards, len(list))
	for i := range list {
		out[list[i].Target] = append(out[list[i].Target], &list[i])
	}
	for _, same := range out {
		slices.SortFunc(same, func(a, b *Guard) int {
			return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.RefuseMessage, b.RefuseMessage),
				cmp.Compare(a.RefuseReason, b.RefuseReason), cmp.Compare(a.Note, b.Note))
		})
	}
	return out
}

// of returns what holds at Gateways of a controller for targets of falling specificity.
func (g guards) of(controller string, targets ...Target) Guard {
	var held Guard
	var done []string // classes of which a more specific target has said all
	for _, t := range targets {
		var closed []string
		for _, found := range g[t] {
			if found.Controller != "" && found.Controller != controller || slices.Contains(done, found.Class) {
				continue
			}
			held.add(found)
			if !found.Inherits {
				closed = append(closed, found.Class)
			}
		}
		done = append(done, closed...)
	}
	return held
}

// add is what holds where another Guard holds, too.
func (g *Guard) add(other *Guard) {
	if g.RefuseReason == "" {
		g.RefuseReason, g.RefuseMessage = other.RefuseReason, other.RefuseMessage
	}
	if !strings.Contains(g.Note, other.Note) {
		g.Note = strings.TrimSpace(g.Note + " " + other.Note)
	}
	g.NoDetachedFetch = g.NoDetachedFetch || other.NoDetachedFetch
}

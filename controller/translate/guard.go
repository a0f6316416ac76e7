package translate

import (
	"cmp"
	"slices"
	"strings"
)

// guards are the Guards by target.
type guards map[Target]Guard

func newGuards(list []Guard) guards {
	out := make(guards, len(list))
	sorted := slices.SortedFunc(slices.Values(list), func(a, b Guard) int {
		return cmp.Or(cmp.Compare(a.RefuseMessage, b.RefuseMessage), cmp.Compare(a.RefuseReason, b.RefuseReason),
			cmp.Compare(a.Note, b.Note))
	})
	for _, g := range sorted {
		if before, ok := out[g.Target]; ok {
			inherits := before.Inherits && g.Inherits
			g = before.and(g)
			g.Inherits = inherits
		}
		out[g.Target] = g
	}
	return out
}

// and is what holds where both hold. Whether more is to be asked, other says.
func (g Guard) and(other Guard) Guard {
	if g.RefuseReason == "" {
		g.RefuseReason, g.RefuseMessage = other.RefuseReason, other.RefuseMessage
	}
	if !strings.Contains(g.Note, other.Note) {
		g.Note = strings.TrimSpace(g.Note + " " + other.Note)
	}
	g.NoDetachedFetch = g.NoDetachedFetch || other.NoDetachedFetch
	g.Inherits = other.Inherits
	return g
}

// of returns what holds for targets of falling specificity.
func (g guards) of(targets ...Target) Guard {
	held := Guard{Inherits: true}
	for _, t := range targets {
		if found, ok := g[t]; ok && held.Inherits {
			held = held.and(found)
		}
	}
	return held
}

package cachepolicy

import (
	"maps"
	"slices"
	"strings"
)

// enforce makes a rule findable.
func (a *application) enforce(r *rule) {
	a.scopes.add(r.binding.Scope, r)
	for _, name := range r.exact {
		a.names.add(name, r)
	}
	for _, prefix := range r.prefixes {
		a.prefixes.add(prefix, r)
		a.depths[strings.Count(prefix, "/")]++
	}
	a.hosts.add(r)
	if r.chain != nil {
		r.chain.uses++
	}
	if b := r.bound(); b != nil {
		a.requeued = a.queries.add(b) || a.requeued
	}
}

// retire makes the rules of a route not findable any more.
func (a *application) retire(state *routeState) {
	for _, r := range state.rules {
		a.scopes.remove(r.binding.Scope, r)
		for _, name := range r.exact {
			a.names.remove(name, r)
		}
		for _, prefix := range r.prefixes {
			a.prefixes.remove(prefix, r)
			a.depths[strings.Count(prefix, "/")]--
		}
		a.hosts.remove(r)
		if r.chain != nil {
			r.chain.uses--
			a.left = append(a.left, r.chain)
		}
		if b := r.bound(); b != nil {
			a.requeued = a.queries.remove(b) || a.requeued
		}
	}
	state.rules = nil
}

// sweep forgets the chains that no rule is under any more.
func (a *application) sweep() {
	for _, c := range a.left {
		if c.uses > 0 {
			continue
		}
		delete(a.chains, chainKey(c.names))
		for _, name := range c.names {
			delete(a.chainsOf[name], c)
			if len(a.chainsOf[name]) == 0 {
				delete(a.chainsOf, name)
			}
		}
	}
}

// finish returns the Set of what is in force now.
func (a *application) finish() *Set {
	a.sweep()
	s := &Set{
		byName: a.byName.done(), byScope: a.scopes.done(), byRoute: a.names.done(), byPrefix: a.prefixes.done(),
		hosts: a.hosts.done(), queries: a.set.queries, size: len(a.policies), fed: true,
	}
	for depth, n := range a.depths {
		if n > 0 {
			s.depths |= 1 << depth
		}
	}
	if a.requeued {
		s.queries = a.queries.list()
	}
	if s.entrances = a.set.entrances; a.moved {
		s.entrances = slices.Collect(maps.Values(a.entrances))
	}
	a.set = s
	a.Table.set = s
	return s
}

// claims is an index of rules by a name that several may claim: the first by
// compareRules has it.
type claims struct {
	byName map[string][]*rule
	index  index[*Binding]
	edit   *indexEdit[*Binding] // nil: nothing changed
}

func newClaims() claims { return claims{byName: map[string][]*rule{}} }

func (c *claims) add(name string, r *rule) {
	list := c.byName[name]
	at, _ := slices.BinarySearchFunc(list, r, compareRules)
	c.put(name, slices.Insert(list, at, r))
}

func (c *claims) remove(name string, r *rule) {
	c.put(name, slices.DeleteFunc(c.byName[name], func(have *rule) bool { return have == r }))
}

func (c *claims) put(name string, list []*rule) {
	if c.edit == nil {
		c.edit = c.index.edit()
	}
	if len(list) == 0 {
		delete(c.byName, name)
		c.edit.remove(name)
		return
	}
	c.byName[name] = list
	c.edit.set(name, list[0].bound())
}

func (c *claims) done() index[*Binding] {
	if c.edit != nil {
		c.index, c.edit = c.edit.done(), nil
	}
	return c.index
}

package cachepolicy

import (
	"maps"
	"slices"
	"strings"
)

// enforce makes a rule findable.
func (a *application) enforce(r *rule) {
	r.slot = a.inForce.take()
	a.scopes.add(r.base.Scope, r)
	for _, name := range r.exact {
		a.names.add(name, r)
	}
	for _, prefix := range r.prefixes {
		a.prefixes.add(prefix, r)
		a.depths[strings.Count(prefix, "/")]++
	}
	a.hosts.add(r)
	if len(r.policies) == 0 {
		return
	}
	r.chain = a.chain(r.policies)
	tenant := r.base.Namespace
	if r.chain.tenants[tenant]++; r.chain.tenants[tenant] == 1 && r.chain.policy != nil {
		a.requeued = a.queries.add(tenant, r.chain.policy) || a.requeued
	}
}

// retire makes the rules of a route not findable any more.
func (a *application) retire(state *routeState) {
	for _, r := range state.rules {
		a.inForce.release(r.slot)
		a.scopes.remove(r.base.Scope, r)
		for _, name := range r.exact {
			a.names.remove(name, r)
		}
		for _, prefix := range r.prefixes {
			a.prefixes.remove(prefix, r)
			a.depths[strings.Count(prefix, "/")]--
		}
		a.hosts.remove(r)
		if r.chain != nil {
			a.leave(r.chain, r.base.Namespace)
		}
	}
	state.rules = nil
}

// leave takes a rule off its chain.
func (a *application) leave(c *chain, tenant string) {
	if c.tenants[tenant]--; c.tenants[tenant] > 0 {
		return
	}
	delete(c.tenants, tenant)
	a.left = append(a.left, c)
	if c.policy != nil {
		a.requeued = a.queries.remove(tenant, c.policy) || a.requeued
	}
}

// sweep forgets the chains that no rule is under any more.
func (a *application) sweep() {
	for _, c := range a.left {
		if len(c.tenants) > 0 {
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
		byName: a.byName.done(), byScope: a.scopes.done(), names: a.names.done(), prefixes: a.prefixes.done(),
		hosts: a.hosts.done(), inForce: a.inForce.slots, queries: a.set.queries, size: len(a.policies), fed: true,
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
	index  index[*rule]
	edit   *indexEdit[*rule] // nil: nothing changed
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
	c.edit.set(name, list[0])
}

func (c *claims) done() index[*rule] {
	if c.edit != nil {
		c.index, c.edit = c.edit.done(), nil
	}
	return c.index
}

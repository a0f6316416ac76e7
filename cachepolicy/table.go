package cachepolicy

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/weirproxy/weir/cachepolicy/feed"
	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
)

// Change is a resource of a feed that came, or, without an object, that is gone.
type Change struct {
	Name   string
	Object feed.Object
}

// Table makes Sets of what a feed says, each from the one before: the work is in
// proportion to the change. Good resources come into force; one that is at fault
// leaves what was in force under its name. Not safe for concurrent use; the Sets are.
type Table struct {
	policies  map[string]*policyState // by namespace/name
	entrances map[string]*Entrance    // by name of resource
	routes    map[string]*routeState  // by name of resource
	chains    map[string]*chain
	chainsOf  map[string]map[*chain]struct{}      // by policy
	users     map[string]map[*routeState]struct{} // by name of the policy's or entrance's resource

	scopes, names, prefixes claims
	depths                  [maxPrefixDepth + 1]int // prefixes by their slashes
	inForce                 slotsEdit
	queries                 queryCount
	set                     *Set
}

// policyState is a policy in force.
type policyState struct {
	spec  *v1alpha1.CachePolicySpec
	alone *Binding // for streams that name the policy and nothing else; nil: it cannot stand alone
}

// routeState is a route.
type routeState struct {
	name     string
	template []*rule // of the last good resource
	rules    []*rule // in force: the template, once it is
	fresh    bool    // the template is not in force yet
	refused  error   // why the resource that came last is not the template
}

// NewTable returns a Table of nothing.
func NewTable() *Table {
	return &Table{
		policies: map[string]*policyState{}, entrances: map[string]*Entrance{}, routes: map[string]*routeState{},
		chains: map[string]*chain{}, chainsOf: map[string]map[*chain]struct{}{},
		users:  map[string]map[*routeState]struct{}{},
		scopes: newClaims(), names: newClaims(), prefixes: newClaims(), queries: queryCount{},
		set: &Set{fed: true},
	}
}

// Apply takes changes into force. It returns the new Set and, for each resource that
// changed or whose standing may have, what is wrong with it: nil is that it is in
// force as it came.
func (t *Table) Apply(changes []Change) (*Set, map[string]error) {
	a := &application{
		Table: t, verdicts: make(map[string]error, len(changes)), dirty: map[*routeState]struct{}{},
		byName: t.set.byName.edit(), hosts: t.set.hosts.edit(),
	}
	a.inForce.edit()
	for i := range changes {
		a.applyPolicyOrEntrance(&changes[i])
	}
	for i := range changes {
		a.applyRoute(&changes[i])
	}
	for state := range a.dirty {
		a.rebuild(state)
	}
	return a.finish(), a.verdicts
}

// application is one call of Apply.
type application struct {
	*Table
	verdicts map[string]error
	dirty    map[*routeState]struct{}
	byName   *indexEdit[*Binding]
	hosts    *hostsEdit
	left     []*chain // that a rule is not under any more
	requeued bool     // the list of query rules is another
	moved    bool     // the entrances are others
}

func (a *application) applyPolicyOrEntrance(c *Change) {
	switch o := c.Object.(type) {
	case *feed.Policy:
		a.verdicts[c.Name] = a.putPolicy(c.Name, o)
	case *feed.Entrance:
		e, err := newEntrance(o)
		if a.verdicts[c.Name] = err; err == nil {
			a.entrances[c.Name], a.moved = e, true
			a.touch(c.Name)
		}
	case nil:
		if name, ok := strings.CutPrefix(c.Name, feed.PolicyResource("")); ok {
			a.removePolicy(name)
		} else if a.entrances[c.Name] != nil {
			delete(a.entrances, c.Name)
			a.moved = true
		}
		a.touch(c.Name)
		a.verdicts[c.Name] = nil
	}
}

// touch marks the routes that name a resource.
func (a *application) touch(resource string) {
	for state := range a.users[resource] {
		a.dirty[state] = struct{}{}
	}
}

func (a *application) putPolicy(resource string, p *feed.Policy) error {
	if errs := Validate(&p.Spec); len(errs) > 0 {
		return FieldErrors(errs)
	}
	name := p.Namespace + "/" + p.Name
	a.removePolicy(name)
	state := &policyState{spec: &p.Spec}
	if alone, err := Compile(p.Namespace, p.Name, &p.Spec); err == nil {
		state.alone = &Binding{Policy: alone, Scope: p.Namespace + "/policy/" + p.Name, Fed: true}
		a.byName.set(name, state.alone)
		a.requeued = a.queries.add(p.Namespace, alone) || a.requeued
	}
	a.policies[name] = state
	a.touch(resource)
	return nil
}

func (a *application) removePolicy(name string) {
	if old, ok := a.policies[name]; ok && old.alone != nil {
		a.byName.remove(name)
		a.requeued = a.queries.remove(old.alone.Policy.Namespace, old.alone.Policy) || a.requeued
	}
	delete(a.policies, name)
	for c := range a.chainsOf[name] {
		c.stale = true
	}
}

// newEntrance checks an entrance.
func newEntrance(in *feed.Entrance) (*Entrance, error) {
	e := &Entrance{Name: in.Resource(), Address: in.Address, Scheme: in.Scheme, CA: in.CA}
	if host, port, err := net.SplitHostPort(in.Address); err != nil || host == "" || port == "" {
		return nil, fmt.Errorf("address %s: want host:port", quote(in.Address))
	}
	if e.Scheme != "http" && e.Scheme != "https" {
		return nil, fmt.Errorf("scheme %s: want http or https", quote(e.Scheme))
	}
	if e.CA != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(e.CA)) {
		return nil, errors.New("ca: no certificate in it (PEM)")
	}
	for i, host := range in.Hosts {
		key, err := hostKey(host)
		switch {
		case err != nil:
			return nil, fmt.Errorf("hosts[%d]: %w", i, err)
		case key == anyHost:
			e.Hosts = nil
			return e, nil
		}
		e.Hosts = append(e.Hosts, asciiLower(host))
	}
	return e, nil
}

func (a *application) applyRoute(c *Change) {
	in, ok := c.Object.(*feed.Route)
	if !ok && (c.Object != nil || a.routes[c.Name] == nil) {
		return
	}
	state := a.routes[c.Name]
	if c.Object == nil {
		a.verdicts[c.Name] = nil
		a.retire(state)
		a.use(state, false)
		delete(a.routes, c.Name)
		delete(a.dirty, state)
		return
	}
	if state == nil {
		state = &routeState{name: c.Name}
		a.routes[c.Name] = state
	}
	template, err := compileRoute(in)
	state.refused = err
	if err == nil {
		a.use(state, false)
		state.template, state.fresh = template, true
		a.use(state, true)
	}
	a.dirty[state] = struct{}{}
}

// use notes, or forgets, what other resources a route names.
func (a *application) use(state *routeState, on bool) {
	for _, r := range state.template {
		for _, name := range r.policies {
			a.useOne(feed.PolicyResource(name), state, on)
		}
		for _, name := range r.entrances {
			a.useOne(feed.EntranceResource(name), state, on)
		}
	}
}

func (a *application) useOne(resource string, state *routeState, on bool) {
	users := a.users[resource]
	switch {
	case !on:
		delete(users, state)
		if len(users) == 0 {
			delete(a.users, resource)
		}
	case users == nil:
		a.users[resource] = map[*routeState]struct{}{state: {}}
	default:
		users[state] = struct{}{}
	}
}

// rebuild puts a route's rules in force with the policies and entrances there are
// now.
func (a *application) rebuild(state *routeState) {
	if state.fresh {
		a.retire(state)
		state.rules, state.fresh = state.template, false
		for _, r := range state.rules {
			a.enforce(r)
		}
	}
	var fault error
	for i, r := range state.rules {
		if err := a.bind(r); err != nil && fault == nil {
			fault = fmt.Errorf("rules[%d]: %w", i, err)
		}
	}
	a.verdicts[state.name] = errors.Join(fault, state.refused)
}

// bind puts in force what the policies and entrances of a rule are now. The error
// says that its policies cannot be.
func (a *application) bind(r *rule) error {
	old := a.inForce.at(r.slot)
	if r.chain == nil {
		return nil
	}
	a.compile(r.chain)
	if r.chain.policy == nil {
		if old != nil {
			a.inForce.put(r.slot, nil)
		}
		return r.chain.err
	}
	b := r.base
	b.Policy = r.chain.policy
	for _, name := range r.entrances {
		if e, ok := a.entrances[feed.EntranceResource(name)]; ok {
			b.Entrances = append(b.Entrances, e)
		}
	}
	if old == nil || old.Policy != b.Policy || !slices.Equal(old.Entrances, b.Entrances) {
		a.inForce.put(r.slot, &b)
	}
	return r.chain.err
}

// chain returns the chain of policies, one for all rules under these.
func (a *application) chain(names []string) *chain {
	key := chainKey(names)
	c, ok := a.chains[key]
	if ok {
		return c
	}
	c = &chain{names: slices.Clone(names), stale: true, tenants: map[string]int{}}
	a.chains[key] = c
	for _, name := range names {
		if a.chainsOf[name] == nil {
			a.chainsOf[name] = map[*chain]struct{}{}
		}
		a.chainsOf[name][c] = struct{}{}
	}
	return c
}

// compile compiles a chain, if a policy changed since.
func (a *application) compile(c *chain) {
	if !c.stale {
		return
	}
	before := c.policy
	c.compile(a.policies)
	if c.policy == before {
		return
	}
	for tenant := range c.tenants {
		if before != nil {
			a.requeued = a.queries.remove(tenant, before) || a.requeued
		}
		if c.policy != nil {
			a.requeued = a.queries.add(tenant, c.policy) || a.requeued
		}
	}
}

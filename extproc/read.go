package extproc

import (
	"time"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/flight"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/metrics"
	"github.com/weirproxy/weir/extproc/store"
)

// found is the store's answer, seen through the invalidations.
type found struct {
	store.Result
	// soft: a soft invalidation covers the entry, which is stale from now on.
	soft bool
	// beta is the weight of the early-refresh draw; 0 is off.
	beta float64
	// failing: refreshes of this key failed lately and the next is not due yet.
	failing bool
	// invalidated: there was an entry, and an invalidation covers it.
	invalidated bool
}

// onLookup decides what becomes of a request now that it is known what is stored.
func (m *machine) onLookup(f found, now time.Time) {
	m.vary = f.Vary
	m.why = forward{fwd: httpcache.FwdURIMiss}
	if f.Known && !f.invalidated {
		m.why.fwd = httpcache.FwdVaryMiss
	}
	e := f.Entry
	if e != nil {
		if forbidden, reason := httpcache.CredentialsForbidReuse(&m.req, e.Header, &m.rules); forbidden {
			e, m.why = nil, forward{fwd: httpcache.FwdBypass, detail: reason}
		}
	}
	if e == nil {
		m.fetch(now)
		return
	}
	age, lifetime := e.Age(now), e.Lifetime
	if f.soft && lifetime > age { // stale from now on, in all that follows
		lifetime = age - 1 // a ttl of 0 in Cache-Status would be that of a fresh one
		softened := *e
		softened.Lifetime = lifetime
		e = &softened
	}
	m.stored = e
	if validate, reason := httpcache.ReuseForbidden(&m.req, &m.rules, age, lifetime); validate {
		m.why = forward{fwd: httpcache.FwdRequest, detail: reason}
		m.fetch(now)
		return
	}
	m.why = forward{fwd: httpcache.FwdStale}
	action := cachepolicy.DecideRead(cachepolicy.ReadInput{
		Age: age, Lifetime: lifetime, Cost: e.Cost, WhileRevalidate: e.WhileRevalidate, IfError: e.IfError,
		Beta: f.beta, MaxLeadPercent: m.policy.XFetch.MaxLeadPercent,
		AlwaysValidate: e.ValidateAlways, U: m.facts.draw(),
	})
	if action > cachepolicy.ServeStaleAndRefresh && !e.ValidateAlways &&
		age-lifetime < httpcache.MaxStale(&m.req, e.Header, &m.rules) {
		action = cachepolicy.ServeStaleAndRefresh
	}
	m.act(action, f.failing, now)
}

// act carries out the decision of a read.
func (m *machine) act(action cachepolicy.ReadAction, failing bool, now time.Time) {
	switch action {
	case cachepolicy.ServeFresh:
		m.serveStored(hitOutcome(m.stored), now)
	case cachepolicy.ServeAndRefreshEarly, cachepolicy.ServeStaleAndRefresh:
		outcome := hitOutcome(m.stored)
		if action == cachepolicy.ServeStaleAndRefresh {
			outcome = metrics.OutcomeHitStale
		}
		if !failing && !m.refreshBehind() {
			m.state = stateJoin
			m.emit(effect{op: opTryLead, id: m.flightID(), outcome: outcome})
			return
		}
		m.serveStored(outcome, now)
	case cachepolicy.HoldThenStale:
		if failing {
			m.serveStored(metrics.OutcomeStaleIfError, now)
			return
		}
		m.fetchWithStale(now)
	default:
		m.fetch(now)
	}
}

// fetchWithStale fetches with a stale copy at hand that may stand in. A detached
// fetch is better where the copy can be validated, since the answer to this
// request is then made in the request phase, with its Content-Length and through
// all filters; and for softTimeout it must be one, which lives on when the stale
// copy is served. Else this request carries the fetch.
func (m *machine) fetchWithStale(now time.Time) {
	soft := m.softTimeout() > 0
	switch {
	case !m.holds() || !soft && !hasValidator(m.stored.Header):
		m.fetch(now)
	case m.refillable():
		m.state = stateJoin
		m.emit(effect{op: opJoinRefill, id: m.flightID(), at: m.joinDeadline()})
	default:
		if soft {
			m.emit(effect{op: opNote, note: noteSoftTimeoutInactive})
		}
		m.fetch(now)
	}
}

// refreshBehind starts a detached refill behind an answer and reports true; false
// if this very request has to carry the refresh, should it win the right to.
func (m *machine) refreshBehind() bool {
	if m.policy.Mode == cachepolicy.ModeShadow {
		return true
	}
	if m.refillable() {
		m.emit(effect{op: opRefresh, id: m.flightID()})
		return true
	}
	return !m.carries()
}

// refillable reports whether a detached fetch can be made of this request.
func (m *machine) refillable() bool { return m.facts.refill(m.binding, &m.req) }

// carries reports whether this request can carry a fetch that is stored: a GET
// for the whole that may go to the origin.
func (m *machine) carries() bool {
	return m.req.Method == "GET" && !m.req.Header.Has("range") && !httpcache.OnlyIfCached(&m.req, &m.rules)
}

// holds reports whether this request may wait for a fetch and be answered from it.
func (m *machine) holds() bool {
	return m.policy.Mode != cachepolicy.ModeShadow && m.canStream && m.carries()
}

// onTryLead: the request won the right to carry a refresh, or somebody else has it.
func (m *machine) onTryLead(won bool, outcome metrics.Outcome, now time.Time) {
	if m.pending != nil {
		m.onTryFill(won)
		return
	}
	if won {
		m.proceed(roleLead)
		return
	}
	m.serveStored(outcome, now)
}

// fetch brings the request to the origin, alone or coalesced with others.
func (m *machine) fetch(now time.Time) {
	if m.policy.Mode != cachepolicy.ModeShadow && httpcache.OnlyIfCached(&m.req, &m.rules) {
		m.answerError(504, metrics.OutcomeOnlyIfCached, reasonOnlyIfCached)
		return
	}
	switch {
	case m.facts.sight(m.policy).blind(now):
		m.emit(effect{op: opNote, note: noteModeUnusable})
		m.pass(metrics.OutcomeBypassMode)
	case m.req.Method == "HEAD":
		m.watch(now, m.why)
	case m.req.Header.Has("range"):
		m.pass(metrics.OutcomeBypassRequest)
	case m.credentials && m.stored == nil, m.policy.Coalescing.Scope == cachepolicy.ScopeOff, !m.holds():
		m.goOn(roleSolo, now)
	default:
		m.state = stateJoin
		m.emit(effect{op: opJoin, id: m.flightID(), at: m.joinDeadline()})
	}
}

// onJoin takes the flight's word on who fetches.
func (m *machine) onJoin(r flight.Role, now time.Time) {
	switch r {
	case flight.RoleLead:
		m.proceed(roleLead)
	case flight.RoleFollow:
		m.hold()
	case flight.RoleFull:
		m.waitedTooLong(now)
	default:
		m.why.detail = reasonUncacheableLately
		m.goOn(roleSolo, now)
	}
}

// watch lets the request go on and looks at the head of its answer only.
func (m *machine) watch(now time.Time, why forward) {
	m.why = why
	m.goOn(roleWatch, now)
}

// hitOutcome tells hits on stored failures from others.
func hitOutcome(e *store.Entry) metrics.Outcome {
	if e.Negative {
		return metrics.OutcomeHitNegative
	}
	return metrics.OutcomeHit
}

package extproc

import (
	"time"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/flight"
	"github.com/weirproxy/weir/extproc/metrics"
	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/wire"
)

// holdMargin is how long before Envoy's timeout a hold ends. Of a timeout too
// short for that, half is used.
const holdMargin = 200 * time.Millisecond

// maxRejoins bounds how often one request may change flights (each time because
// more became known of Vary).
const maxRejoins = 4

// usable is how much of a timeout of Envoy's a hold may take.
func usable(timeout time.Duration) time.Duration { return timeout - min(holdMargin, timeout/2) }

// filterTimeouts returns what Envoy's filter is configured with on a route: what the
// controller says of it, or else the process's flags.
func (f *facts) filterTimeouts(b *cachepolicy.Binding) (message, maxMessage time.Duration) {
	if b.MessageTimeout > 0 {
		return b.MessageTimeout, b.MaxMessageTimeout
	}
	return f.messageTimeout, f.maxMessageTimeout
}

// longestHold is how long a request may be held: one extension of the message
// timeout is possible, up to max_message_timeout.
func (m *machine) longestHold() time.Duration {
	return usable(max(m.facts.filterTimeouts(m.binding)))
}

// joinDeadline is when this request's wait ends at the latest.
func (m *machine) joinDeadline() time.Time {
	return m.arrived.Add(min(m.policy.Coalescing.MaxWait, m.longestHold()))
}

// hold holds the request: until news of the flight, until softTimeout if a stale
// copy may then stand in, or until the wait is over. Envoy is asked once for the
// time of the longest wait, since it grants one extension per phase.
func (m *machine) hold() {
	m.state = stateHold
	wait := m.policy.Coalescing.MaxWait
	if wait > m.longestHold() {
		m.emit(effect{op: opNote, note: noteHoldCapped})
	}
	end := m.joinDeadline()
	m.extendTimeout(end)
	m.softEnd = false
	if soft := m.softTimeout(); soft > 0 {
		if at := m.arrived.Add(soft); at.Before(end) && m.mayServeStale(at) {
			end, m.softEnd = at, true
		}
	}
	m.emit(effect{op: opTimer, at: end})
}

// softTimeout is how long this request waits before the stored stale copy may stand
// in for a slow origin; 0: it does not. A copy whose origin gave it no life at all
// (max-age=0) is to be validated, however long that takes.
func (m *machine) softTimeout() time.Duration {
	if m.stored == nil || m.stored.Lifetime <= 0 {
		return 0
	}
	return m.policy.Stale.SoftTimeout
}

// extendTimeout asks Envoy for the time until end, once: it grants one extension
// per phase.
func (m *machine) extendTimeout(end time.Time) {
	wait := end.Sub(m.arrived)
	message, maxMessage := m.facts.filterTimeouts(m.binding)
	if m.extended || wait <= usable(message) {
		return
	}
	m.extended = true
	m.send(wire.ExtendTimeout(min(wait+holdMargin, maxMessage)))
}

// onTimer ends a hold that brought no news in time.
func (m *machine) onTimer(now time.Time) {
	switch m.state {
	case stateQueue:
		m.overflow(now)
		return
	case stateHold:
	default:
		return
	}
	m.emit(effect{op: opLeave})
	if m.softEnd && m.mayServeStale(now) {
		m.serveStored(metrics.OutcomeStaleSlow, now)
		return
	}
	m.waitedTooLong(now)
}

// waitedTooLong does what coalescing.onTimeout says; the request never joins a
// flight again.
func (m *machine) waitedTooLong(now time.Time) {
	switch m.policy.Coalescing.OnTimeout {
	case cachepolicy.OnTimeoutStale:
		if m.mayServeStale(now) {
			m.serveStored(metrics.OutcomeStaleSlow, now)
			return
		}
	case cachepolicy.OnTimeoutUnavailable:
		m.answerError(504, metrics.OutcomeUnavailable, reasonWaitedTooLong)
		return
	}
	m.why.detail = reasonWaitedTooLong
	m.proceed(roleSolo)
}

// mayServeStale reports whether the stored copy may stand in for an origin that
// failed or is slow: it is inside its stale-if-error window, which is empty where
// the origin forbade it (RFC 9111 §4.2.4, RFC 5861 §4).
func (m *machine) mayServeStale(now time.Time) bool {
	return m.stored != nil && staleIfErrorAllowed(m.stored, now)
}

// staleIfErrorAllowed: a stored error stands in for none that the origin gives now.
func staleIfErrorAllowed(e *store.Entry, now time.Time) bool {
	if e.ValidateAlways || isFetchError(e.Status) {
		return false
	}
	age := e.Age(now)
	return age < e.Lifetime || age-e.Lifetime < max(e.IfError, e.WhileRevalidate)
}

// onNews goes on with a held request as its flight says.
func (m *machine) onNews(n flight.News, now time.Time) {
	if m.state != stateHold {
		return
	}
	m.emit(effect{op: opTimer})
	m.collapsed = m.refill == refillNone
	switch n.Kind {
	case flight.NewsAnswer:
		if n.Entry.Body.Err() != nil { // broke before we began: nothing is lost
			m.rejoin(n.Entry, now)
			return
		}
		m.serveFetched(n, now)
	case flight.NewsRejoin:
		m.rejoin(n.Entry, now)
	case flight.NewsLead:
		m.proceed(roleLead)
	case flight.NewsFailed:
		m.onFetchFailed(now)
	default:
		m.why.detail = reasonNotShareable
		m.goOn(roleSolo, now)
	}
}

// rejoin looks again, now that the answer said which fields select a variant.
func (m *machine) rejoin(e *store.Entry, now time.Time) {
	m.rejoins++
	if m.rejoins > maxRejoins {
		m.waitedTooLong(now)
		return
	}
	m.vary, m.refill = e.Vary, refillNone
	m.state = stateJoin
	m.emit(effect{op: opJoin, id: m.flightID(), at: m.joinDeadline()})
}

// onFetchFailed answers a follower whose flight failed: stale where that is
// allowed, else an error of weir's own; never the leader's private answer.
func (m *machine) onFetchFailed(now time.Time) {
	if m.mayServeStale(now) {
		m.serveStored(metrics.OutcomeStaleIfError, now)
		return
	}
	m.answerError(503, metrics.OutcomeUnavailable, reasonOriginFailed)
}

// onShed answers a request whose fetch is not to be made, because Redis does not
// answer.
func (m *machine) onShed(now time.Time) {
	if m.mayServeStale(now) {
		m.serveStored(metrics.OutcomeStaleIfError, now)
		return
	}
	m.answerError(503, metrics.OutcomeUnavailable, reasonFleetAway)
}

// onReplyDuringHold meets Envoy's own answer (its idle timeout ran out) while
// the request is held: it must be answered at once or the client waits again.
func (m *machine) onReplyDuringHold(msg *wire.Message, now time.Time) {
	m.emit(effect{op: opTimer})
	m.giveUp(reasonWaitedTooLong)
	if m.mayReplace(now) {
		m.replaceWithStale(m.storedStatus(m.stored, metrics.OutcomeStaleSlow, now), metrics.OutcomeStaleSlow, msg.Header, now)
		return
	}
	m.send(wire.Ack(wire.KindResponseHeaders))
	m.pass(metrics.OutcomeError)
}

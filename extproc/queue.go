package extproc

import (
	"time"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/metrics"
)

// turn is the answer to opAdmit.
type turn uint8

const (
	turnNow turn = iota
	turnQueued
	turnFull
)

// proceed brings the request to the origin when originLimits let it: leaders,
// and followers that waited too long. Those whose answer cannot be shared anyway
// are not counted; weir must not make less of an origin than it is without weir.
func (m *machine) proceed(r role) {
	m.role, m.state = r, stateQueue
	m.emit(effect{op: opAdmit})
}

// onAdmit takes the limiter's word. A request in the queue is held like one that
// follows a flight, and no longer.
func (m *machine) onAdmit(t turn, now time.Time) {
	switch t {
	case turnNow:
		m.emit(effect{op: opTimer})
		m.goOn(m.role, now)
	case turnQueued:
		end := m.joinDeadline()
		m.extendTimeout(end)
		m.emit(effect{op: opTimer, at: end})
	default:
		m.overflow(now)
	}
}

// overflow answers a request for which the origin has no room: stale if there is
// a copy that may stand in, else 503. Whoever follows it gets the same.
func (m *machine) overflow(now time.Time) {
	m.giveUp(reasonOverflow)
	if m.policy.OriginLimits.OnOverflow == cachepolicy.OnOverflowStale && m.mayServeStale(now) {
		m.serveStored(metrics.OutcomeStaleOverflow, now)
		return
	}
	m.answerError(503, metrics.OutcomeUnavailable, reasonOverflow)
}

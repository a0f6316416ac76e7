package extproc

import (
	"time"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/flight"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/metrics"
	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/wire"
)

// state is where in its life a stream is.
type state uint8

const (
	// stateStart: nothing has come yet.
	stateStart state = iota
	// stateLookup: the store was asked.
	stateLookup
	// stateJoin: the flight was asked.
	stateJoin
	// stateHold: the request is held; a flight's news or a timer goes on from here.
	stateHold
	// stateQueue: the request waits for its turn at the origin (originLimits).
	stateQueue
	// stateOrigin: the request went on; response_headers come next.
	stateOrigin
	// stateCopy: the response is copied as it passes.
	stateCopy
	// stateDone: nothing more will be said.
	stateDone
)

// role says for whom a request that went on to the origin asks.
type role uint8

const (
	// roleWatch: the answer is looked at (unsafe method, HEAD), never copied.
	roleWatch role = iota
	// roleSolo: for itself alone; a storable answer is stored all the same.
	roleSolo
	// roleLead: others wait for the answer.
	roleLead
)

// facts are what the machine has to know of the process. Read-only.
type facts struct {
	messageTimeout, maxMessageTimeout time.Duration
	// refill reports whether a detached refill of a request under a binding is
	// possible.
	refill func(b *cachepolicy.Binding, req *httpcache.Request) bool
	// sight returns what is known of whether Envoy shows responses under a policy.
	sight func(p *cachepolicy.Policy) *sight
	// draw returns a number uniform in (0, 1].
	draw func() float64
	// position returns the current position in the stream of invalidations.
	position func() uint64
}

// machine is the life of one ext_proc stream. Its methods named on… take what
// happened and the clock's reading, and leave what to do in out. Not safe for
// concurrent use.
type machine struct {
	facts   *facts
	state   state
	out     []effect
	counted bool

	binding *cachepolicy.Binding
	policy  *cachepolicy.Policy
	req     httpcache.Request
	rules   httpcache.Rules
	key     cachepolicy.Key
	arrived time.Time // of request_headers
	// canStream: Envoy takes a StreamedImmediateResponse in this mode.
	canStream bool
	// credentials: the request carries Authorization, or a cookie outside the key;
	// it shares an answer only where the origin consents (RFC 9111 §3.5).
	credentials bool
	// why is what Cache-Status says of a request that goes on.
	why forward

	// stored is what the store had: fresh, or stale and kept in case the origin fails.
	stored   *store.Entry
	vary     httpcache.Vary
	rejoins  int
	softEnd  bool // the hold ends by softTimeout, not by maxWait
	extended bool // Envoy was asked for more time

	role       role
	validators httpcache.Fields // ours, that were added to the request
	asked      time.Time        // when the request went on
	birth      uint64           // the invalidation position then
	fetching   bool             // the answer may be stored, and is not there yet
	pending    *pending         // an answer that waits for the right to be stored
	filling    *store.Entry
	publish    *effect // kept until it is proven that the copy comes
	copied     bool    // a body message came: the mode override works
	endless    bool    // no Content-Length says where the body ends
	collapsed  bool    // waited for another's fetch before going on
	// refill is how far the detached fetch came that this request started.
	refill refillState
}

// refillState is what a request knows of the detached fetch that it waits for.
type refillState uint8

const (
	// refillNone: it started none; if it waits, then for another's.
	refillNone refillState = iota
	// refillStarted: it started the one that it waits for.
	refillStarted
	// refillValidated: that one was answered 304.
	refillValidated
)

// onRefill takes news of the detached fetch that this request started.
func (m *machine) onRefill(s refillState) { m.refill = s }

// forward is the fwd part of Cache-Status (RFC 9211 §2.2).
type forward struct {
	fwd    string
	detail httpcache.Reason
}

func (m *machine) emit(e effect) { m.out = append(m.out, e) }

func (m *machine) send(r *wire.Reply) { m.emit(effect{op: opSend, reply: r}) }

// count counts the request under its one outcome.
func (m *machine) count(o metrics.Outcome) {
	if m.counted {
		return
	}
	m.counted = true
	m.emit(effect{op: opOutcome, outcome: o})
}

// fetchEnds counts a fetch of which no body is copied.
func (m *machine) fetchEnds(r metrics.FillResult) {
	if !m.fetching {
		return
	}
	m.fetching = false
	m.emit(effect{op: opFill, fill: r})
}

// pass lets Envoy carry on without us.
func (m *machine) pass(o metrics.Outcome) {
	m.count(o)
	m.finish()
}

func (m *machine) finish() {
	m.state = stateDone
	m.emit(effect{op: opClose})
}

// onMessage takes a message from Envoy.
func (m *machine) onMessage(msg *wire.Message, now time.Time) {
	switch m.state {
	case stateDone:
	case stateStart:
		m.onFirst(msg, now)
	case stateCopy:
		m.onCopied(msg)
	default:
		switch {
		case m.state == stateOrigin && (msg.Kind == wire.KindRequestBody || msg.Kind == wire.KindRequestTrailers):
			// A filter with request_body_mode STREAMED or BUFFERED wants every chunk acknowledged.
			m.send(wire.Ack(msg.Kind))
		case m.state == stateOrigin && (msg.Kind == wire.KindResponseBody || msg.Kind == wire.KindResponseTrailers):
			m.send(wire.Ack(msg.Kind))
			m.onUnseen(true)
			m.finish()
		case msg.Kind != wire.KindResponseHeaders:
			m.onUnexpected(msg)
		case m.waits():
			m.onReplyDuringHold(msg, now)
		default:
			m.onResponseHeaders(msg, now)
		}
	}
}

// onFirst takes the first message of a stream. That it is no request_headers has
// two reasons: Envoy made an answer before the request reached us, or its filter
// skips headers that the cache needs.
func (m *machine) onFirst(msg *wire.Message, now time.Time) {
	switch {
	case msg.Kind == wire.KindRequestHeaders:
		m.onRequestHeaders(msg, now)
	case msg.Kind == wire.KindResponseHeaders && msg.CodeDetails != viaUpstream:
		m.send(wire.Ack(msg.Kind))
		m.pass(metrics.OutcomeLocalReply)
	case msg.Kind == wire.KindNone:
		m.onUnexpected(msg)
	default:
		m.send(wire.Ack(msg.Kind))
		m.emit(effect{op: opNote, note: noteModeUnusable})
		m.pass(metrics.OutcomeBypassMode)
	}
}

// onCopied takes the next message of a response that is copied.
func (m *machine) onCopied(msg *wire.Message) {
	switch msg.Kind {
	case wire.KindResponseBody:
		m.onResponseBody(msg)
	case wire.KindResponseTrailers:
		m.onResponseTrailers()
	default:
		m.onUnexpected(msg)
	}
}

// onUnexpected meets a message that has no place here: a second request, or
// nothing known. Whatever is under way is given up, Envoy carries on.
func (m *machine) onUnexpected(msg *wire.Message) {
	m.giveUp(reasonProtocol)
	m.fetchEnds(metrics.FillFailed)
	if msg.Kind != wire.KindNone {
		m.send(wire.Ack(msg.Kind))
	}
	m.pass(metrics.OutcomeError)
}

// onEnd takes the end of the stream. When its client went away Envoy ends it; when
// it has nothing more to show, Envoy resets it.
func (m *machine) onEnd(reset bool) {
	if m.state == stateDone {
		return
	}
	if reset && m.unseen() {
		m.onUnseen(false)
	}
	switch {
	case m.leads(), m.state == stateCopy && m.filling != nil:
		m.emit(effect{op: opAbandon})
	default:
		m.giveUp(reasonClientGone)
	}
	m.fetchEnds(metrics.FillIncomplete)
	m.count(metrics.OutcomeCanceled)
	m.state = stateDone
}

// unseen reports whether a stream that is reset now lacks a response that was to
// be shown. Some Envoys may reset a stream when the client goes away, too: where
// heads of responses are shown, it is that.
func (m *machine) unseen() bool {
	switch m.state {
	case stateOrigin:
		return !m.facts.sight(m.policy).showsHeads()
	case stateCopy:
		return !m.copied
	default:
		return false
	}
}

// onUnseen meets a response that Envoy does not show: its filter skips the headers
// of responses, or ignored the mode override. The client gets its answer all the
// same. Followers go to the origin together, as they would one after another. But
// unless it is certain it may be a connection that broke, and is taken for that
// where it was proven that responses are shown.
func (m *machine) onUnseen(certain bool) {
	proven := m.facts.sight(m.policy).proven()
	m.emit(effect{op: opUnseen})
	if proven && !certain {
		return
	}
	if m.leads() {
		m.emit(effect{op: opRelease, reason: reasonMode, mark: true})
		m.role, m.publish, m.filling = roleSolo, nil, nil
	}
	m.emit(effect{op: opNote, note: noteResponseUnseen})
	m.fetchEnds(metrics.FillFailed)
	m.count(metrics.OutcomeBypassMode)
}

// giveUp ends what others may wait for, whatever the state.
func (m *machine) giveUp(reason httpcache.Reason) {
	switch {
	case m.state == stateHold:
		m.emit(effect{op: opLeave})
	case m.leads():
		m.emit(effect{op: opFail, reason: reason})
		m.publish, m.filling = nil, nil
	case m.state == stateCopy && m.filling != nil:
		m.emit(effect{op: opBreak, reason: reason})
		m.filling = nil
	}
}

// waits reports whether the request is held: for a flight or for its turn.
func (m *machine) waits() bool { return m.state == stateHold || m.state == stateQueue }

// leads reports whether others may wait for this request's answer, which is not
// there yet.
func (m *machine) leads() bool {
	return m.role == roleLead && (m.state == stateOrigin || m.state == stateQueue || m.publish != nil)
}

// flightID names the flight of this request: the primary key and, once Vary is
// known, the request's values of the fields it names.
func (m *machine) flightID() flight.ID {
	return flight.VariantID(&m.key, m.vary.Names, m.vary.Select(m.req.Header))
}

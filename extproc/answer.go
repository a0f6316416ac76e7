package extproc

import (
	"iter"
	"math"
	"strconv"
	"time"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/flight"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/metrics"
	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/wire"
)

// maxUnstreamed is the largest body that goes out in one message where Envoy
// takes no streamed answer; larger objects pass by there.
const maxUnstreamed = 1 << 20

// serveStored answers the request with what the store had.
func (m *machine) serveStored(o metrics.Outcome, now time.Time) {
	m.serve(m.stored, o, m.storedStatus(m.stored, o, now), now)
}

// serveFetched answers a request that waited with the answer of its flight:
// shared, or, where the news says why not, for this one alone.
func (m *machine) serveFetched(n flight.News, now time.Time) {
	if n.Reason == "" {
		if forbidden, reason := httpcache.CredentialsForbidReuse(&m.req, n.Entry.Header, &m.rules); forbidden {
			m.why = forward{fwd: httpcache.FwdBypass, detail: reason}
			m.goOn(roleSolo, now)
			return
		}
		o, s := m.fetchedStatus(n.Entry)
		m.serve(n.Entry, o, s, now)
		return
	}
	s := httpcache.CacheStatus{Fwd: m.why.fwd, FwdStatus: n.Entry.Status, Detail: string(n.Reason)}
	m.serve(n.Entry, metrics.OutcomeMissUncacheable, s, now)
}

// fetchedStatus is the outcome and the Cache-Status of an answer that was waited
// for: another's fetch, or a detached one that this request started itself.
func (m *machine) fetchedStatus(e *store.Entry) (metrics.Outcome, httpcache.CacheStatus) {
	s := httpcache.CacheStatus{Fwd: m.why.fwd}
	switch m.refill {
	case refillStarted:
		s.FwdStatus, s.Stored = e.Status, true
		return metrics.OutcomeMiss, s
	case refillValidated:
		s.FwdStatus, s.Stored = 304, true
		return metrics.OutcomeRevalidated, s
	default:
		s.Collapsed = true
		return metrics.OutcomeCoalesced, s
	}
}

// storedStatus is the Cache-Status of a hit: ttl is negative when it is stale.
func (m *machine) storedStatus(e *store.Entry, o metrics.Outcome, now time.Time) httpcache.CacheStatus {
	left := e.Lifetime - e.Age(now)
	s := httpcache.CacheStatus{Hit: true, TTL: int64(math.Floor(left.Seconds())), HasTTL: true}
	switch o {
	case metrics.OutcomeStaleIfError:
		s.Detail = string(reasonStaleIfError)
	case metrics.OutcomeStaleSlow:
		s.Detail = string(reasonStaleSlow)
	case metrics.OutcomeStaleOverflow:
		s.Detail = string(reasonOverflow)
	case metrics.OutcomeHitNegative:
		s.Detail = string(reasonNegative)
	}
	return s
}

// serve answers from the request phase, in the form that the request and Envoy's
// mode ask for, and ends the stream.
func (m *machine) serve(e *store.Entry, o metrics.Outcome, s httpcache.CacheStatus, now time.Time) {
	if m.policy.Mode == cachepolicy.ModeShadow {
		m.pass(metrics.OutcomeShadow)
		return
	}
	if !m.canStream && !(e.Body.Whole() && e.Body.Len() <= maxUnstreamed) {
		m.why = forward{fwd: httpcache.FwdBypass, detail: reasonMode}
		m.goOn(roleSolo, now)
		return
	}
	m.count(o)
	m.state = stateDone
	if e.Wire != nil && m.req.Method == "GET" && wantsWhole(m.req.Header, e) {
		m.emit(effect{op: opSend, reply: wire.Prepared(e.Wire, m.perHit(e, o, s, now))})
		m.emit(effect{op: opClose})
		return
	}
	m.answer(e, o, s, now)
}

// wantsWhole reports whether the answer to a GET is surely the whole: no part was
// asked for, and no condition says that the client has it.
func wantsWhole(req httpcache.Fields, e *store.Entry) bool {
	return !req.Has("range") && httpcache.EvaluatePreconditions(req, e.Header, e.Status) == httpcache.Full
}

// answer builds an answer on demand: 304, 206, 416, HEAD, or a body that is
// streamed because it is large or still arriving.
func (m *machine) answer(e *store.Entry, o metrics.Outcome, s httpcache.CacheStatus, now time.Time) {
	status, header := e.Status, withHitFields(e, s, now)
	var parts iter.Seq[[]byte]
	switch {
	case httpcache.EvaluatePreconditions(m.req.Header, e.Header, e.Status) == httpcache.NotModified:
		m.sendHead(wire.Answer{Status: 304, Header: httpcache.NotModifiedFields(header), Details: detailsHit}, o)
		return
	case e.Body.Whole() && status == 200 && m.req.Method == "GET":
		if p := selectRange(m.req.Header, e); p != nil {
			status, header, parts = p.status, p.header(header), p.body(e.Body)
		}
	}
	head := wire.Answer{Status: status, Header: header, Details: detailsHit}
	if parts == nil && e.Body.Whole() {
		parts = e.Body.Bytes(0, e.Body.Len())
	}
	switch {
	case m.req.Method == "HEAD" && !m.canStream && !bodiless(status):
		// Of an ImmediateResponse Envoy sends a HEAD all but the body.
		m.sendWhole(head, parts, o)
	case m.req.Method == "HEAD", bodiless(status), header.Get("content-length") == "0", status == 416:
		m.sendHead(head, o)
	case !m.canStream:
		m.sendWhole(head, parts, o)
	case status == 206:
		m.emit(effect{op: opStream, reply: m.logged(wire.StreamHead(head, false), o), parts: parts})
	default:
		m.emit(effect{op: opTail, reply: m.logged(wire.StreamHead(head, false), o), entry: e})
	}
}

// sendHead answers with a header block and no body: Envoy would write a body
// that we give onto the wire even for HEAD and 304.
func (m *machine) sendHead(a wire.Answer, o metrics.Outcome) {
	reply := wire.StreamHead(a, true)
	if !m.canStream {
		reply = wire.Immediate(a, nil)
	}
	m.emit(effect{op: opSend, reply: m.logged(reply, o)})
	m.emit(effect{op: opClose})
}

// sendWhole answers in one message, where no streamed answer is possible.
func (m *machine) sendWhole(a wire.Answer, parts iter.Seq[[]byte], o metrics.Outcome) {
	var body []byte
	for p := range parts {
		body = append(body, p...)
	}
	m.emit(effect{op: opSend, reply: m.logged(wire.Immediate(a, body), o)})
	m.emit(effect{op: opClose})
}

// answerError answers with an error of weir's own. Unless a fetch was made for the
// request that failed, it never went forward.
func (m *machine) answerError(status int, o metrics.Outcome, reason httpcache.Reason) {
	m.count(o)
	m.state = stateDone
	s := httpcache.CacheStatus{Detail: string(reason)}
	if m.collapsed || m.refill != refillNone {
		s.Fwd, s.Collapsed = m.why.fwd, m.collapsed
	}
	header := httpcache.Fields{
		{Name: "content-type", Value: "text/plain; charset=utf-8"},
		{Name: "cache-control", Value: "no-store"},
		{Name: "cache-status", Value: string(httpcache.AppendCacheStatus(nil, "", s))},
	}
	text := "The origin did not answer.\n"
	if reason == reasonFleetAway {
		text = "The cache is not available.\n"
	}
	if o == metrics.OutcomeOnlyIfCached {
		text = "Not in the cache.\n"
	} else {
		header = append(header, httpcache.Field{Name: "retry-after", Value: retryAfter})
	}
	reply := wire.Immediate(wire.Answer{Status: status, Header: header, Details: "weir_" + o.String()}, []byte(text))
	m.emit(effect{op: opSend, reply: m.logged(reply, o)})
	m.emit(effect{op: opClose})
}

// retryAfter is the Retry-After of weir's own errors, in seconds.
const retryAfter = "1"

// perHit is the part of a stored message that is made for this one hit.
func (m *machine) perHit(e *store.Entry, o metrics.Outcome, s httpcache.CacheStatus, now time.Time) []byte {
	var age [20]byte
	var status [160]byte
	existing, _ := e.Header.Joined("cache-status")
	return wire.AppendPerHit(make([]byte, 0, 256), wire.PerHit{
		Age:         httpcache.AppendAge(age[:0], e.Age(now)),
		CacheStatus: httpcache.AppendCacheStatus(status[:0], existing, s),
		Outcome:     o.String(), Policy: e.Policy,
	})
}

// logged adds what access logs may show.
func (m *machine) logged(r *wire.Reply, o metrics.Outcome) *wire.Reply {
	return r.With(wire.AppendMetadata(nil, "outcome", o.String(), "policy", m.policy.String()))
}

func ageText(e *store.Entry, now time.Time) string {
	return string(httpcache.AppendAge(nil, e.Age(now)))
}

// withHitFields returns the stored fields with Age, Cache-Status and, once the
// body is whole, its length.
func withHitFields(e *store.Entry, s httpcache.CacheStatus, now time.Time) httpcache.Fields {
	out := make(httpcache.Fields, 0, len(e.Header)+3)
	for _, f := range e.Header {
		if f.Name != "cache-status" && f.Name != "age" {
			out = append(out, f)
		}
	}
	existing, _ := e.Header.Joined("cache-status")
	out = append(out, httpcache.Field{Name: "age", Value: ageText(e, now)},
		httpcache.Field{Name: "cache-status", Value: string(httpcache.AppendCacheStatus(nil, existing, s))})
	if e.Body.Whole() && !out.Has("content-length") && !bodiless(e.Status) {
		out = append(out, httpcache.Field{Name: "content-length", Value: strconv.FormatInt(e.Body.Len(), 10)})
	}
	return out
}

// replacement is a stored answer for the response phase: one message, and no
// body where the client must not get one.
func replacement(req *httpcache.Request, e *store.Entry, s httpcache.CacheStatus, now time.Time) (
	status int, header httpcache.Fields, body []byte,
) {
	header = withHitFields(e, s, now)
	if httpcache.EvaluatePreconditions(req.Header, e.Header, e.Status) == httpcache.NotModified {
		return 304, httpcache.NotModifiedFields(header), nil
	}
	if req.Method == "HEAD" || bodiless(e.Status) {
		return e.Status, header, nil
	}
	body = make([]byte, 0, e.Body.Len())
	for part := range e.Body.Bytes(0, e.Body.Len()) {
		body = append(body, part...)
	}
	return e.Status, header, body
}

// statusMutation appends weir's member to the Cache-Status of a response that
// goes on.
func statusMutation(h httpcache.Fields, s httpcache.CacheStatus) wire.Mutation {
	existing, _ := h.Joined("cache-status")
	value := string(httpcache.AppendCacheStatus(nil, existing, s))
	return wire.Mutation{Set: httpcache.Fields{{Name: "cache-status", Value: value}}}
}

package extproc

import (
	"time"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/metrics"
	"github.com/weirproxy/weir/extproc/refill"
	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/wire"
)

// maxReplaceBody bounds the stored body that may be put in the place of a
// response: it travels as one message and Envoy buffers it whole.
const maxReplaceBody = 8 << 20

// goOn lets the request go on to the origin: with the validators of what is
// stored, or, for a leader, unconditionally and for the whole. The client's own
// conditions are then answered here.
func (m *machine) goOn(r role, now time.Time) {
	m.role, m.asked, m.birth, m.state = r, now, m.facts.position(), stateOrigin
	m.fetching = r != roleWatch
	mutation := wire.Mutation{}
	if m.req.Header.Has(refill.TokenHeader) {
		mutation.Remove = append(mutation.Remove, refill.TokenHeader)
	}
	if m.stored != nil && r != roleWatch && m.mayStandIn() {
		m.validators = httpcache.Validators(m.stored.Header)
		mutation.Set = m.validators
	}
	if r == roleLead || m.validators != nil {
		for _, name := range httpcache.StripConditionals(m.req.Header) {
			if !mutation.Set.Has(name) { // Envoy removes after it has set
				mutation.Remove = append(mutation.Remove, name)
			}
		}
	}
	m.send(wire.ContinueRequest(mutation))
}

// onResponseHeaders decides what becomes of the origin's answer, or of the one
// that Envoy made in its place: for want of the origin's if it is a 5xx; else
// (another filter's 401, say) it is about this request alone.
func (m *machine) onResponseHeaders(msg *wire.Message, now time.Time) {
	if !m.facts.sight(m.policy).showsHeads() {
		m.emit(effect{op: opHeadShown})
	}
	resp := httpcache.Response{Status: msg.Status, Header: msg.Header}
	local := madeByEnvoy(msg)
	unreachable := local && resp.Status >= 500
	switch {
	case m.role == roleWatch:
		m.onWatched(&resp, local, now)
	case local && !unreachable:
		m.fetchEnds(metrics.FillFailed)
		m.emitLead(effect{op: opRelease, reason: reasonLocalReply})
		m.passResponse(reasonLocalReply, resp.Header, resp.Status)
	case m.validators != nil && resp.Status == 304:
		m.onNotModified(&resp, now)
	default:
		m.onFetched(&resp, unreachable, msg.EndOfStream, now)
	}
}

// viaUpstream is response.code_details of an origin's answer.
const viaUpstream = "via_upstream"

// madeByEnvoy reports whether response_headers are of an answer that the origin
// had no part in.
func madeByEnvoy(msg *wire.Message) bool {
	return msg.CodeDetails != "" && msg.CodeDetails != viaUpstream
}

// onFetched decides about an answer that is no 304 to our validators.
func (m *machine) onFetched(resp *httpcache.Response, unreachable, end bool, now time.Time) {
	a := admit(m.fetched(resp, unreachable, now))
	if a.failed && m.mayReplace(now) {
		m.emitLead(effect{op: opFail, reason: reasonOriginFailed})
		m.fetchEnds(metrics.FillFailed)
		m.replaceFailed(resp, unreachable, now)
		return
	}
	switch {
	case a.entry != nil && m.role == roleLead:
		m.copyResponse(a, end)
		return
	case a.entry != nil:
		// Alone on the way; one of those who are may store what came.
		m.pending = &pending{a, resp, end}
		m.emit(effect{op: opTryLead, id: m.flightID()})
		return
	case a.failed:
		m.emitLead(effect{op: opFail, reason: reasonOriginFailed})
		m.fetchEnds(metrics.FillFailed)
	default:
		m.fetchEnds(metrics.FillUncacheable)
		m.emitLead(effect{op: opRelease, reason: a.reason, mark: !ofRequest(a.reason)})
		// No refresh would ever take the place of a stale copy: it goes.
		a.drop = a.drop || m.stored != nil && !isFresh(m.stored, now) && !ofRequest(a.reason)
	}
	if a.drop {
		m.emit(effect{op: opDelete, entry: m.stored})
	}
	m.passResponse(a.reason, resp.Header, resp.Status)
}

// ofRequest reports whether an answer is not stored because of the request that
// it answers: the next one's may be.
func ofRequest(r httpcache.Reason) bool {
	return r == httpcache.ReasonRequestNoStore || r == httpcache.ReasonAuthorization || r == httpcache.ReasonRequestCookie
}

// mayStandIn reports whether the stored copy may be put in the place of a
// response: in one message, by a policy that serves.
func (m *machine) mayStandIn() bool {
	return m.stored != nil && m.stored.Body.Len() <= maxReplaceBody && m.policy.Mode != cachepolicy.ModeShadow
}

// mayReplace reports whether the stored copy may stand in for a failure in the
// response phase.
func (m *machine) mayReplace(now time.Time) bool { return m.mayStandIn() && m.mayServeStale(now) }

// pending is an answer that may be stored, while it is asked who stores it.
type pending struct {
	admission
	resp *httpcache.Response
	end  bool
}

// onTryFill goes on with an answer that came to a request of its own: it is
// stored, unless somebody else is about to.
func (m *machine) onTryFill(won bool) {
	p := m.pending
	m.pending = nil
	if won {
		m.role = roleLead
		m.copyResponse(p.admission, p.end)
		return
	}
	m.fetchEnds(metrics.FillRedundant)
	m.passResponse(reasonStoredByAnother, p.resp.Header, p.resp.Status)
}

// fetched gathers what decides about the answer to this request.
func (m *machine) fetched(resp *httpcache.Response, unreachable bool, now time.Time) *fetched {
	return &fetched{
		binding: m.binding, key: &m.key, req: &m.req, rules: &m.rules, resp: resp, unreachable: unreachable,
		stored: m.stored, asked: m.asked, now: now, birth: m.birth, draw: m.facts.draw(),
	}
}

// emitLead tells the flight, where this request leads one.
func (m *machine) emitLead(e effect) {
	if m.role == roleLead {
		m.emit(e)
	}
}

// passResponse lets an answer go on that is not stored.
func (m *machine) passResponse(reason httpcache.Reason, h httpcache.Fields, status int) {
	s := httpcache.CacheStatus{Fwd: m.why.fwd, FwdStatus: status, Detail: string(reason), Collapsed: m.collapsed}
	m.send(m.logged(wire.ContinueResponse(statusMutation(h, s), false), metrics.OutcomeMissUncacheable))
	m.pass(metrics.OutcomeMissUncacheable)
}

// copyResponse shows the answer to the followers and copies it as it passes.
func (m *machine) copyResponse(a admission, end bool) {
	m.filling = a.entry
	m.publish = &effect{op: opPublish, entry: a.entry, share: a.share, reason: a.reason}
	if end || !a.share || m.facts.sight(m.policy).proven() {
		m.publishNow()
	}
	s := httpcache.CacheStatus{
		Fwd: m.why.fwd, FwdStatus: a.entry.Status, Stored: true, Collapsed: m.collapsed, Detail: string(m.why.detail),
	}
	m.count(metrics.OutcomeMiss)
	if end {
		m.commit()
		m.send(m.logged(wire.ContinueResponse(statusMutation(a.entry.Header, s), false), metrics.OutcomeMiss))
		m.finish()
		return
	}
	m.state, m.endless = stateCopy, contentLength(a.entry.Header) < 0
	m.send(m.logged(wire.ContinueResponse(statusMutation(a.entry.Header, s), true), metrics.OutcomeMiss))
}

// onResponseBody copies a chunk and lets it go on. What must be true before the
// client sees the end of the answer is made true before the last chunk goes on.
func (m *machine) onResponseBody(msg *wire.Message) {
	m.onShown()
	m.emit(effect{op: opAppend, body: msg.Body})
	if msg.EndOfStream {
		m.commit()
	}
	m.send(wire.AckBody())
	if msg.EndOfStream {
		m.finish()
	}
}

// onResponseTrailers is the end mark of a body followed by trailers, which are
// not kept (RFC 9110 §6.5.1 lets a recipient discard them).
func (m *machine) onResponseTrailers() {
	m.onShown()
	m.commit()
	m.send(wire.AckTrailers())
	m.finish()
}

// onShown: some of the copy came, so the rest will. Now the followers may have it.
func (m *machine) onShown() {
	if m.copied {
		return
	}
	m.copied = true
	if !m.facts.sight(m.policy).proven() {
		m.emit(effect{op: opShown})
	}
	m.publishNow()
}

// publishNow begins the copy, which counts how it ends.
func (m *machine) publishNow() {
	if m.publish != nil {
		m.emit(*m.publish)
		m.publish, m.fetching = nil, false
	}
}

func (m *machine) commit() {
	if m.filling != nil {
		m.emit(effect{op: opCommit, entry: m.filling})
		m.filling = nil
	}
}

// onCopyOver: nobody needs the rest of the response. Envoy delivers it without us.
func (m *machine) onCopyOver() {
	m.filling = nil
	if m.state == stateCopy {
		m.finish()
	}
}

// onSilence: nothing came of a response that is copied for as long as silentAfter,
// and no Content-Length says whether something is missing. The origin may be slow.
// But if a filter between it and us added trailers (the decompressor does), Envoy
// never tells us the end, and waits for us with telling its client (FilterManager
// calls no encodeTrailers after a filter that holds the data to which they were
// added). So the copy is given up: Envoy delivers the rest, if there is any,
// without us, and a detached fetch gets the answer for all others.
func (m *machine) onSilence() {
	m.filling = nil
	m.emit(effect{op: opAbandon})
	if m.refillable() {
		m.emit(effect{op: opRefresh, id: m.flightID()})
	}
	m.emit(effect{op: opNote, note: noteSilence})
	m.finish()
}

// onNotModified freshens what is stored and answers the client from it: a 304 if
// its own conditions are met, else the whole (RFC 9111 §4.3.3, §4.3.4).
func (m *machine) onNotModified(resp *httpcache.Response, now time.Time) {
	if !httpcache.Validated(m.stored.Header, m.validators, resp.Header) {
		m.onForeignNotModified(resp, now)
		return
	}
	fresh, forbidden := freshen(m.fetched(resp, false, now))
	s := httpcache.CacheStatus{Fwd: m.why.fwd, FwdStatus: 304, Stored: forbidden == "", Collapsed: m.collapsed}
	if forbidden == "" {
		m.emitFreshen(fresh, resp, now)
		m.fetchEnds(metrics.FillNotModified)
	} else {
		m.fetchEnds(metrics.FillUncacheable)
		s.Detail = string(forbidden)
		forOthers := !m.credentials && !ofRequest(forbidden)
		m.emitLead(effect{op: opRelease, reason: forbidden, mark: forOthers})
		if forOthers {
			m.emit(effect{op: opDelete, entry: m.stored})
		}
	}
	m.stored = fresh
	m.replaceResponse(fresh, s, metrics.OutcomeRevalidated, resp.Header, now)
	m.count(metrics.OutcomeRevalidated)
	m.finish()
}

// onForeignNotModified meets a 304 that is about another response than the one we
// hold. It says nothing that the client could use: the fetch failed, and the next
// one is unconditional.
func (m *machine) onForeignNotModified(resp *httpcache.Response, now time.Time) {
	m.emit(effect{op: opDelete, entry: m.stored})
	m.emitLead(effect{op: opFail, reason: reasonForeign304})
	m.fetchEnds(metrics.FillFailed)
	if m.mayReplace(now) {
		m.replaceFailed(resp, false, now)
		return
	}
	s := httpcache.CacheStatus{Fwd: m.why.fwd, FwdStatus: resp.Status, Detail: string(reasonForeign304)}
	mutation := statusMutation(resp.Header, s)
	reply := wire.ReplaceResponse(502, mutation, []byte("The origin answered 304 for another response.\n"))
	m.send(m.logged(reply, metrics.OutcomeUnavailable))
	m.pass(metrics.OutcomeUnavailable)
}

// onWatched looks at the head of an answer that is not copied: an unsafe method
// invalidates (RFC 9111 §4.4), a HEAD freshens (§4.3.5) and may get a stale copy
// for a failure. local: Envoy made the answer, the origin says nothing by it.
func (m *machine) onWatched(resp *httpcache.Response, local bool, now time.Time) {
	outcome := metrics.OutcomeMissUncacheable
	failed := isFetchError(resp.Status) || local && resp.Status >= 500
	switch {
	case m.req.Method != "HEAD":
		outcome = metrics.OutcomeBypassMethod
		if targets := httpcache.InvalidatedBy(&m.req, resp); len(targets) > 0 && !local {
			m.emit(effect{op: opInvalidate, targets: targets})
		}
	case failed && m.mayReplace(now):
		m.replaceFailed(resp, local, now)
		return
	case m.stored != nil && !local:
		m.freshenByHead(resp, now)
	}
	s := httpcache.CacheStatus{Fwd: m.why.fwd, FwdStatus: resp.Status, Detail: string(m.why.detail)}
	m.send(m.logged(wire.ContinueResponse(statusMutation(resp.Header, s), false), outcome))
	m.pass(outcome)
}

// emitFreshen stores what the fields of resp made of the stored answer.
func (m *machine) emitFreshen(fresh *store.Entry, resp *httpcache.Response, now time.Time) {
	f := &freshening{entry: fresh, old: m.stored, came: updates(resp, now), req: m.req.Header}
	m.emit(effect{op: opFreshen, entry: fresh, fresh: f})
}

func (m *machine) freshenByHead(resp *httpcache.Response, now time.Time) {
	ok, invalidate := false, false
	if resp.Status == 200 {
		ok, invalidate = httpcache.HeadFreshens(m.stored.Header, resp.Header)
	}
	var fresh *store.Entry
	if ok {
		var forbidden httpcache.Reason
		fresh, forbidden = freshen(m.fetched(resp, false, now))
		ok, invalidate = forbidden == "", forbidden != ""
	}
	switch {
	case ok:
		m.emitFreshen(fresh, resp, now)
	case invalidate:
		m.emit(effect{op: opDelete, entry: m.stored})
	}
}

// replaceFailed answers with the stored copy in the place of a failure. The
// request went forward, so it is no hit (RFC 9211 §2.1).
func (m *machine) replaceFailed(failure *httpcache.Response, unreachable bool, now time.Time) {
	s := m.storedStatus(m.stored, metrics.OutcomeStaleIfError, now)
	s.Hit, s.Fwd, s.Collapsed = false, m.why.fwd, m.collapsed
	if !unreachable {
		s.FwdStatus = failure.Status
	}
	m.replaceWithStale(s, metrics.OutcomeStaleIfError, failure.Header, now)
}

// replaceWithStale answers in the response phase with the stored stale copy.
func (m *machine) replaceWithStale(s httpcache.CacheStatus, o metrics.Outcome, gone httpcache.Fields, now time.Time) {
	m.replaceResponse(m.stored, s, o, gone, now)
	m.count(o)
	m.finish()
}

// replaceResponse puts a stored answer in the place of the one that Envoy holds,
// so that the filters behind us (CORS and the like) still run on it. gone are
// the fields of the response that is replaced.
func (m *machine) replaceResponse(
	e *store.Entry, s httpcache.CacheStatus, o metrics.Outcome, gone httpcache.Fields, now time.Time,
) {
	status, header, body := replacement(&m.req, e, s, now)
	mutation := wire.Mutation{Set: header}
	for _, f := range gone {
		if !header.Has(f.Name) && !hopByHop(f.Name) {
			mutation.Remove = append(mutation.Remove, f.Name)
		}
	}
	m.send(m.logged(wire.ReplaceResponse(status, mutation, body), o))
}

func hopByHop(name string) bool { return name == "connection" || name == "transfer-encoding" }

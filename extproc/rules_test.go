package extproc

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/flight"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/metrics"
	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/wire"
)

// rules are what must hold for every stream, whatever is said on it. They watch
// a conversation and note each breach.
type rules struct {
	breaches []string
	noClient bool // one of weir's own fetches: it has no outcome

	outcomes int
	closed   bool         // opClose, opTail or opStream came: nothing may follow
	leads    bool         // a lead is held and must be ended
	follows  bool         // a flight is followed
	endMark  bool         // Envoy said that the response is whole
	news     *store.Entry // what a flight told last

	waits    wire.Kind // what Envoy waits for an answer to
	extended bool      // the message timeout was extended: once per phase
	head     bool      // the request is a HEAD
	hasBody  bool      // the request has a body
	joins    int

	counted, logged string // the outcome, and what the access log shows of it
	fetches, fills  int    // that may be stored, and how many of them were counted
}

func (r *rules) breach(format string, args ...any) {
	r.breaches = append(r.breaches, fmt.Sprintf(format, args...))
}

// received takes note of what Envoy says, before the machine is told.
func (r *rules) received(c *conversation, msg *wire.Message) {
	if c.over() {
		return
	}
	r.waits = msg.Kind
	switch msg.Kind {
	case wire.KindRequestHeaders:
		r.head, r.hasBody = msg.Method == http.MethodHead, !msg.EndOfStream
	case wire.KindResponseHeaders, wire.KindResponseBody:
		r.endMark = r.endMark || msg.EndOfStream
	case wire.KindResponseTrailers:
		r.endMark = true
	}
}

func (r *rules) joined(role flight.Role) {
	switch role {
	case flight.RoleLead:
		r.leads = true
	case flight.RoleFollow:
		r.follows = true
	}
}

// effect looks at one effect when it is carried out.
func (r *rules) effect(c *conversation, e *effect) {
	if r.closed {
		r.breach("op %d after the stream was closed", e.op)
	}
	switch e.op {
	case opOutcome:
		r.outcomes++
		r.counted = e.outcome.String()
	case opFill:
		r.fills++
	case opLookup:
		if r.hasBody {
			r.breach("a request with a body is looked up")
		}
	case opJoin, opJoinRefill:
		if r.joins++; r.joins > maxRejoins+1 {
			r.breach("a request joins its %d. flight", r.joins)
		}
	case opLeave:
		r.follows = false
	case opClose:
		r.closed = true
	case opSend:
		r.reply(c, e.reply)
	case opTail, opStream:
		r.reply(c, e.reply)
		r.closed = true
		r.bodyFollows(e)
	case opPublish, opRelease, opFail, opCommit, opBreak, opAbandon, opFreshen:
		r.flight(c, e)
	}
}

// flight: who holds a lead ends it, once; nobody else speaks for a flight; only
// a whole answer is stored.
func (r *rules) flight(c *conversation, e *effect) {
	if e.op == opPublish || e.op == opFreshen {
		r.clean(e.entry.Header)
	}
	if e.op == opPublish { // the copy counts how it ends
		r.fills++
	}
	switch e.op {
	case opPublish, opRelease, opFail:
		if !r.leads || c.filled != nil {
			r.breach("op %d without a lead, or after its answer was published", e.op)
		}
		r.leads = e.op == opPublish && e.share
	case opCommit:
		if !r.endMark {
			r.breach("stored without an end mark")
		}
		r.leads = false
	case opBreak:
		if c.filled == nil {
			r.breach("a copy is broken off that is none")
		}
		r.leads = false
	case opAbandon, opFreshen: // opFreshen of a HEAD has no lead
		r.leads = false
	}
}

// reply: Envoy takes one answer to each message, of the right kind, and one
// extension of its timeout before that.
func (r *rules) reply(c *conversation, reply *wire.Reply) {
	p, err := decodeReply(reply)
	if err != nil {
		r.breach("a reply does not parse: %v", err)
		return
	}
	if p.OverrideMessageTimeout != nil {
		r.extension(c, p.OverrideMessageTimeout.AsDuration())
		return
	}
	kind := replyTo(p)
	if o := p.GetDynamicMetadata().GetFields()["weir"].GetStructValue().GetFields()["outcome"]; o != nil {
		r.logged = o.GetStringValue()
	}
	if kind == wire.KindRequestHeaders && c.m.state == stateOrigin && c.m.role != roleWatch {
		r.fetches++
	}
	switch answer := p.Response.(type) {
	case *extprocv3.ProcessingResponse_RequestHeaders:
		if c.m.state == stateOrigin && !httpcache.IsUnsafe(c.m.req.Method) && !c.m.policyShadows() &&
			httpcache.OnlyIfCached(&c.m.req, &c.m.rules) {
			r.breach("a request that says only-if-cached goes to the origin")
		}
	case *extprocv3.ProcessingResponse_ResponseHeaders:
		r.replaced(c, answer.ResponseHeaders.GetResponse())
	case *extprocv3.ProcessingResponse_ImmediateResponse:
		if r.waits == wire.KindResponseHeaders {
			kind = wire.KindResponseHeaders
		}
		r.immediate(c, answer.ImmediateResponse)
	case *extprocv3.ProcessingResponse_StreamedImmediateResponse:
		r.streamed(c, answer.StreamedImmediateResponse.GetHeadersResponse())
	}
	if kind == wire.KindNone || kind != r.waits {
		r.breach("%T, but Envoy waits for an answer to %s", p.Response, r.waits)
	}
	r.waits = wire.KindNone
}

// replyTo is the kind of message that a reply answers.
func replyTo(p *extprocv3.ProcessingResponse) wire.Kind {
	switch p.Response.(type) {
	case *extprocv3.ProcessingResponse_RequestHeaders, *extprocv3.ProcessingResponse_ImmediateResponse,
		*extprocv3.ProcessingResponse_StreamedImmediateResponse:
		return wire.KindRequestHeaders
	case *extprocv3.ProcessingResponse_ResponseHeaders:
		return wire.KindResponseHeaders
	case *extprocv3.ProcessingResponse_RequestBody:
		return wire.KindRequestBody
	case *extprocv3.ProcessingResponse_ResponseBody:
		return wire.KindResponseBody
	case *extprocv3.ProcessingResponse_RequestTrailers:
		return wire.KindRequestTrailers
	case *extprocv3.ProcessingResponse_ResponseTrailers:
		return wire.KindResponseTrailers
	}
	return wire.KindNone
}

func (r *rules) extension(c *conversation, d time.Duration) {
	f := c.m.facts
	switch {
	case r.extended:
		r.breach("the message timeout is extended a second time")
	case r.waits != wire.KindRequestHeaders:
		r.breach("the message timeout is extended while Envoy waits for %s", r.waits)
	case d > f.maxMessageTimeout:
		r.breach("the message timeout is extended by %s, above %s", d, f.maxMessageTimeout)
	}
	r.extended = true
}

func (r *rules) immediate(c *conversation, a *extprocv3.ImmediateResponse) {
	r.answered(c)
	r.clean(replyFields(a.GetHeaders().GetSetHeaders()))
	status := int(a.GetStatus().GetCode())
	if len(a.GetBody()) > 0 && bodiless(status) {
		r.breach("%d with a body", status)
	}
}

func (r *rules) streamed(c *conversation, h *extprocv3.HttpHeaders) {
	r.answered(c)
	if !c.m.canStream {
		r.breach("a streamed answer in a mode that takes none")
	}
	fields := httpcache.Fields{}
	for _, f := range h.GetHeaders().GetHeaders() {
		field := httpcache.Field{Name: f.GetKey(), Value: string(f.GetRawValue())}
		if fields.Has(field.Name) {
			r.breach("%s twice in a streamed answer, where only the last counts", field.Name)
		}
		fields = append(fields, field)
	}
	r.clean(fields)
}

func (m *machine) policyShadows() bool {
	return m.policy != nil && m.policy.Mode == cachepolicy.ModeShadow
}

// answered: a policy that only watches answers nothing.
func (r *rules) answered(c *conversation) {
	if c.m.policyShadows() {
		r.breach("an answer of weir's own in mode Shadow")
	}
}

// bodyFollows: what has a body is not for HEAD, 204 or 304, and as long as its
// Content-Length says: Envoy checks neither.
func (r *rules) bodyFollows(e *effect) {
	p, err := decodeReply(e.reply)
	if err != nil {
		return
	}
	h := p.GetStreamedImmediateResponse().GetHeadersResponse()
	var fields httpcache.Fields
	for _, f := range h.GetHeaders().GetHeaders() {
		fields = append(fields, httpcache.Field{Name: f.GetKey(), Value: string(f.GetRawValue())})
	}
	status := fields.Get(":status")
	if r.head || status == "204" || status == "304" || h.GetEndOfStream() {
		r.breach("a body follows: HEAD %t, status %s, end of stream %t", r.head, status, h.GetEndOfStream())
	}
	length := int64(0)
	switch {
	case e.op == opStream:
		for part := range e.parts {
			length += int64(len(part))
		}
	case e.entry.Body.Whole():
		length = e.entry.Body.Len()
	default:
		return // it is still arriving: End checks
	}
	if stated := fields.Get("content-length"); stated != strconv.FormatInt(length, 10) {
		r.breach("content-length %q, and %d bytes follow", stated, length)
	}
}

// replaced: a response that is put in the place of another.
func (r *rules) replaced(c *conversation, a *extprocv3.CommonResponse) {
	fields := replyFields(a.GetHeaderMutation().GetSetHeaders())
	r.clean(fields)
	if a.GetStatus() != extprocv3.CommonResponse_CONTINUE_AND_REPLACE {
		return
	}
	r.answered(c)
	status := fields.Get(":status")
	if len(a.GetBodyMutation().GetBody()) > 0 && (r.head || status == "204" || status == "304") {
		r.breach("%s with a body: HEAD %t", status, r.head)
	}
	seen := httpcache.Fields{}
	for _, f := range fields {
		if seen.Has(f.Name) {
			r.breach("%s is set twice, where only the last counts", f.Name)
		}
		seen = append(seen, f)
	}
}

// clean: Envoy fails a whole streamed answer for one character that may not
// stand in a field (reference/ext_proc.md §1).
func (r *rules) clean(fields httpcache.Fields) {
	for _, f := range fields {
		if f.Name != ":status" && !sendable(f) {
			r.breach("field %q: %q is nothing that Envoy takes", f.Name, f.Value)
		}
	}
}

// sendable is what Envoy checks of a field: the name is a token, the value has no
// control characters but HTAB. Capitals in names it lowers.
func sendable(f httpcache.Field) bool {
	for i := range len(f.Name) {
		if c := f.Name[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("\"(),/:;<=>?@[\\]{}", c) >= 0 {
			return false
		}
	}
	for i := range len(f.Value) {
		if c := f.Value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return f.Name != ""
}

// served: what is taken from the store is allowed by the rules for reads.
func (r *rules) served(c *conversation, e *store.Entry, o metrics.Outcome) {
	age := e.Age(c.now)
	action := cachepolicy.DecideRead(cachepolicy.ReadInput{
		Age: age, Lifetime: e.Lifetime, WhileRevalidate: e.WhileRevalidate, IfError: e.IfError,
		AlwaysValidate: e.ValidateAlways, U: 1,
	})
	r.consented(c, e)
	maxStale := age-e.Lifetime < httpcache.MaxStale(&c.m.req, e.Header, &c.m.rules) && !e.ValidateAlways
	switch o {
	case metrics.OutcomeHit, metrics.OutcomeHitNegative:
		if action != cachepolicy.ServeFresh {
			r.breach("served as fresh at age %s: %s", age, action)
		}
	case metrics.OutcomeHitStale:
		if action > cachepolicy.ServeStaleAndRefresh && !maxStale {
			r.breach("served stale at age %s: %s", age, action)
		}
	case metrics.OutcomeStaleIfError, metrics.OutcomeStaleSlow, metrics.OutcomeStaleOverflow:
		if action > cachepolicy.HoldThenStale && !maxStale {
			r.breach("served in the origin's place at age %s: %s", age, action)
		}
	}
}

// consented: who comes with credentials gets what the origin lets be shared.
func (r *rules) consented(c *conversation, e *store.Entry) {
	if forbidden, reason := httpcache.CredentialsForbidReuse(&c.m.req, e.Header, &c.m.rules); forbidden {
		r.breach("served in spite of the request's credentials: %s", reason)
	}
}

// settled looks at the conversation after each event.
func (r *rules) settled(c *conversation) {
	for i := range c.done {
		o := c.done[i].outcome
		switch {
		case c.done[i].op != opOutcome:
		case takenFromStore(o):
			r.served(c, c.m.stored, o)
		case o == metrics.OutcomeCoalesced:
			r.consented(c, r.news)
		}
	}
	want := 1
	if r.noClient {
		want = 0
	}
	switch {
	case r.outcomes > want:
		r.breach("%d outcomes are counted, want %d", r.outcomes, want)
	case !c.over():
		return
	case r.outcomes < want:
		r.breach("the stream is over and its outcome was not counted")
	}
	if r.logged != "" && r.logged != r.counted {
		r.breach("the access log shows %s, counted is %s", r.logged, r.counted)
	}
	if r.fills != r.fetches {
		r.breach("%d fetches that may be stored, %d counted", r.fetches, r.fills)
	}
	if r.leads {
		r.breach("the stream is over and its flight waits for ever")
	}
	if r.follows {
		r.breach("the stream is over and still follows a flight")
	}
}

func takenFromStore(o metrics.Outcome) bool {
	switch o {
	case metrics.OutcomeHit, metrics.OutcomeHitNegative, metrics.OutcomeHitStale,
		metrics.OutcomeStaleIfError, metrics.OutcomeStaleSlow, metrics.OutcomeStaleOverflow:
		return true
	}
	return false
}

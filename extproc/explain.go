package extproc

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"time"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/metrics"
	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/wire"
)

// Question asks what would become of a request.
type Question struct {
	// Binding is the policy the request falls under; nil: none.
	Binding *cachepolicy.Binding
	Request httpcache.Request
	// Response is what the origin would answer; nil leaves that open.
	Response *httpcache.Response
	// Refill is whether detached fetches are possible. The service knows better.
	Refill bool
}

// Decision is what the cache does with a request.
type Decision string

// The decisions that explain knows.
const (
	DecisionPass            Decision = "Pass"            // Envoy carries on without the cache
	DecisionWatch           Decision = "Watch"           // goes on; the head of its answer is looked at
	DecisionServe           Decision = "Serve"           // answered from the cache
	DecisionServeAndRefresh Decision = "ServeAndRefresh" // answered from the cache, one refresh behind
	DecisionHoldThenStale   Decision = "HoldThenStale"   // held for one refresh; stale if that is slow or fails
	DecisionFetch           Decision = "Fetch"           // one fetch for all who ask
	DecisionFetchAlone      Decision = "FetchAlone"      // a fetch for this request alone
	DecisionRefuse          Decision = "Refuse"          // answered 504: only-if-cached
)

// Explanation is what would become of a request, and why.
type Explanation struct {
	Method string `json:"method"`
	URI    string `json:"uri"`
	// Policy and Route say what applies; empty: no policy.
	Policy string `json:"policy,omitempty"`
	Route  string `json:"route,omitempty"`
	Mode   string `json:"mode,omitempty"`
	// Layers are the policies that Policy is merged of, the least specific first.
	Layers []string `json:"layers,omitempty"`

	Decision Decision `json:"decision"`
	// Reason is the rule that decided, where there is one to name.
	Reason string `json:"reason,omitempty"`
	// Outcome is what weir_requests_total counts, where that is settled before the
	// origin answers.
	Outcome     string `json:"outcome,omitempty"`
	CacheStatus string `json:"cacheStatus,omitempty"`

	Key    *ExplainedKey    `json:"key,omitempty"`
	Stored *ExplainedEntry  `json:"stored,omitempty"` // what the store has of this variant
	Answer *ExplainedAnswer `json:"answer,omitempty"` // what would become of Question.Response
}

// ExplainedKey is a cache key and what it is made of: requests that agree in all
// of it share their answer.
type ExplainedKey struct {
	Hash     string `json:"hash"`
	Scope    string `json:"scope"`
	Resource string `json:"resource"` // the URI after the policy's query rules
	// Headers and Cookies are the request fields and cookies that count.
	Headers []string `json:"headers,omitempty"`
	Cookies []string `json:"cookies,omitempty"`
}

// ExplainedEntry is a stored answer. Durations are in seconds.
type ExplainedEntry struct {
	Status          int      `json:"status"`
	Age             float64  `json:"age"`
	Lifetime        float64  `json:"lifetime"`
	WhileRevalidate float64  `json:"whileRevalidate,omitempty"`
	IfError         float64  `json:"ifError,omitempty"`
	ValidateAlways  bool     `json:"validateAlways,omitempty"`
	Negative        bool     `json:"negative,omitempty"`
	Invalidated     string   `json:"invalidated,omitempty"` // Soft: stale by an invalidation
	Cost            float64  `json:"cost,omitempty"`        // of a fetch
	Vary            []string `json:"vary,omitempty"`
	BodyBytes       int64    `json:"bodyBytes"`
	Policy          string   `json:"policy"`
	// Places are where it is: PlaceMemory of this process, PlaceShared among all.
	Places []string `json:"places"`
}

// The places of a stored answer.
const (
	PlaceMemory = "memory"
	PlaceShared = "shared"
)

// Places says where an answer is that is in this process's memory.
func Places(e *store.Entry) []string {
	if e.Shared.Token != 0 {
		return []string{PlaceMemory, PlaceShared}
	}
	return []string{PlaceMemory}
}

// ExplainedAnswer is what would become of an answer of the origin's. Durations
// are in seconds.
type ExplainedAnswer struct {
	Stored          bool     `json:"stored"`
	Shared          bool     `json:"shared"` // with those who asked while it was fetched
	Reason          string   `json:"reason,omitempty"`
	Lifetime        float64  `json:"lifetime,omitempty"` // before jitter
	WhileRevalidate float64  `json:"whileRevalidate,omitempty"`
	IfError         float64  `json:"ifError,omitempty"`
	ValidateAlways  bool     `json:"validateAlways,omitempty"`
	Negative        bool     `json:"negative,omitempty"`
	Vary            []string `json:"vary,omitempty"`
	Tags            []string `json:"tags,omitempty"`
}

// Explain says what would become of a request if nothing were stored.
func Explain(q *Question, now time.Time) Explanation {
	return explain(q, func(*cachepolicy.Binding, *httpcache.Request) bool { return q.Refill },
		func(*machine) (found, []string) { return found{}, nil }, now)
}

// Explain says what would become of a request at this moment. Nothing is
// counted, started or changed by it.
func (s *Service) Explain(ctx context.Context, q *Question, now time.Time) Explanation {
	return explain(q, s.facts.refill, func(m *machine) (found, []string) { return s.peek(ctx, m) }, now)
}

// peek is lookup without a trace: what only other processes have stays there.
func (s *Service) peek(ctx context.Context, m *machine) (found, []string) {
	now := time.Now()
	if s.opts.Fleet != nil && !s.opts.Fleet.CaughtUp(now) {
		return found{}, nil
	}
	r, err := s.opts.Store.Get(ctx, &m.key, m.req.Header, now)
	if err != nil {
		return found{}, nil
	}
	if r.Entry != nil {
		return s.judge(m, r), Places(r.Entry)
	}
	if !s.shares(m.policy) {
		return s.judge(m, r), nil
	}
	epoch, ok := s.opts.Fleet.Reading()
	if !ok {
		return s.judge(m, r), nil
	}
	shared, err := s.opts.Shared.Get(ctx, &m.key, m.req.Header, now)
	if err != nil || shared.Entry == nil || !s.opts.Fleet.Read(epoch, shared.Entry) {
		return s.judge(m, r), nil
	}
	return s.judge(m, shared), []string{PlaceShared}
}

// explain puts the question to a machine, the one that decides about real
// requests, and reads off its effects what it would do. The early-refresh draw
// is taken as not hit.
func explain(
	q *Question, refill func(*cachepolicy.Binding, *httpcache.Request) bool,
	lookup func(*machine) (found, []string), now time.Time,
) Explanation {
	f := facts{
		messageTimeout: time.Minute, maxMessageTimeout: time.Minute, refill: refill,
		draw: func() float64 { return 1 }, position: func() uint64 { return 0 },
		sight: func(*cachepolicy.Policy) *sight { return new(sight) },
	}
	m := machine{facts: &f, binding: enabled(q.Binding)}
	x := Explanation{Method: q.Request.Method, URI: uriOf(&q.Request)}
	if q.Binding != nil {
		x.Policy, x.Route, x.Mode = q.Binding.Policy.String(), q.Binding.Route, string(q.Binding.Policy.Mode)
		x.Layers = q.Binding.Policy.Layers
	}
	m.onRequestHeaders(&wire.Message{
		Kind: wire.KindRequestHeaders, EndOfStream: true, Method: q.Request.Method, Scheme: q.Request.Scheme,
		Authority: q.Request.Authority, Path: q.Request.Path, Header: q.Request.Header,
	}, now)
	if m.state == stateLookup {
		x.Key = explainKey(&m)
		m.out = m.out[:0]
		found, places := lookup(&m)
		if found.Entry != nil {
			x.Stored = explainEntry(found.Entry, found.soft, now)
			x.Stored.Places = places
		}
		m.onLookup(found, now)
	}
	x.read(&m, now)
	if q.Response != nil && asksOrigin(x.Decision) {
		m.asked = now
		x.Answer = explainAnswer(admit(m.fetched(q.Response, false, now)))
	}
	return x
}

// enabled returns the binding with its policy in force: what a policy in Shadow
// mode would do is the question there.
func enabled(b *cachepolicy.Binding) *cachepolicy.Binding {
	if b == nil || b.Policy.Mode != cachepolicy.ModeShadow {
		return b
	}
	policy, binding := *b.Policy, *b
	policy.Mode = cachepolicy.ModeEnabled
	binding.Policy = &policy
	return &binding
}

// read reads the decision off the machine's effects.
func (x *Explanation) read(m *machine, now time.Time) {
	refreshes, outcome := false, metrics.Outcome(-1)
	for i := range m.out {
		switch e := &m.out[i]; e.op {
		case opOutcome:
			outcome = e.outcome
		case opRefresh:
			refreshes = true
		case opTryLead:
			refreshes, outcome = true, e.outcome
		case opJoin:
			x.Decision = DecisionFetch
		case opJoinRefill:
			x.Decision = DecisionHoldThenStale
		default:
		}
	}
	if outcome >= 0 {
		x.Outcome = outcome.String()
	}
	switch {
	case x.Decision != "":
	case m.state == stateOrigin && m.role == roleWatch:
		x.Decision = DecisionWatch
	case m.state == stateOrigin:
		x.Decision = DecisionFetchAlone
	case outcome == metrics.OutcomeOnlyIfCached:
		x.Decision, x.Reason = DecisionRefuse, string(reasonOnlyIfCached)
		x.status(httpcache.CacheStatus{Detail: x.Reason}) // it does not go forward
		return
	case !isStoredOutcome(outcome):
		x.Decision, x.Reason = DecisionPass, passReason(m)
		return
	default:
		x.Decision = DecisionServe
		if refreshes {
			x.Decision = DecisionServeAndRefresh
		}
		x.status(m.storedStatus(m.stored, outcome, now))
		return
	}
	x.Reason = string(m.why.detail)
	x.status(httpcache.CacheStatus{Fwd: m.why.fwd, Detail: string(m.why.detail)})
}

func (x *Explanation) status(s httpcache.CacheStatus) {
	x.CacheStatus = string(httpcache.AppendCacheStatus(nil, "", s))
}

// isStoredOutcome reports whether a request that ended so was answered from the
// store.
func isStoredOutcome(o metrics.Outcome) bool {
	switch o {
	case metrics.OutcomeHit, metrics.OutcomeHitStale, metrics.OutcomeHitNegative, metrics.OutcomeStaleIfError:
		return true
	default:
		return false
	}
}

// passReason names what made a request pass by.
func passReason(m *machine) string {
	switch {
	case m.binding == nil:
		return "no-policy"
	case m.policy == nil:
		return "policy-disabled"
	case httpcache.Tunnels(&m.req):
		return "tunnel"
	}
	if pass, reason := httpcache.CheckRequest(&m.req, &m.rules); pass {
		return string(reason)
	}
	if m.req.Header.Has("range") {
		return "range"
	}
	return ""
}

func asksOrigin(d Decision) bool {
	switch d {
	case DecisionFetch, DecisionFetchAlone, DecisionHoldThenStale, DecisionServeAndRefresh:
		return true
	default:
		return false
	}
}

func explainEntry(e *store.Entry, soft bool, now time.Time) *ExplainedEntry {
	x := &ExplainedEntry{
		Status: e.Status, Age: e.Age(now).Seconds(), Lifetime: e.Lifetime.Seconds(),
		WhileRevalidate: e.WhileRevalidate.Seconds(), IfError: e.IfError.Seconds(),
		ValidateAlways: e.ValidateAlways, Negative: e.Negative, Cost: e.Cost.Seconds(), Vary: e.Vary.Names,
		BodyBytes: e.Body.Len(), Policy: e.Policy,
	}
	if soft {
		x.Invalidated = "Soft"
	}
	return x
}

func explainAnswer(a admission) *ExplainedAnswer {
	x := &ExplainedAnswer{Stored: a.entry != nil, Shared: a.share, Reason: string(a.reason)}
	if e := a.entry; e != nil {
		x.Lifetime = e.Lifetime.Seconds()
		x.WhileRevalidate, x.IfError = e.WhileRevalidate.Seconds(), e.IfError.Seconds()
		x.ValidateAlways, x.Negative, x.Vary, x.Tags = e.ValidateAlways, e.Negative, e.Vary.Names, e.Tags
	}
	return x
}

func explainKey(m *machine) *ExplainedKey {
	x := &ExplainedKey{
		Hash: hex.EncodeToString(m.key.Hash[:]), Scope: m.binding.Scope,
		Headers: m.policy.Key.Headers, Cookies: m.policy.Key.Cookies,
	}
	// A canonical key begins with the version, scope, hash of the rules, scheme, host and target.
	if p := leadingStrings(m.key.Canonical[1:], 5); len(p) == 5 {
		x.Resource = p[2] + "://" + p[3] + p[4]
	}
	return x
}

// leadingStrings reads up to n strings, each with its length before it.
func leadingStrings(s string, n int) []string {
	var out []string
	for range n {
		length, size := binary.Uvarint([]byte(s))
		if size <= 0 || length > uint64(len(s)-size) {
			return out
		}
		out = append(out, s[size:size+int(length)])
		s = s[size+int(length):]
	}
	return out
}

package extproc

import (
	"time"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/metrics"
	"github.com/weirproxy/weir/extproc/wire"
)

// onRequestHeaders decides whether the cache takes part in a request at all.
// The binding was set by the caller, which knows the stream's metadata.
func (m *machine) onRequestHeaders(msg *wire.Message, now time.Time) {
	m.arrived = now
	if m.binding == nil || m.binding.Policy.Mode == cachepolicy.ModeDisabled {
		m.pass(metrics.OutcomeBypassPolicy)
		return
	}
	m.policy = m.binding.Policy
	m.req = httpcache.Request{
		Method: msg.Method, Scheme: msg.Scheme, Authority: msg.Authority, Path: msg.Path, Header: msg.Header,
	}
	if !m.modeUsable(msg) {
		m.emit(effect{op: opNote, note: noteModeUnusable})
		m.pass(metrics.OutcomeBypassMode)
		return
	}
	m.rules = requestRules(m.policy, &m.req)
	passBy, reason := httpcache.CheckRequest(&m.req, &m.rules)
	switch {
	case httpcache.Tunnels(&m.req):
		m.pass(metrics.OutcomeBypassRequest)
	case httpcache.IsUnsafe(msg.Method):
		m.watch(now, forward{fwd: httpcache.FwdMethod})
	case reason == httpcache.ReasonMethod:
		m.pass(metrics.OutcomeBypassMethod)
	case passBy || !msg.EndOfStream: // the body of a GET is in no key (cases: fat GET)
		m.pass(metrics.OutcomeBypassRequest)
	default:
		m.lookUp()
	}
}

// lookUp asks the store for the request's key.
func (m *machine) lookUp() {
	m.credentials = httpcache.CarriesCredentials(&m.req, &m.rules)
	m.key = cachepolicy.BuildKey(&m.policy.Key, cachepolicy.KeyInput{
		Scope: m.binding.Scope, Scheme: m.req.Scheme, Authority: m.req.Authority, Path: m.req.Path,
		Header: m.req.Header.Joined,
	})
	m.state = stateLookup
	m.emit(effect{op: opLookup})
}

// modeUsable looks at the mode that Envoy announced. The cache needs request
// bodies left alone and response bodies that it can turn on. FULL_DUPLEX and GRPC
// want every byte echoed, and beside either Envoy ignores overrides, as a filter
// does that does not wait for header replies. BUFFERED fails answers larger than
// Envoy's buffer before an override can reach it. An Envoy too old to announce is
// taken on trust.
func (m *machine) modeUsable(msg *wire.Message) bool {
	if msg.Observability {
		return false
	}
	if !msg.HasConfig {
		m.canStream = true
		return true
	}
	c := msg.Config
	switch {
	case c.ResponseBody != wire.BodyNone && c.ResponseBody != wire.BodyStreamed, c.BodyWithoutWaiting:
		return false
	case c.RequestBody >= wire.BodyFullDuplex && (!msg.EndOfStream || c.ResponseBody == wire.BodyNone):
		return false
	}
	m.canStream = c.RequestBody == wire.BodyNone || c.RequestBody == wire.BodyFullDuplex
	return true
}

// requestRules are the HTTP rules of a policy, for one request.
func requestRules(p *cachepolicy.Policy, req *httpcache.Request) httpcache.Rules {
	r := httpcache.Rules{
		Origin:                 httpcache.OriginMode(p.TTL.Origin),
		Heuristic:              p.TTL.Heuristic,
		StripSetCookie:         p.Storage.SetCookie == cachepolicy.SetCookieStrip,
		IgnoreCookies:          p.Storage.RequestCookies == cachepolicy.RequestCookiesIgnore,
		HonorRequestDirectives: p.HonorRequestDirectives,
		StaleWhileRevalidate:   p.Stale.WhileRevalidate,
		StaleIfError:           p.Stale.IfError,
	}
	if cookies, ok := req.Header.Joined("cookie"); ok {
		r.CookiesOutsideKey = p.Key.CookiesOutsideKey(cookies)
	}
	return r
}

package httpcache

import "time"

// Request is the part of a request message that the rules look at.
type Request struct {
	Method    string // as received, case-sensitive (RFC 9110 §9.1)
	Scheme    string // "http" or "https"
	Authority string // host and optional port, as received
	Path      string // path and query, as received
	Header    Fields
}

// Response is the part of a response message that the rules look at.
type Response struct {
	Status int
	Header Fields
}

// OriginMode says how far the origin's own words count: ttl.origin of a policy.
type OriginMode string

// The origin modes. The empty value means OriginHonor.
const (
	OriginHonor           OriginMode = "Honor"
	OriginIgnoreFreshness OriginMode = "IgnoreFreshness" // its lifetimes do not count, its prohibitions do
	OriginIgnoreAll       OriginMode = "IgnoreAll"       // nor do no-store, private, no-cache, must-revalidate
)

// Rules is what a policy and the request at hand change about the rules of this
// package. The zero value is the plain RFC behaviour of a shared cache that
// stores no answer with Set-Cookie and ignores the Cache-Control of requests.
type Rules struct {
	Origin OriginMode
	// StripSetCookie stores an answer that carries Set-Cookie without that field.
	StripSetCookie bool
	// IgnoreCookies treats a request cookie outside the key as if it were absent.
	IgnoreCookies bool
	// CookiesOutsideKey is a fact of this request: it carries a cookie that the
	// key does not name.
	CookiesOutsideKey bool
	// Heuristic allows heuristic freshness (RFC 9111 §4.2.2).
	Heuristic bool
	// HonorRequestDirectives lets Cache-Control and Pragma of requests count.
	HonorRequestDirectives bool
	// StaleWhileRevalidate and StaleIfError are the policy's own stale windows;
	// 0 is off.
	StaleWhileRevalidate, StaleIfError time.Duration
}

func (r *Rules) ignoreAll() bool { return r.Origin == OriginIgnoreAll }

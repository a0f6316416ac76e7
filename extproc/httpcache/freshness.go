package httpcache

import "time"

const (
	// heuristicFraction of the time since the last modification is the heuristic
	// lifetime: the 10 % that RFC 9111 §4.2.2 calls typical.
	heuristicFraction = 10
	// maxHeuristic caps a heuristic lifetime.
	maxHeuristic = 24 * time.Hour
)

// Sources of a freshness lifetime, as StatedLifetime returns them.
const (
	SourceTargeted = "targeted"
	SourceSMaxAge  = "s-maxage"
	SourceMaxAge   = "max-age"
	SourceExpires  = "expires"
)

// StatedLifetime returns the freshness lifetime that the origin states, and by
// what (RFC 9111 §4.2.1; RFC 9213 §2.2): the targeted field, else s-maxage, else
// max-age, else Expires − Date. received, the local time at which the response
// came, stands in for a Date that is missing or invalid.
//
// What is malformed is stated and 0: stale. The lifetime is between 0 and 2³¹ s.
// ok is false if the origin states none.
func StatedLifetime(resp *Response, d Directives, received time.Time) (lifetime time.Duration, source string, ok bool) {
	switch {
	case d.SMaxAge.Set:
		lifetime, source = d.SMaxAge.Value, SourceSMaxAge
	case d.MaxAge.Set:
		lifetime, source = d.MaxAge.Value, SourceMaxAge
	case d.Targeted:
		return 0, "", false
	default:
		return expiresLifetime(resp, received)
	}
	if d.Targeted {
		source = SourceTargeted
	}
	return lifetime, source, true
}

// expiresLifetime is Expires − Date (RFC 9111 §4.2.1). An invalid Expires,
// especially "0", is in the past (§5.3).
func expiresLifetime(resp *Response, received time.Time) (time.Duration, string, bool) {
	expires, present, valid := fieldDate(resp.Header, "expires", received)
	if !present {
		return 0, "", false
	}
	if !valid {
		return 0, SourceExpires, true
	}
	date := dateOr(resp.Header, received)
	return min(max(0, expires.Sub(date)), maxDelta), SourceExpires, true
}

// dateOr returns the Date of a message, or the time it was received.
func dateOr(f Fields, received time.Time) time.Time {
	if date, _, ok := fieldDate(f, "date", received); ok {
		return date
	}
	return received
}

// explicit reports whether the origin marks the response as cacheable in words:
// by public, or by a lifetime that is well-formed (RFC 9111 §3).
func explicit(f Fields, d *Directives) bool {
	if d.Public || d.SMaxAge.Valid || d.MaxAge.Valid {
		return true
	}
	if d.Targeted || d.SMaxAge.Set || d.MaxAge.Set {
		return false
	}
	return f.Has("expires")
}

// HeuristicLifetime returns a tenth of the time between the last modification
// and Date (or received), at most 24 h (RFC 9111 §4.2.2). It is for statuses that
// are heuristically cacheable, or marked public, and only where StatedLifetime
// has none. A response with the old "Pragma: no-cache" gets none.
func HeuristicLifetime(resp *Response, received time.Time) (time.Duration, bool) {
	d := ResponseDirectives(resp.Header)
	if !HeuristicallyCacheable(resp.Status) && !d.Public {
		return 0, false
	}
	if !d.Present && fieldHasMember(resp.Header, "pragma", "no-cache") {
		return 0, false
	}
	modified, _, ok := fieldDate(resp.Header, "last-modified", received)
	if !ok {
		return 0, false
	}
	since := dateOr(resp.Header, received).Sub(modified)
	if since <= 0 {
		return 0, false
	}
	return min(since/heuristicFraction, maxHeuristic), true
}

// StaleWindows returns for how long after its lifetime a response may be served
// while it is being revalidated, and when the origin fails (RFC 5861; RFC 9111
// §4.2.4). 0 is off.
//
// What the origin says beats the policy, and a malformed window is none.
// must-revalidate, proxy-revalidate and no-cache forbid both. s-maxage implies
// proxy-revalidate (§5.2.2.10), so the policy's windows do not apply beside it;
// but a window that the origin itself gives there is its consent.
func StaleWindows(d Directives, r *Rules) (whileRevalidate, ifError time.Duration) {
	if r.ignoreAll() {
		return r.StaleWhileRevalidate, r.StaleIfError
	}
	if d.MustRevalidate || d.ProxyRevalidate || d.NoCache {
		return 0, 0
	}
	whileRevalidate, ifError = r.StaleWhileRevalidate, r.StaleIfError
	if d.SMaxAge.Set {
		whileRevalidate, ifError = 0, 0
	}
	if d.StaleWhileRevalidate.Set {
		whileRevalidate = d.StaleWhileRevalidate.Value
	}
	if d.StaleIfError.Set {
		ifError = d.StaleIfError.Value
	}
	return whileRevalidate, ifError
}

package httpcache

import "strconv"

// The values of Fwd: why a request went to the origin (RFC 9211 §2.2).
const (
	FwdBypass   = "bypass"
	FwdMethod   = "method"
	FwdURIMiss  = "uri-miss"
	FwdVaryMiss = "vary-miss"
	FwdMiss     = "miss"
	FwdRequest  = "request"
	FwdStale    = "stale"
	FwdPartial  = "partial"
)

// maxDetail bounds the detail of a Cache-Status member, in bytes.
const maxDetail = 128

// maxInteger is the largest Integer of a structured field (RFC 9651 §3.3.1).
const maxInteger = 999_999_999_999_999

// CacheStatus is weir's member of the Cache-Status field (RFC 9211 §2).
type CacheStatus struct {
	Hit       bool   // answered without going to the origin; then Fwd and what hangs on it are left out
	Fwd       string // one of the Fwd values
	FwdStatus int    // the origin's status; 0 if it has none
	// TTL is the freshness left, in whole seconds, negative when stale (§2.4); it
	// counts if HasTTL.
	TTL       int64
	HasTTL    bool
	Stored    bool   // the answer was stored
	Collapsed bool   // the request was collapsed with others
	Detail    string // a Reason, or other words
}

// AppendCacheStatus appends the value of Cache-Status: the members that are there
// already, then that of weir (RFC 9211 §2: each cache appends its own, the one
// nearest to the user last). existing are the joined lines, or "". If they are no
// valid list they are left out, since they would make recipients ignore the whole
// field (RFC 9651 §4.2). It allocates nothing if dst has room.
func AppendCacheStatus(dst []byte, existing string, s CacheStatus) []byte {
	if existing != "" && validList(existing) {
		dst = append(dst, existing...)
		dst = append(dst, ", "...)
	}
	dst = append(dst, "weir"...)
	switch {
	case s.Hit:
		dst = append(dst, "; hit"...)
	case s.Fwd != "":
		dst = append(dst, "; fwd="...)
		dst = appendFwd(dst, s.Fwd)
	}
	if !s.Hit && s.FwdStatus > 0 {
		dst = append(dst, "; fwd-status="...)
		dst = strconv.AppendInt(dst, int64(min(s.FwdStatus, maxInteger)), 10)
	}
	if s.HasTTL {
		dst = append(dst, "; ttl="...)
		dst = strconv.AppendInt(dst, min(max(s.TTL, -maxInteger), maxInteger), 10)
	}
	if s.Stored && !s.Hit {
		dst = append(dst, "; stored"...)
	}
	if s.Collapsed && !s.Hit {
		dst = append(dst, "; collapsed"...)
	}
	if s.Detail != "" {
		dst = append(dst, "; detail="...)
		dst = appendTokenOrString(dst, s.Detail)
	}
	return dst
}

// appendFwd writes a Token; what is none says no more than that it was a miss.
func appendFwd(dst []byte, fwd string) []byte {
	if !isSFToken(fwd) {
		fwd = FwdMiss
	}
	return append(dst, fwd...)
}

// appendTokenOrString writes a Token, or else a String with what a String cannot
// hold replaced by "?" (RFC 9211 §2.8; RFC 9651 §3.3.3).
func appendTokenOrString(dst []byte, s string) []byte {
	s = s[:min(len(s), maxDetail)]
	if isSFToken(s) {
		return append(dst, s...)
	}
	dst = append(dst, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < 0x20 || c > 0x7e:
			dst = append(dst, '?')
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

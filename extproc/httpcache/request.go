package httpcache

import (
	"strings"
	"time"
)

// CheckRequest reports whether a request passes by the cache: no look-up, no
// store, no coalescing. It allocates nothing. The content of a GET is also seen
// by the caller, as a header section that does not end the message.
//
// It does not look at credentials or Range, which depend on what is stored; see
// CredentialsForbidReuse and ParseRange.
func CheckRequest(req *Request, _ *Rules) (pass bool, reason Reason) {
	if req.Method != "GET" && req.Method != "HEAD" {
		return true, ReasonMethod
	}
	for i := range req.Header {
		if reason = fieldPasses(&req.Header[i]); reason != "" {
			return true, reason
		}
	}
	return false, ""
}

// fieldPasses gives the reason why a request with this field passes, or "".
func fieldPasses(f *Field) Reason {
	switch f.Name {
	case "upgrade":
		return ReasonUpgrade
	case "connection":
		if hasMember(f.Value, "upgrade") {
			return ReasonUpgrade
		}
	case "content-type":
		if isGRPC(f.Value) {
			return ReasonGRPC
		}
	case "x-http-method-override", "x-http-method", "x-method-override":
		return ReasonMethodOverride
	case "x-original-url", "x-rewrite-url":
		return ReasonRewrittenURL
	case "content-length":
		if trimOWS(f.Value) != "0" {
			return ReasonRequestBody
		}
	case "transfer-encoding":
		return ReasonRequestBody
	case "if-match", "if-unmodified-since":
		return ReasonOriginPrecondition
	}
	return ""
}

func isGRPC(contentType string) bool {
	const prefix = "application/grpc"
	return len(contentType) >= len(prefix) && strings.EqualFold(contentType[:len(prefix)], prefix)
}

// ReuseForbidden reports whether the request's own directives keep a stored
// response of this age and lifetime from serving it without validation (RFC 9111
// §5.2.1). They count only where the rules honour them. Pragma counts only
// without Cache-Control (§5.4).
//
// A request that says max-stale may still get a response that is past its
// lifetime; see MaxStale.
func ReuseForbidden(req *Request, r *Rules, age, lifetime time.Duration) (validate bool, reason Reason) {
	if !r.HonorRequestDirectives {
		return false, ""
	}
	d := ParseDirectives(req.Header)
	switch {
	case !d.Present:
		if fieldHasMember(req.Header, "pragma", "no-cache") {
			return true, ReasonRequestPragma
		}
	case d.NoCache:
		return true, ReasonRequestNoCache
	case d.MaxAge.Set && tooOld(&d, age, lifetime):
		return true, ReasonRequestMaxAge
	case d.MinFresh.Set && lifetime-age < d.MinFresh.Value:
		return true, ReasonRequestMinFresh
	}
	return false, ""
}

// tooOld applies max-age of a request (RFC 9111 §5.2.1.1): without max-stale
// beside it, it also wants no stale response. max-age=0 asks for validation, and
// so does what is malformed.
func tooOld(d *Directives, age, lifetime time.Duration) bool {
	return d.MaxAge.Value == 0 || age > d.MaxAge.Value || age >= lifetime && !d.MaxStale.Set
}

// MaxStale returns for how long after its lifetime a stored response may still
// serve this request because the request says so (RFC 9111 §5.2.1.2), or 0. What
// the stored response forbids stays forbidden (§4.2.4).
func MaxStale(req *Request, stored Fields, r *Rules) time.Duration {
	if !r.HonorRequestDirectives {
		return 0
	}
	asked := ParseDirectives(req.Header).MaxStale
	if !asked.Valid {
		return 0
	}
	d := ResponseDirectives(stored)
	if !r.ignoreAll() && (d.MustRevalidate || d.ProxyRevalidate || d.NoCache || d.SMaxAge.Set) {
		return 0
	}
	return asked.Value
}

// OnlyIfCached reports whether the request wants a stored response or none: a
// miss is answered with 504 (RFC 9111 §5.2.1.7). It counts only where request
// directives are honoured.
func OnlyIfCached(req *Request, r *Rules) bool {
	return r.HonorRequestDirectives && ParseDirectives(req.Header).OnlyIfCached
}

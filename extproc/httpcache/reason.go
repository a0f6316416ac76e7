package httpcache

import "slices"

// Reason says why a rule decided as it did. The set is bounded: a Reason may be a
// metric label, the detail of a Cache-Status member and a word in explain.
// [Reasons] lists them all with what they mean.
type Reason string

// Reasons why a response is not stored.
const (
	ReasonMethodNotGET        Reason = "method-not-get"
	ReasonInterim             Reason = "interim-status"
	ReasonStatusInvalid       Reason = "status-invalid"
	ReasonPartial             Reason = "partial-content"
	ReasonNotModified         Reason = "not-modified"
	ReasonStatusOfRequest     Reason = "status-of-request"
	ReasonStatusUnstorable    Reason = "status-unstorable"
	ReasonStatusNotUnderstood Reason = "status-not-understood"
	ReasonNoStore             Reason = "no-store"
	ReasonPrivate             Reason = "private"
	ReasonAuthorization       Reason = "authorization"
	ReasonRequestCookie       Reason = "request-cookie"
	ReasonRequestNoStore      Reason = "request-no-store"
	ReasonSetCookie           Reason = "set-cookie"
	ReasonVaryAny             Reason = "vary-any"
	ReasonNoCacheNoValidator  Reason = "no-cache-without-validator"
	ReasonEventStream         Reason = "event-stream"
)

// Reasons why a request passes by the cache.
const (
	ReasonMethod             Reason = "method"
	ReasonUpgrade            Reason = "upgrade"
	ReasonGRPC               Reason = "grpc"
	ReasonMethodOverride     Reason = "method-override"
	ReasonRewrittenURL       Reason = "rewritten-url"
	ReasonRequestBody        Reason = "request-body"
	ReasonOriginPrecondition Reason = "origin-precondition"
)

// Reasons why a stored response must be validated for a request, or may not
// serve it.
const (
	ReasonNoCache         Reason = "no-cache"
	ReasonRequestNoCache  Reason = "request-no-cache"
	ReasonRequestPragma   Reason = "request-pragma"
	ReasonRequestMaxAge   Reason = "request-max-age"
	ReasonRequestMinFresh Reason = "request-min-fresh"
)

// Reasons why something is allowed, or was decided the usual way.
const (
	ReasonStorable       Reason = "storable"
	ReasonMustUnderstand Reason = "must-understand"
)

// ReasonInfo explains one Reason.
type ReasonInfo struct {
	Reason  Reason
	Section string // where the rule stands, or "house rule"
	Text    string // one sentence
}

// Reasons lists every Reason that this package gives, sorted by name.
func Reasons() []ReasonInfo {
	all := slices.Concat(storeReasons(), requestReasons(), reuseReasons())
	slices.SortFunc(all, func(a, b ReasonInfo) int {
		if a.Reason < b.Reason {
			return -1
		}
		return 1
	})
	return all
}

func storeReasons() []ReasonInfo {
	return []ReasonInfo{
		{ReasonStorable, "RFC 9111 §3", "Nothing forbids storing the response."},
		{ReasonMustUnderstand, "RFC 9111 §5.2.2.3",
			"The response says must-understand and its status is understood, so no-store does not count."},
		{ReasonMethodNotGET, "RFC 9111 §3", "Only the answer to a GET is stored."},
		{ReasonInterim, "RFC 9111 §3", "The status is interim (1xx), not final."},
		{ReasonStatusInvalid, "RFC 9110 §15", "The status is no valid HTTP status code."},
		{ReasonPartial, "RFC 9111 §3.3", "The response is part of a representation."},
		{ReasonNotModified, "RFC 9111 §3", "A 304 only freshens what is stored."},
		{ReasonStatusOfRequest, "RFC 9110 §15.5",
			"The status (412, 416, 417) is about fields of this request that are not in the key."},
		{ReasonStatusUnstorable, "RFC 6585 §3 to §6", "The status (428, 429, 431, 511) must not be stored by a cache."},
		{ReasonStatusNotUnderstood, "RFC 9111 §5.2.2.3",
			"The response says must-understand and its status is not understood."},
		{ReasonNoStore, "RFC 9111 §5.2.2.5", "The response says no-store."},
		{ReasonPrivate, "RFC 9111 §5.2.2.7", "The response says private, and this cache is shared."},
		{ReasonAuthorization, "RFC 9111 §3.5",
			"The request carries Authorization and the response says neither public, s-maxage nor must-revalidate."},
		{ReasonRequestCookie, "house rule",
			"The request carries a cookie outside the key, and the origin does not mark the response as cacheable."},
		{ReasonRequestNoStore, "RFC 9111 §5.2.1.5", "The request says no-store, and request directives are honoured."},
		{ReasonSetCookie, "RFC 9111 §7.3", "The response sets a cookie, which is not to be given to others."},
		{ReasonVaryAny, "RFC 9111 §4.1", "Vary is *, or cannot be followed, so no other request matches."},
		{ReasonNoCacheNoValidator, "RFC 9111 §5.2.2.4",
			"The response says no-cache and has no validator, so it could never be used again."},
		{ReasonEventStream, "house rule", "The response is a stream of events that has no end to wait for."},
	}
}

func requestReasons() []ReasonInfo {
	return []ReasonInfo{
		{ReasonMethod, "RFC 9111 §4", "The method is neither GET nor HEAD, so the request is written through."},
		{ReasonUpgrade, "RFC 9110 §7.8", "The request asks for another protocol."},
		{ReasonGRPC, "house rule", "The request is a gRPC call."},
		{ReasonMethodOverride, "house rule", "A field asks the origin to apply another method."},
		{ReasonRewrittenURL, "house rule", "A field tells the origin to look at another URL than the key's."},
		{ReasonRequestBody, "RFC 9110 §9.3.1", "The request has content, which is not part of the key."},
		{ReasonOriginPrecondition, "RFC 9111 §4.3.2",
			"If-Match and If-Unmodified-Since are for the origin to evaluate, not for a cache."},
	}
}

func reuseReasons() []ReasonInfo {
	return []ReasonInfo{
		{ReasonNoCache, "RFC 9111 §5.2.2.4", "The stored response says no-cache: it serves only after validation."},
		{ReasonRequestNoCache, "RFC 9111 §5.2.1.4", "The request says no-cache."},
		{ReasonRequestPragma, "RFC 9111 §5.4", "The request says Pragma: no-cache and has no Cache-Control."},
		{ReasonRequestMaxAge, "RFC 9111 §5.2.1.1", "The stored response is older than the request's max-age allows."},
		{ReasonRequestMinFresh, "RFC 9111 §5.2.1.3",
			"The stored response is not fresh for as long as the request's min-fresh asks."},
	}
}

package httpcache

// HeuristicallyCacheable reports whether a status code is defined as
// heuristically cacheable (RFC 9110 §15.1). 206 is one of them, but this cache
// stores no partial content.
func HeuristicallyCacheable(status int) bool {
	switch status {
	case 200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501:
		return true
	}
	return false
}

// understood reports whether this cache knows what a status code means for
// caching and conforms to it (RFC 9111 §5.2.2.3): the final codes of RFC 9110
// §15 and RFC 7725, without those that the cache never stores.
func understood(status int) bool {
	switch {
	case status >= 200 && status <= 205, status >= 300 && status <= 303, status == 305,
		status == 307, status == 308, status >= 400 && status <= 411, status >= 413 && status <= 415,
		status == 421, status == 422, status == 426, status == 451, status >= 500 && status <= 505:
		return true
	}
	return false
}

// statusForbids gives the reason why no response with this status is stored,
// whatever its fields say, or "".
func statusForbids(status int) Reason {
	switch {
	case status < 200:
		return ReasonInterim
	case status > 599:
		return ReasonStatusInvalid
	case status == 206:
		return ReasonPartial
	case status == 304:
		return ReasonNotModified
	}
	switch status {
	case 412, 416, 417:
		return ReasonStatusOfRequest
	case 428, 429, 431, 511:
		return ReasonStatusUnstorable
	}
	return ""
}

package httpcache

import "time"

// Freshen returns the fields of a stored response updated by those of a 304, or
// of a 200 to HEAD (RFC 9111 §3.2, §4.3.4, §4.3.5): each field that came replaces
// the stored one. Neither argument is changed.
//
// Fields that are not stored do not come in (§3.1). Those that the stored body
// depends on stay as they are: Content-Length, Content-Encoding, Content-Range,
// Content-MD5, Content-Digest, and an ETag that is stored. A Vary that came
// counts from now on: the caller must select the variant's values anew.
func Freshen(stored, from304 Fields) Fields {
	hadETag := stored.Has("etag")
	updates := func(name string) bool {
		return !ofStoredBody(name) && (name != "etag" || !hadETag) && !neverStored(name) && !nominated(from304, name)
	}
	out := make(Fields, 0, len(stored)+len(from304))
	for _, field := range stored {
		if !updates(field.Name) || !from304.Has(field.Name) {
			out = append(out, field)
		}
	}
	for _, field := range from304 {
		if updates(field.Name) {
			out = append(out, field)
		}
	}
	d := ResponseDirectives(out)
	return appendStorable(out[:0], out, &d)
}

// ofStoredBody reports whether a field describes the bytes that are stored, so
// that a message without content cannot change it (RFC 9111 §3.2).
func ofStoredBody(name string) bool {
	switch name {
	case "content-length", "content-encoding", "content-range", "content-md5", "content-digest":
		return true
	}
	return false
}

// Identifies reports whether a 304 is about a stored response (RFC 9111 §4.3.4):
// a strong validator must be the same; else a weak one must correspond; a 304
// without any is about a response that has none either. The caller knows whether
// that is the only one, or the most recent.
func Identifies(stored, from304 Fields) bool {
	mine, came := stored.Get("etag"), from304.Get("etag")
	if came != "" && mine != "" {
		a, b := parseETag(mine), parseETag(came)
		if !b.weak {
			return strongMatch(a, b)
		}
		return weakMatch(a, b)
	}
	mineLM, cameLM := stored.Get("last-modified"), from304.Get("last-modified")
	if cameLM != "" {
		return sameDate(mineLM, cameLM)
	}
	return came == "" && mine == "" && mineLM == ""
}

// SameStrongTag reports whether two stored responses carry the same strong entity
// tag: they are the same representation, so that the 304 that is about the one is
// about the other (RFC 9111 §4.3.4).
func SameStrongTag(a, b Fields) bool {
	mine, other := a.Get("etag"), b.Get("etag")
	return mine != "" && other != "" && strongMatch(parseETag(mine), parseETag(other))
}

// Validated reports whether the 304 that answers our own conditional request
// lets a stored response be used again (RFC 9111 §4.3.3). sent are the
// precondition fields of that request.
//
// It is so if the 304 identifies the response; if it carries no validator; and
// if the request named this one entity tag and no other, whatever tag the 304
// then carries: origins that compress are known to answer with the tag of
// another encoding.
func Validated(stored, sent, from304 Fields) bool {
	if Identifies(stored, from304) {
		return true
	}
	if !from304.Has("etag") && !from304.Has("last-modified") {
		return true
	}
	tag := stored.Get("etag")
	return tag != "" && trimOWS(tag) == trimOWS(sent.Get("if-none-match"))
}

// HeadFreshens says what a 200 to HEAD does to a stored response that could have
// been selected for it (RFC 9111 §4.3.5): update it (see Freshen) if all the
// validators and the Content-Length that came are those stored, else make it
// stale. A stored response without Content-Length matches any; the caller may
// add the length it knows.
func HeadFreshens(stored, head Fields) (ok, invalidate bool) {
	if etag := head.Get("etag"); etag != "" && etag != stored.Get("etag") {
		return false, true
	}
	if lm := head.Get("last-modified"); lm != "" && !sameDate(lm, stored.Get("last-modified")) {
		return false, true
	}
	length, stays := head.Get("content-length"), stored.Get("content-length")
	if length != "" && stays != "" && trimOWS(length) != trimOWS(stays) {
		return false, true
	}
	return true, false
}

// sameDate compares two HTTP-dates, whatever their form.
func sameDate(a, b string) bool {
	if a == b {
		return true
	}
	ta, okA := parseDate(a, time.Time{})
	tb, okB := parseDate(b, time.Time{})
	return okA && okB && ta.Equal(tb)
}

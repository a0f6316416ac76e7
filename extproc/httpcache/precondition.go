package httpcache

import (
	"slices"
	"time"
)

// Precondition says how a stored response answers a request that may be
// conditional.
type Precondition int

// The outcomes of EvaluatePreconditions.
const (
	Full        Precondition = iota // as if the request were unconditional
	NotModified                     // 304, with the fields of NotModifiedFields
)

// EvaluatePreconditions applies If-None-Match, else If-Modified-Since, to a
// stored response (RFC 9111 §4.3.2; RFC 9110 §13.2.2). Preconditions count only
// where the answer would be 2xx (§13.2.1). If-Match and If-Unmodified-Since are
// none of a cache's business (see CheckRequest). It allocates nothing unless the
// list of entity tags stands on several lines.
func EvaluatePreconditions(req Fields, stored Fields, status int) Precondition {
	if status < 200 || status > 299 {
		return Full
	}
	inm, ims := false, -1
	for i := range req {
		switch req[i].Name {
		case "if-none-match":
			inm = true
		case "if-modified-since":
			ims = i
		}
	}
	switch {
	case inm:
		return ifNoneMatch(req, stored.Get("etag"))
	case ims >= 0:
		return ifModifiedSince(req, stored)
	}
	return Full
}

func ifNoneMatch(req Fields, etag string) Precondition {
	for i := range req {
		if req[i].Name == "if-none-match" && listsETag(req[i].Value, etag) {
			return NotModified
		}
	}
	return Full
}

// ifModifiedSince compares with Last-Modified, or with Date where there is none
// (RFC 9111 §4.3.2). A value that is no single HTTP-date is ignored (RFC 9110
// §13.1.3).
func ifModifiedSince(req, stored Fields) Precondition {
	date, _, hasDate := fieldDate(stored, "date", time.Time{})
	since, _, ok := fieldDate(req, "if-modified-since", date)
	if !ok {
		return Full
	}
	modified, present, ok := fieldDate(stored, "last-modified", date)
	if !present {
		modified, ok = date, hasDate
	}
	if ok && !modified.After(since) {
		return NotModified
	}
	return Full
}

// StripConditionals returns the names of the fields that make a request
// conditional or partial, as far as it has them: a fetch that is to fill the
// cache goes without.
func StripConditionals(req Fields) (remove []string) {
	for i := range req {
		switch name := req[i].Name; name {
		case "if-none-match", "if-modified-since", "if-match", "if-unmodified-since", "if-range", "range":
			if !slices.Contains(remove, name) {
				remove = append(remove, name)
			}
		}
	}
	return remove
}

// Validators returns the fields that make a request to the origin conditional on
// a stored response: If-None-Match and If-Modified-Since with the stored values,
// byte for byte, as far as there are any (RFC 9111 §4.3.1).
func Validators(stored Fields) Fields {
	var set Fields
	if etag := trimOWS(stored.Get("etag")); etag != "" {
		set = append(set, Field{"if-none-match", etag})
	}
	if _, _, ok := fieldDate(stored, "last-modified", time.Time{}); ok {
		set = append(set, Field{"if-modified-since", stored.Get("last-modified")})
	}
	return set
}

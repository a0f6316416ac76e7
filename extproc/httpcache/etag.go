package httpcache

import "strings"

// etag is an entity tag (RFC 9110 §8.8.3).
type etag struct {
	opaque string // without quotes
	weak   bool
}

// parseETag reads one entity tag. What does not follow the grammar is taken as a
// whole: such tags are equal if they are the same bytes.
func parseETag(s string) etag {
	s = trimOWS(s)
	tag, weak := strings.CutPrefix(s, "W/")
	if len(tag) >= 2 && tag[0] == '"' && tag[len(tag)-1] == '"' {
		return etag{opaque: tag[1 : len(tag)-1], weak: weak}
	}
	return etag{opaque: s, weak: true}
}

// weakMatch is the weak comparison (RFC 9110 §8.8.3.2).
func weakMatch(a, b etag) bool { return a.opaque == b.opaque }

// strongMatch is the strong comparison (RFC 9110 §8.8.3.2).
func strongMatch(a, b etag) bool { return !a.weak && !b.weak && a.opaque == b.opaque }

// listsETag reports whether a list of entity tags, as in If-None-Match, has one
// that matches by weak comparison (RFC 9110 §13.1.2). "*" matches whatever is
// stored.
func listsETag(list, stored string) bool {
	if trimOWS(list) == "*" {
		return true
	}
	if stored == "" {
		return false
	}
	want := parseETag(stored)
	for list != "" {
		var m string
		m, list = cutETag(list)
		if m != "" && weakMatch(parseETag(m), want) {
			return true
		}
	}
	return false
}

// cutETag splits the first entity tag off a list. A comma may stand inside the
// quotes, in which nothing is escaped (RFC 9110 §8.8.3).
func cutETag(list string) (tag, rest string) {
	quoted := false
	for i := range len(list) {
		switch list[i] {
		case '"':
			quoted = !quoted
		case ',':
			if !quoted {
				return trimOWS(list[:i]), list[i+1:]
			}
		}
	}
	return trimOWS(list), ""
}

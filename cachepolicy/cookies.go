package cachepolicy

import (
	"slices"
	"strings"
)

// nextCookie cuts the first pair off a Cookie field value (RFC 6265 §4.2.1) and
// returns its name (empty if there is none) and the pair without the white space
// around it.
func nextCookie(header string) (name, pair, rest string, more bool) {
	pair, rest, more = strings.Cut(header, ";")
	pair = strings.Trim(pair, " \t")
	name, _, ok := strings.Cut(pair, "=")
	if !ok {
		name = ""
	}
	name = strings.TrimRight(name, " \t")
	return name, pair, rest, more
}

// ambiguous reports whether some origins may see other cookies in a field value
// than are seen here: those that let a quoted string run across semicolons, and
// those that divide at commas (both RFC 2109), where one of the rules' cookies
// stands behind a comma. Several lines joined with a comma are such a case.
func (r *KeyRules) ambiguous(header string) bool {
	for more := true; more; {
		var pair string
		_, pair, header, more = nextCookie(header)
		if strings.Count(pair, `"`)%2 == 1 {
			return true
		}
		for _, behind, comma := strings.Cut(pair, ","); comma; _, behind, comma = strings.Cut(behind, ",") {
			name, _, _ := strings.Cut(behind, "=")
			if slices.Contains(r.Cookies, strings.Trim(name, " \t")) {
				return true
			}
		}
	}
	return false
}

// The marks in the cookie part of a key.
const (
	cookiesChosen = 0 // for each cookie of the rules its pairs, then the end mark
	cookiesWhole  = 1 // the whole field
	cookiesEnd    = 0
	cookieFollows = 1
)

// appendCookies appends the cookies that the rules choose, every pair of the
// name in the order sent: which of two counts is the origin's affair.
func (r *KeyRules) appendCookies(b []byte, header string) []byte {
	if r.ambiguous(header) {
		return appendString(append(b, cookiesWhole), header)
	}
	b = append(b, cookiesChosen)
	for _, want := range r.Cookies {
		rest := header
		for more := true; more; {
			var name, pair string
			name, pair, rest, more = nextCookie(rest)
			if name == want {
				b = appendString(append(b, cookieFollows), pair)
			}
		}
		b = append(b, cookiesEnd)
	}
	return b
}

// CookiesOutsideKey reports whether a Cookie field value carries a cookie that
// the key does not name, or one that cannot be told for sure.
func (r *KeyRules) CookiesOutsideKey(cookieHeader string) bool {
	if len(r.Cookies) > 0 && r.ambiguous(cookieHeader) {
		return true
	}
	for more := true; more; {
		var name, pair string
		name, pair, cookieHeader, more = nextCookie(cookieHeader)
		if pair != "" && !slices.Contains(r.Cookies, name) {
			return true
		}
	}
	return false
}

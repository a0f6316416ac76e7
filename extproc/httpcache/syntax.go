package httpcache

import "strings"

// isTokenByte reports whether c may stand in a token (RFC 9110 §5.6.2).
func isTokenByte(c byte) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		return true
	}
	return strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

// isToken reports whether s is a token (RFC 9110 §5.6.2).
func isToken(s string) bool {
	for i := range len(s) {
		if !isTokenByte(s[i]) {
			return false
		}
	}
	return s != ""
}

func isOWS(c byte) bool { return c == ' ' || c == '\t' }

// trimOWS drops optional whitespace at both ends (RFC 9110 §5.6.3).
func trimOWS(s string) string {
	for s != "" && isOWS(s[0]) {
		s = s[1:]
	}
	for s != "" && isOWS(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}

// cutMember splits the first member off a comma-separated list that knows no
// quoted strings. Members are trimmed and may be empty, which recipients ignore
// (RFC 9110 §5.6.1.2).
func cutMember(list string) (member, rest string) {
	member, rest, _ = strings.Cut(list, ",")
	return trimOWS(member), rest
}

// hasMember reports whether a comma-separated list of tokens has the member,
// compared without case.
func hasMember(list, member string) bool {
	for list != "" {
		var m string
		m, list = cutMember(list)
		if strings.EqualFold(m, member) {
			return true
		}
	}
	return false
}

// fieldHasMember is hasMember over all lines of a field.
func fieldHasMember(f Fields, name, member string) bool {
	for i := range f {
		if f[i].Name == name && hasMember(f[i].Value, member) {
			return true
		}
	}
	return false
}

// fieldNames parses a list of field names. It returns nil if the list is empty
// or one of them is no token, or "*", which is meant to say all.
func fieldNames(list string) []string {
	var names []string
	for list != "" {
		var m string
		m, list = cutMember(list)
		switch {
		case m == "":
		case !isToken(m) || m == "*":
			return nil
		default:
			names = append(names, strings.ToLower(m))
		}
	}
	return names
}

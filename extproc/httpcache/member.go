package httpcache

import "strings"

// member is one element of a Cache-Control list:
// token [ "=" ( token / quoted-string ) ] (RFC 9111 §5.2).
type member struct {
	raw    string // trimmed; empty for an empty element
	name   string // what stands before "=", trimmed
	arg    string // the argument, unquoted
	hasArg bool
	ok     bool // raw follows the grammar
}

// nextMember splits the first element off a Cache-Control list.
func nextMember(list string) (m member, rest string) {
	end, nameEnd := memberEnd(list)
	m.raw = trimOWS(list[:end])
	rest = list[min(end+1, len(list)):]
	if nameEnd < 0 {
		m.name = m.raw
		m.ok = isToken(m.name)
		return m, rest
	}
	name := strings.TrimLeft(list[:nameEnd], " \t")
	m.name = trimOWS(name)
	m.hasArg = true
	var argOK bool
	// Whitespace around "=" is not part of the grammar.
	m.arg, argOK = argument(strings.TrimRight(list[nameEnd+1:end], " \t"))
	m.ok = argOK && isToken(name)
	return m, rest
}

// memberEnd returns where the first element of the list ends, and where its "="
// stands, or -1. A comma inside a quoted string does not end it; a quoted string
// can only begin an argument.
func memberEnd(list string) (end, equals int) {
	equals = -1
	for i := 0; i < len(list); i++ {
		switch c := list[i]; {
		case c == ',':
			return i, equals
		case c == '=' && equals < 0:
			equals = i
			j := i + 1
			for j < len(list) && isOWS(list[j]) {
				j++
			}
			if j < len(list) && list[j] == '"' {
				i = closingQuote(list, j)
			}
		}
	}
	return len(list), equals
}

// closingQuote returns the index of the quote that ends the quoted string which
// begins at start, or the last index of s if nothing ends it.
func closingQuote(s string, start int) int {
	for i := start + 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(s) - 1
}

// argument returns the value of a token or a quoted string.
func argument(s string) (string, bool) {
	if s == "" || s[0] != '"' {
		return s, isToken(s)
	}
	if len(s) < 2 || closingQuote(s, 0) != len(s)-1 || s[len(s)-1] != '"' {
		return s, false
	}
	s = s[1 : len(s)-1]
	if strings.IndexByte(s, '\\') < 0 {
		return s, true
	}
	return unescape(s)
}

// unescape resolves quoted pairs (RFC 9110 §5.6.4). A backslash at the very end
// quotes nothing: then the closing quote was itself escaped.
func unescape(s string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' {
			i++
			if i == len(s) {
				return s, false
			}
		}
		b.WriteByte(s[i])
	}
	return b.String(), true
}

package httpcache

import "strings"

// normaliser writes field lines in their normal form. It holds whitespace and
// commas back until it knows that something follows them. What it writes to is
// the caller's and passed through, so that it can stay on the caller's stack.
type normaliser struct {
	list, fold    bool
	quoted        bool // inside a quoted string, which even the end of a line does not end
	started       bool // something was written
	pendingComma  bool
	pendingSpaces int // within a member
}

// comma separates two members, or two lines.
func (n *normaliser) comma(dst []byte) []byte {
	if n.quoted {
		return n.write(dst, ',')
	}
	n.pendingComma = n.started
	n.pendingSpaces = 0
	return dst
}

// line appends one field line to dst.
func (n *normaliser) line(dst []byte, s string) []byte {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", " ")
	}
	s = trimOWS(s)
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case n.quoted:
		case c == ',' && n.list:
			dst = n.comma(dst)
			continue
		case isOWS(c) && n.list:
			n.pendingSpaces++
			continue
		}
		switch {
		case c == '"' && n.list:
			n.quoted = !n.quoted
		case c == '\\' && n.quoted && i+1 < len(s):
			dst = n.write(dst, c)
			i++
			c = s[i]
		}
		dst = n.write(dst, c)
	}
	return dst
}

// write appends one byte that counts, after what was held back before it.
func (n *normaliser) write(dst []byte, c byte) []byte {
	if n.pendingComma {
		dst = append(dst, ',')
	} else if n.started && n.pendingSpaces > 0 {
		dst = append(dst, ' ')
	}
	n.pendingComma, n.pendingSpaces, n.started = false, 0, true
	if n.fold && c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	return append(dst, c)
}

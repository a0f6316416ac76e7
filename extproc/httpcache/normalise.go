package httpcache

// normaliser writes field lines in their normal form. It holds whitespace and
// commas back until it knows that something follows them. What it writes to is
// the caller's and passed through, so that it can stay on the caller's stack.
type normaliser struct {
	list, fold    bool
	started       bool // something was written
	pendingComma  bool
	pendingSpaces int // within a member
}

// comma separates two members, or two lines.
func (n *normaliser) comma() {
	n.pendingComma = n.started
	n.pendingSpaces = 0
}

// line appends one field line to dst.
func (n *normaliser) line(dst []byte, s string) []byte {
	s = trimOWS(s)
	quoted := false
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == 0:
			c = ' '
		case quoted:
		case c == ',' && n.list:
			n.comma()
			continue
		case isOWS(c) && n.list:
			n.pendingSpaces++
			continue
		}
		switch {
		case c == '"' && n.list:
			quoted = !quoted
		case c == '\\' && quoted && i+1 < len(s):
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

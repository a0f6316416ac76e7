package httpcache

// normaliser writes field lines in their normal form. It holds whitespace and
// commas back until it knows that something follows them.
type normaliser struct {
	dst           []byte
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

// line takes one field line into account.
func (n *normaliser) line(s string) {
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
			n.write(c)
			i++
			c = s[i]
		}
		n.write(c)
	}
}

// write appends one byte that counts, after what was held back before it.
func (n *normaliser) write(c byte) {
	if n.pendingComma {
		n.dst = append(n.dst, ',')
	} else if n.started && n.pendingSpaces > 0 {
		n.dst = append(n.dst, ' ')
	}
	n.pendingComma, n.pendingSpaces, n.started = false, 0, true
	if n.fold && c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	n.dst = append(n.dst, c)
}

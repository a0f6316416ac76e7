package httpcache

import "github.com/dunglas/httpsfv"

// This file checks the syntax of structured fields (RFC 9651) without building
// their values: Cache-Status is checked on every hit, and httpsfv allocates. What
// hardly occurs there (Byte Sequences, Display Strings) is left to httpsfv. A fuzz
// test holds the two against each other.

// validList reports whether s is a List (RFC 9651 §3.1, §4.2.1) that is not
// empty.
func validList(s string) bool {
	p := sfParser{s: s}
	if p.list() {
		return true
	}
	if !p.rare {
		return false
	}
	_, err := httpsfv.UnmarshalList([]string{s})
	return err == nil
}

// isSFToken reports whether s is a Token (RFC 9651 §3.3.4).
func isSFToken(s string) bool {
	p := sfParser{s: s}
	return p.token() && p.end()
}

type sfParser struct {
	s    string
	i    int
	rare bool // met a type that is left to httpsfv
}

// list: members separated by commas (§4.2.1).
func (p *sfParser) list() bool {
	p.skipSP()
	for {
		if !p.member() {
			return false
		}
		p.skipOWS()
		if p.end() {
			return true
		}
		if !p.eat(',') {
			return false
		}
		p.skipOWS()
	}
}

func (p *sfParser) end() bool { return p.i == len(p.s) }

// peek returns the next byte, or 0, which no structured field contains.
func (p *sfParser) peek() byte {
	if p.end() {
		return 0
	}
	return p.s[p.i]
}

func (p *sfParser) eat(c byte) bool {
	if p.peek() != c || p.end() {
		return false
	}
	p.i++
	return true
}

func (p *sfParser) skipSP() {
	for p.eat(' ') {
	}
}

func (p *sfParser) skipOWS() {
	for p.eat(' ') || p.eat('\t') {
	}
}

// member: an Item or an Inner List, with parameters (§4.2.1.1).
func (p *sfParser) member() bool {
	if !p.eat('(') {
		return p.bareItem() && p.parameters()
	}
	for {
		p.skipSP()
		if p.eat(')') {
			return p.parameters()
		}
		if !p.bareItem() || !p.parameters() || p.peek() != ' ' && p.peek() != ')' {
			return false
		}
	}
}

// parameters: *( ";" *SP key [ "=" bare-item ] ) (§4.2.3.2).
func (p *sfParser) parameters() bool {
	for p.eat(';') {
		p.skipSP()
		if !p.key() || p.eat('=') && !p.bareItem() {
			return false
		}
	}
	return true
}

func (p *sfParser) key() bool {
	if c := p.peek(); !isLower(c) && c != '*' {
		return false
	}
	for {
		switch c := p.peek(); {
		case isLower(c), isDigit(c), c == '_', c == '-', c == '.', c == '*':
			p.i++
		default:
			return true
		}
	}
}

// bareItem (§4.2.3.1).
func (p *sfParser) bareItem() bool {
	switch c := p.peek(); {
	case c == '-' || isDigit(c):
		return p.number(true)
	case c == '"':
		return p.str()
	case c == '*' || isAlpha(c):
		return p.token()
	case c == '?':
		p.i++
		return p.eat('0') || p.eat('1')
	case c == '@':
		p.i++
		return p.number(false)
	}
	p.rare = p.rare || p.peek() == ':' || p.peek() == '%'
	return false
}

// number: Integer of at most 15 digits or, if allowed, Decimal of at most 12 and
// 1 to 3 (§4.2.4).
func (p *sfParser) number(decimal bool) bool {
	p.eat('-')
	n := p.digits()
	if n == 0 || n > 15 {
		return false
	}
	if p.peek() != '.' {
		return true
	}
	if !decimal || n > 12 {
		return false
	}
	p.i++
	fraction := p.digits()
	return fraction >= 1 && fraction <= 3
}

func (p *sfParser) digits() (n int) {
	for isDigit(p.peek()) {
		p.i++
		n++
	}
	return n
}

func (p *sfParser) str() bool {
	p.i++
	for !p.end() {
		c := p.s[p.i]
		p.i++
		switch {
		case c == '"':
			return true
		case c == '\\':
			if !p.eat('"') && !p.eat('\\') {
				return false
			}
		case c < 0x20 || c > 0x7e:
			return false
		}
	}
	return false
}

func (p *sfParser) token() bool {
	if c := p.peek(); !isAlpha(c) && c != '*' {
		return false
	}
	for c := p.peek(); c != 0 && (isTokenByte(c) || c == ':' || c == '/'); c = p.peek() {
		p.i++
	}
	return true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isLower(c byte) bool { return c >= 'a' && c <= 'z' }
func isAlpha(c byte) bool { return isLower(c) || c >= 'A' && c <= 'Z' }

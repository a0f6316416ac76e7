package httpcache

import (
	"strings"
	"unicode/utf8"
)

// binary: Byte Sequence, base64 between colons (RFC 9651 §4.2.7). Padding may be
// absent, as recipients are advised to allow.
func (p *sfParser) binary() bool {
	p.i++
	end := strings.IndexByte(p.s[p.i:], ':')
	if end < 0 {
		return false
	}
	content := p.s[p.i : p.i+end]
	p.i += end + 1
	return isBase64(content)
}

func isBase64(s string) bool {
	data := strings.TrimRight(s, "=")
	padding := len(s) - len(data)
	for i := range len(data) {
		if c := data[i]; !isAlpha(c) && !isDigit(c) && c != '+' && c != '/' {
			return false
		}
	}
	return padding == 0 && len(data)%4 != 1 || len(s)%4 == 0 && padding <= 2
}

// display: Display String, percent-encoded UTF-8 in quotes (RFC 9651 §4.2.10).
func (p *sfParser) display() bool {
	p.i++
	if !p.eat('"') {
		return false
	}
	var buf [utf8.UTFMax]byte // the bytes of the character at hand
	n := 0
	for !p.end() {
		c := p.s[p.i]
		p.i++
		switch {
		case c < 0x20 || c > 0x7e:
			return false
		case c == '"':
			return n == 0
		case c == '%':
			if p.i+2 > len(p.s) {
				return false
			}
			high, low := lowerHex(p.s[p.i]), lowerHex(p.s[p.i+1])
			if high < 0 || low < 0 {
				return false
			}
			c = byte(high<<4 | low)
			p.i += 2
		}
		if n == len(buf) {
			return false
		}
		buf[n] = c
		n++
		if utf8.FullRune(buf[:n]) {
			if r, size := utf8.DecodeRune(buf[:n]); r == utf8.RuneError && size == 1 || size != n {
				return false
			}
			n = 0
		}
	}
	return false
}

// lowerHex returns the value of a lower-case hexadecimal digit, or -1.
func lowerHex(c byte) int {
	switch {
	case isDigit(c):
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	}
	return -1
}

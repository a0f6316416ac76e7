package cachepolicy

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"
)

// keyVersion begins every canonical key. It changes with the encoding, so that
// releases never take each other's keys for their own.
const keyVersion = 1

// keyBuffer holds most keys on the stack while they are built.
const keyBuffer = 512

// BuildKey returns the cache key of a request.
//
// The encoding is injective: version, scope, hash of the rules, scheme, host,
// target, forwarding fields, chosen fields, chosen cookies; each string with its
// length before it, each optional one with a mark of presence (absent differs
// from empty). The hash of the rules stands before what they choose, so that
// the same bytes never come from two sets of rules.
//
// Two requests share a key only if they agree in all of this, but for what RFC
// 9110 §4.2.3 calls equivalent: the case of scheme and host, and the scheme's
// default port; and for query parameters the rules leave out. Percent-encoding
// and the order of parameters are untouched.
//
// Fields that origins build links from are always part of the key when present:
// X-Forwarded-Host, -Port, -Prefix, Forwarded; X-Forwarded-Proto, which Envoy
// always sends, when it contradicts the scheme. X-Forwarded-For is not.
func BuildKey(rules *KeyRules, in KeyInput) Key {
	var stack [keyBuffer]byte
	b := append(stack[:0], keyVersion)
	b = appendString(b, in.Scope)
	b = appendString(b, rules.Hash)
	b = appendLower(b, in.Scheme)
	b = appendLower(b, withoutDefaultPort(in.Scheme, in.Authority))
	b = rules.Query.appendTarget(b, in.Path)
	b = appendField(b, in.Header, "x-forwarded-host")
	b = appendField(b, in.Header, "x-forwarded-port")
	b = appendField(b, in.Header, "x-forwarded-prefix")
	b = appendField(b, in.Header, "forwarded")
	proto, ok := in.Header("x-forwarded-proto")
	b = appendOptional(b, proto, ok && !equalASCIIFold(proto, in.Scheme))
	for _, name := range rules.Headers {
		b = appendField(b, in.Header, name)
	}
	if len(rules.Cookies) > 0 {
		header, _ := in.Header("cookie")
		b = rules.appendCookies(b, header)
	}
	return Key{Hash: sha256.Sum256(b), Canonical: string(b)}
}

func appendField(b []byte, header HeaderLookup, name string) []byte {
	value, ok := header(name)
	return appendOptional(b, value, ok)
}

func appendOptional(b []byte, s string, present bool) []byte {
	if !present {
		return append(b, 0)
	}
	return appendString(append(b, 1), s)
}

// appendLower appends s with A-Z in lower case; the length does not change.
func appendLower(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	for i := range len(s) {
		b = append(b, lower(s[i]))
	}
	return b
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// equalASCIIFold compares without regard to the case of A-Z only; to
// strings.EqualFold "httpſ" is "https", to an origin it is not.
func equalASCIIFold(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if lower(a[i]) != lower(b[i]) {
			return false
		}
	}
	return true
}

func withoutDefaultPort(scheme, authority string) string {
	switch {
	case equalASCIIFold(scheme, "https"):
		return strings.TrimSuffix(authority, ":443")
	case equalASCIIFold(scheme, "http"):
		return strings.TrimSuffix(authority, ":80")
	}
	return authority
}

// Target returns path and query less the parameters that the rules leave out: the
// part of the target that is in the key. A query of which nothing remains is no
// query.
func (q *QueryRules) Target(target string) string {
	path, query, ok := strings.Cut(target, "?")
	if !ok || q.keepsAll() {
		return target
	}
	return string(q.appendKept(make([]byte, 0, len(target)), path, query))
}

// appendTarget appends what Target returns with its length.
func (q *QueryRules) appendTarget(b []byte, target string) []byte {
	path, query, ok := strings.Cut(target, "?")
	if !ok || q.keepsAll() {
		return appendString(b, target)
	}
	// The length comes first but is known last: write it behind, then turn the
	// two around.
	start := len(b)
	return insertLength(q.appendKept(b, path, query), start)
}

// appendKept appends the path and the parameters of the query that are in the key.
func (q *QueryRules) appendKept(b []byte, path, query string) []byte {
	b = append(b, path...)
	separator := byte('?')
	for more := true; more; {
		var parameter string
		parameter, query, more = strings.Cut(query, "&")
		if q.keeps(parameter) {
			b = append(append(b, separator), parameter...)
			separator = '&'
		}
	}
	return b
}

// insertLength puts the length of b[start:] before it.
func insertLength(b []byte, start int) []byte {
	var length [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(length[:], uint64(len(b)-start))
	return slices.Insert(b, start, length[:n]...)
}

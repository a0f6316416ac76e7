package cachepolicy

import "encoding/binary"

// HeaderLookup returns all lines of a request header field joined with ", "
// (RFC 9110 §5.3) and whether the field is present. The name is lower case.
type HeaderLookup func(name string) (value string, ok bool)

// KeyInput is the part of a request that a key is made of.
type KeyInput struct {
	Scope     string // of the binding: namespace, route and a hash of the rule's matches
	Scheme    string
	Authority string // as received; lower-cased and freed of the default port by BuildKey
	Path      string // path and query as received
	Header    HeaderLookup
}

// Key identifies one cached resource under one policy binding. Hash is the
// SHA-256 of Canonical; Canonical is an injective encoding that readers compare
// in full, so that no two requests that differ can share an answer.
type Key struct {
	Hash      [32]byte
	Canonical string
}

// scope reads the scope off a canonical key (see BuildKey).
func (k *Key) scope() (string, bool) {
	if k.Canonical == "" {
		return "", false
	}
	s := k.Canonical[1:]
	length, size := binary.Uvarint([]byte(s[:min(len(s), binary.MaxVarintLen64)]))
	if size <= 0 || length > uint64(len(s)-size) {
		return "", false
	}
	return s[size : size+int(length)], true
}

package cachepolicy

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

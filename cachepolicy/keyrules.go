package cachepolicy

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
)

// QueryMode says what the query matchers name.
type QueryMode string

// The modes of key.query.mode.
const (
	QueryExclude QueryMode = "Exclude" // all parameters but the named are in the key
	QueryInclude QueryMode = "Include" // none but the named are
)

// MatchType says how a parameter name is compared.
type MatchType string

// The values of key.query.names[].type.
const (
	MatchExact  MatchType = "Exact"
	MatchPrefix MatchType = "Prefix"
)

// NameMatcher matches a query parameter's name, byte by byte as it was sent.
type NameMatcher struct {
	Type  MatchType
	Value string
}

// Matches reports whether the name matches.
func (m *NameMatcher) Matches(name string) bool {
	if m.Type == MatchPrefix {
		return strings.HasPrefix(name, m.Value)
	}
	return name == m.Value
}

// QueryRules say which query parameters are in the key.
type QueryRules struct {
	Mode  QueryMode
	Names []NameMatcher
}

// String returns the rules in a form in which no two that differ are alike.
func (q *QueryRules) String() string {
	b := []byte(q.Mode)
	for _, n := range q.Names {
		b = strconv.AppendQuote(append(append(append(b, ' '), n.Type...), ' '), n.Value)
	}
	return string(b)
}

// keepsAll reports whether the rules leave every query as it is.
func (q *QueryRules) keepsAll() bool { return q.Mode != QueryInclude && len(q.Names) == 0 }

// keeps reports whether a parameter is in the key. One with a semicolon always
// is: to some origins it is several parameters, and what rides in such a way
// behind an excluded name would shape the answer without being in the key.
func (q *QueryRules) keeps(parameter string) bool {
	name, _, _ := strings.Cut(parameter, "=")
	for i := range q.Names {
		if q.Names[i].Matches(name) {
			return q.Mode == QueryInclude || strings.Contains(parameter, ";")
		}
	}
	return q.Mode != QueryInclude || strings.Contains(parameter, ";")
}

// KeyRules are the compiled key block: what of a request is in its key, beside
// scheme, host and path. They are sorted, so that the order in which a policy
// names things moves no key.
type KeyRules struct {
	Query   QueryRules
	Headers []string // lower case, sorted
	Cookies []string // sorted
	Hash    string   // of the above; 32 hex digits
}

func compileKey(k v1alpha1.Key) KeyRules {
	q := deref(k.Query)
	rules := KeyRules{
		Query:   QueryRules{Mode: QueryMode(or(q.Mode, v1alpha1.QueryMode(QueryExclude)))},
		Cookies: slices.Sorted(slices.Values(k.Cookies)),
	}
	for _, h := range k.Headers {
		rules.Headers = append(rules.Headers, strings.ToLower(string(h)))
	}
	slices.Sort(rules.Headers)
	for _, n := range q.Names {
		rules.Query.Names = append(rules.Query.Names,
			NameMatcher{Type: MatchType(or(n.Type, v1alpha1.MatchType(MatchExact))), Value: n.Value})
	}
	slices.SortFunc(rules.Query.Names, func(a, b NameMatcher) int {
		return strings.Compare(string(a.Type)+a.Value, string(b.Type)+b.Value)
	})
	rules.Hash = rules.hash()
	return rules
}

// hash is over an injective encoding: every list with its length, every string
// with its own.
func (r *KeyRules) hash() string {
	b := appendString(nil, string(r.Query.Mode))
	b = binary.AppendUvarint(b, uint64(len(r.Query.Names)))
	for _, n := range r.Query.Names {
		b = appendString(appendString(b, string(n.Type)), n.Value)
	}
	for _, list := range [][]string{r.Headers, r.Cookies} {
		b = binary.AppendUvarint(b, uint64(len(list)))
		for _, s := range list {
			b = appendString(b, s)
		}
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

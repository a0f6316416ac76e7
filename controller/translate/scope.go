package translate

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/weirproxy/weir/cachepolicy/feed"
)

// scopeHashBytes is how much of the hash of a rule's matches is in its scope: two rules
// of one route that collide would share entries.
const scopeHashBytes = 16

// scope returns the first part of the keys of a rule: namespace, kind and name of its
// route, and a hash of its matches. Neither the rule's place nor its name is in it, nor
// the order of the matches: moving a rule moves no entry.
func scope(route Target, matches []feed.Match) string {
	encoded := make([]string, 0, max(1, len(matches)))
	for i := range matches {
		encoded = append(encoded, encodeMatch(&matches[i]))
	}
	if len(encoded) == 0 {
		encoded = append(encoded, encodeMatch(&feed.Match{}))
	}
	slices.Sort(encoded)
	encoded = slices.Compact(encoded)
	h := sha256.New()
	for _, m := range encoded {
		h.Write(appendPart(nil, m))
	}
	return route.Namespace + "/" + strings.ToLower(route.Kind) + "/" + route.Name + "/" +
		hex.EncodeToString(h.Sum(make([]byte, 0, sha256.Size))[:scopeHashBytes])
}

// encodeMatch is injective: every part has its length before it.
func encodeMatch(m *feed.Match) string {
	b := make([]byte, 0, 64)
	if m.Path == nil {
		b = appendPart(appendPart(b, "PathPrefix"), "/")
	} else {
		b = appendPart(appendPart(b, m.Path.Type), m.Path.Value)
	}
	b = appendPart(b, m.Method)
	b = appendValues(b, m.Headers)
	b = appendValues(b, m.Query)
	return string(b)
}

func appendValues(b []byte, values []feed.ValueMatch) []byte {
	b = binary.AppendUvarint(b, uint64(len(values)))
	sorted := slices.SortedFunc(slices.Values(values), func(x, y feed.ValueMatch) int {
		return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Type, y.Type), cmp.Compare(x.Value, y.Value))
	})
	for _, v := range sorted {
		b = appendPart(appendPart(appendPart(b, v.Type), v.Name), v.Value)
	}
	return b
}

func appendPart(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

package httpcache

import (
	"slices"
	"strings"
)

// maxVaryNames bounds the fields that one Vary may name. More of them would make
// every request a variant of its own.
const maxVaryNames = 32

// Absent is the value that Select gives for a field that a request does not
// have. No field value equals it, not even an empty one.
const Absent = "\x00"

// Vary is what the Vary field of a response says (RFC 9110 §12.5.5).
type Vary struct {
	// Names are the selecting fields: lower case, sorted, unique.
	Names []string
	// Any says that no other request matches: "*", a member that is no field
	// name, or more than 32 of them.
	Any bool
}

// ParseVary reads all lines of Vary.
func ParseVary(resp Fields) Vary {
	var v Vary
	for i := range resp {
		if resp[i].Name != "vary" {
			continue
		}
		for list := resp[i].Value; list != ""; {
			var m string
			m, list = cutMember(list)
			switch {
			case m == "":
			case m == "*" || !isToken(m):
				return Vary{Any: true}
			default:
				v.Names = append(v.Names, strings.ToLower(m))
			}
		}
	}
	slices.Sort(v.Names)
	v.Names = slices.Compact(v.Names)
	if len(v.Names) > maxVaryNames {
		return Vary{Any: true}
	}
	return v
}

// Select returns the normalised values that a request has for the selecting
// fields, in the order of Names, Absent for those it does not have.
func (v Vary) Select(req Fields) []string {
	if len(v.Names) == 0 {
		return nil
	}
	values := make([]string, len(v.Names))
	for i, name := range v.Names {
		values[i] = Absent
		if norm, ok := appendNormalised(nil, req, name); ok {
			values[i] = string(norm)
		}
	}
	return values
}

// SameVariant reports whether a request selects the response that was stored for
// a request with these values of the named fields (RFC 9111 §4.1). Values are
// those of Select; they are compared in full, field by field.
func SameVariant(names, values []string, req Fields) bool {
	if len(names) != len(values) {
		return false
	}
	for i, name := range names {
		if !sameValue(name, values[i], req) {
			return false
		}
	}
	return true
}

func sameValue(name, value string, req Fields) bool {
	var buf [256]byte // on the stack: a usual value costs no allocation
	norm, ok := appendNormalised(buf[:0], req, name)
	if !ok {
		return value == Absent
	}
	return string(norm) == value
}

// appendNormalised appends the normalised value of a request field and reports
// whether it is present. What RFC 9111 §4.1 calls a match gives the same bytes:
// lines joined in order, whitespace around them removed and, where the field is a
// list, around the commas outside quoted strings, empty members dropped; letters
// in lower case where the field has none that count. The order of members stays:
// an origin may well prefer the first of equals. NUL, which no value may contain
// (RFC 9110 §5.5), becomes a space.
func appendNormalised(dst []byte, req Fields, name string) ([]byte, bool) {
	n := normaliser{list: !singleton(name), fold: caseInsensitive(name)}
	present := false
	for i := range req {
		if req[i].Name != name {
			continue
		}
		if present {
			dst = n.comma(dst)
		}
		present = true
		dst = n.line(dst, req[i].Value)
	}
	return dst, present
}

// singleton reports whether whitespace beside a comma may be part of the value:
// the field is no list.
func singleton(name string) bool {
	switch name {
	case "user-agent", "cookie", "authorization", "proxy-authorization", "referer", "date",
		"if-modified-since", "if-unmodified-since", "if-range":
		return true
	}
	return false
}

// caseInsensitive reports whether letters in the whole value compare without
// case: content codings, charsets and language ranges (RFC 9110 §8.4.1, §8.3.2,
// §8.5.1).
func caseInsensitive(name string) bool {
	switch name {
	case "accept-encoding", "accept-charset", "accept-language":
		return true
	}
	return false
}

package httpcache

import "strings"

// Field is one header field line. Name is lower case, as HTTP/2 and Envoy give it.
type Field struct {
	Name, Value string
}

// Fields are header field lines in the order received, without pseudo-headers.
// A Fields value that was handed on is read-only.
type Fields []Field

// Get returns the first line of the field, or "".
func (f Fields) Get(name string) string {
	for i := range f {
		if f[i].Name == name {
			return f[i].Value
		}
	}
	return ""
}

// Has reports whether the field is present.
func (f Fields) Has(name string) bool {
	for i := range f {
		if f[i].Name == name {
			return true
		}
	}
	return false
}

// Joined returns all lines of the field joined with ", " (RFC 9110 §5.3), and
// whether the field is present. One line costs no allocation.
func (f Fields) Joined(name string) (string, bool) {
	first := -1
	for i := range f {
		if f[i].Name != name {
			continue
		}
		if first < 0 {
			first = i
			continue
		}
		return f.join(name), true
	}
	if first < 0 {
		return "", false
	}
	return f[first].Value, true
}

func (f Fields) join(name string) string {
	var b strings.Builder
	for i := range f {
		if f[i].Name == name {
			if b.Len() > 0 {
				b.WriteString(", ")
			}
			b.WriteString(f[i].Value)
		}
	}
	return b.String()
}

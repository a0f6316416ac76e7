package store

import (
	"slices"
	"strings"
	"unique"
	"unsafe"

	"github.com/weirproxy/weir/extproc/httpcache"
)

// Packed returns a copy of the entry, on the same body, that holds on to no
// memory but its own: the header's text is that of Wire as far as it is found
// there, other text that differs from entry to entry lies in one string, and
// names that recur are shared. Wire is not copied: it must be the entry's own,
// and nobody may write to it. Stores keep packed entries, so that Size is what
// an entry costs and no caller can reach into what is stored.
func (e *Entry) Packed() *Entry {
	p := *e
	wire := e.wireText()
	p.Header = textFrom(wire, e.Header)
	var own strings.Builder
	own.Grow(int(p.textLen()))
	p.eachText(func(s *string) { own.WriteString(*s) })
	text := own.String()
	p.Vary.Names, p.VaryValues, p.Tags = sharedArray(e.Vary.Names, e.VaryValues, e.Tags)
	p.eachText(func(s *string) {
		*s, text = text[:len(*s)], text[len(*s):]
	})
	p.Policy = shared(e.Policy)
	for i := range p.Vary.Names {
		p.Vary.Names[i] = shared(p.Vary.Names[i])
	}
	return &p
}

// eachText calls f with all text that Packed puts into one string. The lists
// that hold it must be the entry's own if f changes it.
func (e *Entry) eachText(f func(*string)) {
	f(&e.Key.Canonical)
	f(&e.URI)
	wire := e.wireText()
	for i := range e.Header {
		if v := &e.Header[i].Value; !within(wire, *v) {
			f(v)
		}
	}
	for i := range e.VaryValues {
		f(&e.VaryValues[i])
	}
	for i := range e.Tags {
		f(&e.Tags[i])
	}
}

// textLen returns the length of that text.
func (e *Entry) textLen() int64 {
	n := 0
	e.eachText(func(s *string) { n += len(*s) })
	return int64(n)
}

// wireText returns the part of Wire before the body, without copying.
func (e *Entry) wireText() string {
	wire := e.Wire
	if e.Body != nil && e.Body.within(wire) {
		wire = wire[:int64(len(wire))-e.Body.Len()]
	}
	return unsafe.String(unsafe.SliceData(wire), len(wire))
}

// textFrom returns a copy of h whose strings lie in text where they are found
// there in the same order; other names are shared, other values the given ones.
func textFrom(text string, h httpcache.Fields) httpcache.Fields {
	out := slices.Clone(h)
	for i, f := range h {
		rest := text
		name, ok := cut(&rest, f.Name)
		if !ok {
			name = shared(f.Name)
		}
		out[i].Name = name
		if value, ok := cut(&rest, f.Value); ok {
			out[i].Value, text = value, rest
		}
	}
	return out
}

// cut finds s in *text, removes all up to its end from *text, and returns it.
func cut(text *string, s string) (string, bool) {
	at := strings.Index(*text, s)
	if at < 0 {
		return "", false
	}
	found := (*text)[at : at+len(s)]
	*text = (*text)[at+len(s):]
	return found, true
}

// within reports whether s lies in the memory of text.
func within(text, s string) bool {
	if s == "" || text == "" {
		return s == ""
	}
	begin, at := uintptr(unsafe.Pointer(unsafe.StringData(text))), uintptr(unsafe.Pointer(unsafe.StringData(s)))
	return at >= begin && at+uintptr(len(s)) <= begin+uintptr(len(text))
}

// shared returns a string equal to s that entries stored about the same time have
// in common.
func shared(s string) string { return unique.Make(s).Value() }

// sharedArray copies the lists into one array.
func sharedArray(names, values, tags []string) (n, v, t []string) {
	all := slices.Concat(names, values, tags)
	if len(all) == 0 {
		return nil, nil, nil
	}
	end := len(names) + len(values)
	return all[:len(names):len(names)], all[len(names):end:end], all[end:]
}

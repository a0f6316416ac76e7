package store

import (
	"strings"
	"unique"

	"github.com/weirproxy/weir/extproc/httpcache"
)

// Packed returns a copy of the entry, on the same body, that holds on to no
// memory but its own: text that differs from entry to entry lies in one string,
// names that recur are shared. Wire is not copied: it must be the entry's own.
// Stores keep packed entries, so that Size is what an entry costs and no caller
// can reach into what is stored.
func (e *Entry) Packed() *Entry {
	p := *e
	var text strings.Builder
	text.Grow(int(e.textLen()))
	text.WriteString(e.Key.Canonical)
	text.WriteString(e.URI)
	for _, f := range e.Header {
		text.WriteString(f.Value)
	}
	for _, list := range [][]string{e.VaryValues, e.Tags} {
		for _, s := range list {
			text.WriteString(s)
		}
	}
	cut := cutter{text: text.String()}
	p.Key.Canonical = cut.next(len(e.Key.Canonical))
	p.URI = cut.next(len(e.URI))
	p.Policy = unique.Make(e.Policy).Value()
	p.Header = make(httpcache.Fields, len(e.Header))
	for i, f := range e.Header {
		p.Header[i] = httpcache.Field{Name: unique.Make(f.Name).Value(), Value: cut.next(len(f.Value))}
	}
	p.Vary.Names, p.VaryValues, p.Tags = packLists(&cut, e)
	return &p
}

// packLists puts the three lists of strings into one array.
func packLists(cut *cutter, e *Entry) (names, values, tags []string) {
	n, v := len(e.Vary.Names), len(e.VaryValues)
	if n+v+len(e.Tags) == 0 {
		return nil, nil, nil
	}
	all := make([]string, 0, n+v+len(e.Tags))
	for _, s := range e.Vary.Names {
		all = append(all, unique.Make(s).Value())
	}
	for _, list := range [][]string{e.VaryValues, e.Tags} {
		for _, s := range list {
			all = append(all, cut.next(len(s)))
		}
	}
	return all[:n:n], all[n : n+v : n+v], all[n+v:]
}

// textLen is the length of the text that Packed keeps in one string.
func (e *Entry) textLen() int64 {
	n := len(e.Key.Canonical) + len(e.URI)
	for _, f := range e.Header {
		n += len(f.Value)
	}
	for _, list := range [][]string{e.VaryValues, e.Tags} {
		for _, s := range list {
			n += len(s)
		}
	}
	return int64(n)
}

// cutter cuts a string into pieces from the left.
type cutter struct{ text string }

func (c *cutter) next(n int) string {
	piece := c.text[:n]
	c.text = c.text[n:]
	return piece
}

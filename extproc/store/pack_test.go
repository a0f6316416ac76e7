package store

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/httpcache"
)

// ordinary returns an entry whose text lies in one large buffer, as text that was
// cut out of a message does.
func ordinary(buffer string) *Entry {
	return &Entry{
		Key: cachepolicy.Key{Hash: [32]byte{1}, Canonical: buffer[:9]}, URI: buffer[9:20],
		Vary:       httpcache.Vary{Names: []string{"accept"}},
		VaryValues: []string{buffer[20:25]}, Tags: []string{buffer[25:28], buffer[28:30]},
		Header: httpcache.Fields{
			{Name: "content-type", Value: buffer[30:40]},
			{Name: "x-empty", Value: ""},
			{Name: "etag", Value: buffer[40:45]},
		},
		Body: WholeBody([]byte("body")), ResponseTime: noon(), Lifetime: time.Minute, Policy: "shop/catalog",
	}
}

func sameEntry() cmp.Options {
	return cmp.Options{cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Entry{}, "Body")}
}

func eachString(e *Entry, f func(string)) {
	f(e.Key.Canonical)
	f(e.URI)
	f(e.Policy)
	for _, field := range e.Header {
		f(field.Name)
		f(field.Value)
	}
	for _, list := range [][]string{e.Vary.Names, e.VaryValues, e.Tags} {
		for _, s := range list {
			f(s)
		}
	}
}

func TestPackedHoldsNothingOfTheCaller(t *testing.T) {
	t.Parallel()
	buffer := strings.Repeat("abcdefghijklmnopqrstuvwxyz", 100)
	e := ordinary(buffer)
	p := e.Packed()
	if diff := cmp.Diff(e, p, sameEntry()); diff != "" {
		t.Errorf("Packed differs (-given +packed):\n%s", diff)
	}
	if p.Body != e.Body {
		t.Error("Packed has another body")
	}
	eachString(p, func(s string) {
		if s != "" && within(buffer, s) {
			t.Errorf("%q still lies in the caller's buffer", s)
		}
	})
	e.Header[0].Value, e.Tags[0], e.VaryValues[0], e.Vary.Names[0] = "x", "x", "x", "x"
	if diff := cmp.Diff(ordinary(buffer), p, sameEntry()); diff != "" {
		t.Errorf("a change of the given entry shows (-want +got):\n%s", diff)
	}
}

// TestPackedUsesTheTextOfWire: header text that is on the wire is held once.
func TestPackedUsesTheTextOfWire(t *testing.T) {
	t.Parallel()
	buffer := strings.Repeat("abcdefghijklmnopqrstuvwxyz", 4)
	e := ordinary(buffer)
	head := "\x01content-type\x02" + e.Header[0].Value + "\x03etag\x04" + e.Header[2].Value + "\x05"
	e.Wire = []byte(head + "body")
	e.Body = WholeBody(e.Wire[len(head):])
	p := e.Packed()
	if diff := cmp.Diff(e, p, sameEntry()); diff != "" {
		t.Errorf("Packed differs (-given +packed):\n%s", diff)
	}
	wire := p.wireText()
	if wire != head {
		t.Fatalf("the text of wire is %q", wire)
	}
	for _, f := range []httpcache.Field{p.Header[0], p.Header[2]} {
		if !within(wire, f.Name) || !within(wire, f.Value) {
			t.Errorf("field %v is held twice", f)
		}
	}
	without := *e
	without.Wire, without.Body = nil, WholeBody([]byte("body"))
	text := int64(len(e.Header[0].Value) + len(e.Header[2].Value))
	if got, want := p.textLen(), without.Packed().textLen()-text; got != want {
		t.Errorf("%d bytes of text of its own, want %d", got, want)
	}
}

// TestPackedEqualsGiven, whatever the wire holds: names, values, parts of them,
// in any order.
func TestPackedEqualsGiven(t *testing.T) {
	t.Parallel()
	word := rapid.SampledFrom([]string{"", "a", "b", "ab", "ba", "aab", "abab"})
	rapid.Check(t, func(t *rapid.T) {
		e := &Entry{
			URI: word.Draw(t, "uri"), Body: WholeBody(nil), Policy: word.Draw(t, "policy"),
			Wire: []byte(strings.Join(rapid.SliceOfN(word, 0, 6).Draw(t, "wire"), "")),
			Vary: httpcache.Vary{Names: rapid.SliceOfN(word, 0, 2).Draw(t, "vary")},
			Tags: rapid.SliceOfN(word, 0, 3).Draw(t, "tags"),
		}
		e.Key.Canonical = word.Draw(t, "key")
		e.VaryValues = e.Vary.Names
		for range rapid.IntRange(0, 5).Draw(t, "fields") {
			e.Header = append(e.Header, httpcache.Field{Name: word.Draw(t, "name"), Value: word.Draw(t, "value")})
		}
		if diff := cmp.Diff(e, e.Packed(), sameEntry()); diff != "" {
			t.Fatalf("Packed differs (-given +packed):\n%s", diff)
		}
		if diff := cmp.Diff(e, e.Packed().Packed(), sameEntry()); diff != "" {
			t.Fatalf("Packed twice differs (-given +packed):\n%s", diff)
		}
	})
}

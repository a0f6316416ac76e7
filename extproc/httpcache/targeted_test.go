package httpcache

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// RFC 9213 §2.1, §2.2. Cache-Control says "public" in each case, so a want with
// Public shows that the targeted field was ignored.
func TestResponseDirectivesTargeted(t *testing.T) {
	t.Parallel()
	ignored := Directives{Present: true, Public: true}
	targeted := func(d Directives) Directives {
		d.Present, d.Targeted = true, true
		return d
	}
	for _, tt := range []struct {
		name  string
		lines []string
		want  Directives
	}{
		{"absent", nil, ignored},
		{"valid: Cache-Control does not count", []string{"max-age=5"}, targeted(Directives{MaxAge: delta(5)})},
		{"several lines", []string{"max-age=5", "must-revalidate"},
			targeted(Directives{MaxAge: delta(5), MustRevalidate: true})},
		{"all that must be known", []string{"max-age=5, must-revalidate, no-store, no-cache, private"},
			targeted(Directives{MaxAge: delta(5), MustRevalidate: true, NoStore: true, NoCache: true, Private: true})},
		{"and what should", []string{"s-maxage=1, public, proxy-revalidate, must-understand, " +
			"stale-while-revalidate=2, stale-if-error=3"},
			targeted(Directives{SMaxAge: delta(1), Public: true, ProxyRevalidate: true, MustUnderstand: true,
				StaleWhileRevalidate: delta(2), StaleIfError: delta(3)})},
		{"unknown directives, whatever their type", []string{`foobar, a=1.5, b=(1 2), c="x";y, max-age=5`},
			targeted(Directives{MaxAge: delta(5)})},
		{"RFC 9213 §3.1: none is a way to say nothing", []string{"none"}, targeted(Directives{})},
		{"parameters are ignored", []string{"max-age=5;x=y, no-store;a"},
			targeted(Directives{MaxAge: delta(5), NoStore: true})},
		{"RFC 9651 §3.2: of two members the last", []string{"max-age=5, max-age=6"},
			targeted(Directives{MaxAge: delta(6)})},
		{"15 digits", []string{"max-age=999999999999999"}, targeted(Directives{MaxAge: delta(1 << 31)})},
		{"fields in a String", []string{`no-cache="A, b", private="c"`},
			targeted(Directives{NoCacheFields: []string{"a", "b"}, PrivateFields: []string{"c"}})},
		{"fields as a Token", []string{"no-cache=a"}, targeted(Directives{NoCacheFields: []string{"a"}})},
		{"a negative lifetime is stale", []string{"max-age=-5"}, targeted(Directives{MaxAge: badDelta})},

		{"empty", []string{""}, ignored},
		{"only spaces", []string{"  "}, ignored},
		{"no structured field", []string{"&&"}, ignored},
		{"broken at the end", []string{"max-age=5, &&&&&"}, ignored},
		{"a trailing comma", []string{"max-age=5,"}, ignored},
		{"16 digits", []string{"max-age=9999999999999999"}, ignored},
		{"an upper-case key", []string{"MaX-aGe=5"}, ignored},
		{"space before =", []string{"max-age =5"}, ignored},
		{"space after =", []string{"max-age= 5"}, ignored},
		{"a semicolon that is no parameter", []string{"public; max-age"}, targeted(Directives{Public: true})},

		{"a String for a lifetime", []string{`max-age="5"`}, ignored},
		{"a Decimal for a lifetime", []string{"max-age=5.0"}, ignored},
		{"a Token for a lifetime", []string{"max-age=five"}, ignored},
		{"no value for a lifetime", []string{"max-age"}, ignored},
		{"a list for a lifetime", []string{"max-age=(5)"}, ignored},
		{"false", []string{"no-store=?0"}, ignored},
		{"an Integer for no-store", []string{"no-store=1"}, ignored},
		{"false for private", []string{"private=?0"}, ignored},
		{"an Integer for private", []string{"private=1"}, ignored},
		{"a list for no-cache", []string{`no-cache=("a")`}, ignored},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := fields("Cache-Control: public")
			for _, line := range tt.lines {
				f = append(f, Field{"cdn-cache-control", line})
			}
			if diff := cmp.Diff(tt.want, ResponseDirectives(f)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

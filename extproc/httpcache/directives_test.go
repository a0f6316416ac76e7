package httpcache

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func delta(n int64) Delta { return Delta{Set: true, Valid: true, Value: seconds(n)} }

var badDelta = Delta{Set: true}

func TestParseDirectives(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		lines []string
		want  Directives
	}{
		{"none", nil, Directives{}},
		{"empty field", []string{""}, Directives{Present: true}},
		{"RFC 9111 §5.2: names without case", []string{"MaX-aGe=60, No-StOrE"},
			Directives{MaxAge: delta(60), NoStore: true}},
		{"RFC 9111 §5.2: a token or a quoted string", []string{`max-age="60"`}, Directives{MaxAge: delta(60)}},
		{"RFC 9110 §5.6.4: quoted pairs", []string{`max-age="6\0"`}, Directives{MaxAge: delta(60)}},
		{"RFC 9110 §5.6.1: empty members", []string{" ,, max-age=60 ,\t, public,"},
			Directives{MaxAge: delta(60), Public: true}},
		{"RFC 9110 §5.3: several lines are one list", []string{"max-age=60", "s-maxage=5"},
			Directives{MaxAge: delta(60), SMaxAge: delta(5)}},
		{"a comma without a space, as Envoy joins", []string{"max-age=60,s-maxage=5"},
			Directives{MaxAge: delta(60), SMaxAge: delta(5)}},
		{"RFC 9111 §5.2.3: unknown directives", []string{`foobar, ext="a, b", x=1, max-age=60`},
			Directives{MaxAge: delta(60)}},
		{"a directive inside a quoted string is none", []string{`ext="max-age=3600, public", max-age=1`},
			Directives{MaxAge: delta(1)}},
		{"the same, the other way round", []string{`max-age=1, ext="max-age=3600"`}, Directives{MaxAge: delta(1)}},
		{"a prohibition inside a quoted string is none", []string{`ext="no-store"`}, Directives{}},
		{"an escaped quote does not end the string", []string{`ext="a\", no-store, \"b", public`},
			Directives{Public: true}},
		{"RFC 9111 §4.2.1: of two the first", []string{"max-age=60, max-age=600"}, Directives{MaxAge: delta(60)}},
		{"the first of two lines", []string{"max-age=1", "max-age=600"}, Directives{MaxAge: delta(1)}},
		{"the first, even if malformed", []string{"max-age=x, max-age=600"}, Directives{MaxAge: badDelta}},
		{"RFC 9111 §1.2.2: leading zeros", []string{"max-age=003600"}, Directives{MaxAge: delta(3600)}},
		{"RFC 9111 §1.2.2: no overflow", []string{"max-age=99999999999999999999999999"},
			Directives{MaxAge: delta(1 << 31)}},
		{"2³¹ itself", []string{"max-age=2147483648"}, Directives{MaxAge: delta(1 << 31)}},
		{"all directives of a response", []string{"public, must-revalidate, proxy-revalidate, must-understand," +
			"stale-while-revalidate=1, stale-if-error=2"},
			Directives{Public: true, MustRevalidate: true, ProxyRevalidate: true, MustUnderstand: true,
				StaleWhileRevalidate: delta(1), StaleIfError: delta(2)}},
		{"all directives of a request", []string{"only-if-cached, min-fresh=3, max-stale=4, no-cache"},
			Directives{OnlyIfCached: true, MinFresh: delta(3), MaxStale: delta(4), NoCache: true}},
		{"RFC 9111 §5.2.1.2: max-stale alone is any age", []string{"max-stale"}, Directives{MaxStale: delta(1 << 31)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			checkDirectives(t, tt.lines, tt.want)
		})
	}
}

func TestParseDirectivesMalformed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		lines []string
		want  Directives
	}{
		{"a semicolon: nothing is permitted", []string{"public; max-age=30"}, Directives{}},
		{"a semicolon: what forbids still does", []string{"private; max-age=30"}, Directives{Private: true}},
		{"a semicolon after the lifetime", []string{"max-age=30; public"}, Directives{MaxAge: badDelta}},
		{"a semicolon before must-revalidate", []string{"max-age=30; must-revalidate; x"},
			Directives{MaxAge: badDelta, MustRevalidate: true}},
		{"a semicolon before proxy-revalidate", []string{"x; Proxy-Revalidate"}, Directives{ProxyRevalidate: true}},
		{"other members are not harmed", []string{"public; x, max-age=60"}, Directives{MaxAge: delta(60)}},
		{"negative", []string{"max-age=-5"}, Directives{MaxAge: badDelta}},
		{"single quotes", []string{"max-age='60'"}, Directives{MaxAge: badDelta}},
		{"decimal", []string{"max-age=60.0"}, Directives{MaxAge: badDelta}},
		{"letters before", []string{"max-age=a60"}, Directives{MaxAge: badDelta}},
		{"letters after", []string{"s-maxage=60a"}, Directives{SMaxAge: badDelta}},
		{"no value", []string{"max-age"}, Directives{MaxAge: badDelta}},
		{"an empty value", []string{"max-age="}, Directives{MaxAge: badDelta}},
		{"an empty string", []string{`max-age=""`}, Directives{MaxAge: badDelta}},
		{"space before =", []string{"max-age =60"}, Directives{MaxAge: badDelta}},
		{"space after =", []string{"max-age= 60"}, Directives{MaxAge: badDelta}},
		{"a string that does not end", []string{`max-age="60`}, Directives{MaxAge: badDelta}},
		{"a string that ends in a backslash", []string{`max-age="60\"`}, Directives{MaxAge: badDelta}},
		{"a string with something after it", []string{`max-age="60"0`}, Directives{MaxAge: badDelta}},
		{"a string that does not end hides permissions", []string{`x="y, public, max-age=60`}, Directives{}},
		{"and no prohibitions", []string{`x="y, No-Store`}, Directives{NoStore: true}},
		{"nor those on the next line", []string{`x="y`, "no-store"}, Directives{NoStore: true}},
		{"an argument where none belongs", []string{"no-store=yes, private=*"},
			Directives{NoStore: true, Private: true}},
		{"a name that is no token", []string{"no store, (private), {no-cache}"},
			Directives{Private: true, NoCache: true}},
		{"a longer name", []string{"no-storefront, xno-store, no-store-x"}, Directives{}},
		{"non-ASCII", []string{"max-age=6０, max-age=60, ｎo-store"}, Directives{MaxAge: badDelta}},
		{"a Kelvin sign is no k", []string{"no-cac\u212ae, max-age=60"}, Directives{MaxAge: delta(60)}},
		{"control characters", []string{"no-store\x00, max-age=60"}, Directives{NoStore: true, MaxAge: delta(60)}},
		{"only quotes", []string{`"""`}, Directives{}},
		{"only an equals sign", []string{`=, ==, =""`}, Directives{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			checkDirectives(t, tt.lines, tt.want)
		})
	}
}

// RFC 9111 §5.2.2.4, §5.2.2.7: the forms that list fields.
func TestParseDirectivesQualified(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		lines []string
		want  Directives
	}{
		{"one field", []string{`no-cache="Set-Cookie"`}, Directives{NoCacheFields: []string{"set-cookie"}}},
		{"several fields", []string{`private="A, b ,,C"`}, Directives{PrivateFields: []string{"a", "b", "c"}}},
		{"the token form", []string{"no-cache=a"}, Directives{NoCacheFields: []string{"a"}}},
		{"twice", []string{`no-cache="a", no-cache="b"`}, Directives{NoCacheFields: []string{"a", "b"}}},
		{"both forms: the unqualified one holds", []string{`no-cache="a", no-cache`},
			Directives{NoCacheFields: []string{"a"}, NoCache: true}},
		{"the other order", []string{`no-cache, no-cache="a"`},
			Directives{NoCacheFields: []string{"a"}, NoCache: true}},
		{"an empty list", []string{`private=""`}, Directives{Private: true}},
		{"no field names", []string{`private="a b"`}, Directives{Private: true}},
		{"one that the response cannot do without", []string{`no-cache="a, Content-Encoding"`}, Directives{NoCache: true}},
		{"Vary is such a field too", []string{`private="vary"`}, Directives{Private: true}},
		{"a string that does not end", []string{`no-cache="a, b`}, Directives{NoCache: true}},
		{"a token form that breaks apart", []string{`private=a b`}, Directives{Private: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			checkDirectives(t, tt.lines, tt.want)
		})
	}
}

func TestParseDirectivesIndispensableFields(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Cache-Control", "CDN-Cache-Control", "Content-Encoding", "Content-Length",
		"Content-Type", "Vary"} {
		checkDirectives(t, []string{`private="a, ` + name + `"`}, Directives{Private: true})
	}
}

func checkDirectives(t *testing.T, lines []string, want Directives) {
	t.Helper()
	f := fields("x: no-store")
	for _, line := range lines {
		f = append(f, Field{"cache-control", line})
	}
	want.Present = len(lines) > 0
	if diff := cmp.Diff(want, ParseDirectives(f)); diff != "" {
		t.Errorf("ParseDirectives(%q): (-want +got)\n%s", lines, diff)
	}
}

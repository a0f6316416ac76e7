package cachepolicy_test

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirproxy/weir/cachepolicy"
)

// request is a request as a test writes it; header names are lower case.
type request struct {
	scope, scheme, host, path string
	header                    map[string]string
}

func (r request) key(rules *cachepolicy.KeyRules) cachepolicy.Key {
	return cachepolicy.BuildKey(rules, cachepolicy.KeyInput{
		Scope: r.scope, Scheme: r.scheme, Authority: r.host, Path: r.path,
		Header: func(name string) (string, bool) {
			value, ok := r.header[name]
			return value, ok
		},
	})
}

// with returns the request with one field set.
func (r request) with(name, value string) request {
	r.header = maps.Clone(r.header)
	if r.header == nil {
		r.header = map[string]string{}
	}
	r.header[name] = value
	return r
}

func get(url string) request {
	scheme, rest, _ := strings.Cut(url, "://")
	host, path, _ := strings.Cut(rest, "/")
	return request{scope: "shop/route/r", scheme: scheme, host: host, path: "/" + path}
}

func keyRules(tb testing.TB, text string) *cachepolicy.KeyRules {
	tb.Helper()
	return &compile(tb, `{key: `+text+`}`).Key
}

func TestBuildKey(t *testing.T) {
	t.Parallel()
	const (
		none    = `{}`
		exclude = `{query: {names: [{type: Prefix, value: utm_}, {value: fbclid}]}}`
		include = `{query: {mode: Include, names: [{value: id}, {type: Prefix, value: f.}]}}`
		drop    = `{query: {mode: Include}}`
		tenant  = `{headers: [X-Tenant]}`
		cookies = `{cookies: [sid, lang]}`
	)
	a := get("https://a.test/p")
	tests := []struct {
		name  string
		rules string
		a, b  request
		same  bool
	}{
		{"the same", none, a, get("https://a.test/p"), true},
		{"case of the host", none, a, get("https://A.TEST/p"), true},
		{"case of the scheme", none, a, get("HTTPS://a.test/p"), true},
		{"default port", none, a, get("https://a.test:443/p"), true},
		{"default port of the other scheme", none, a, get("https://a.test:80/p"), false},
		{"default port of http", none, get("http://a.test/p"), get("http://a.test:80/p"), true},
		{"default port after an IPv6 address", none, get("https://[::1]/p"), get("https://[::1]:443/p"), true},
		{"IPv6 address that ends like a port", none, get("http://[::80]/p"), get("http://[:]/p"), false},
		{"another port", none, a, get("https://a.test:8443/p"), false},
		{"another host", none, a, get("https://b.test/p"), false},
		{"another scheme", none, a, get("http://a.test/p"), false},
		{"another path", none, a, get("https://a.test/P"), false},
		{"percent-encoding is untouched", none, get("https://a.test/%7Ep"), get("https://a.test/~p"), false},
		{"another scope", none, a, request{scope: "shop/route/s", scheme: "https", host: "a.test", path: "/p"}, false},

		{"query", none, a, get("https://a.test/p?a=1"), false},
		{"empty query", none, a, get("https://a.test/p?"), false},
		{"order of parameters", none, get("https://a.test/p?a=1&b=2"), get("https://a.test/p?b=2&a=1"), false},
		{"all parameters excluded", exclude, a, get("https://a.test/p?utm_source=x&fbclid=y"), true},
		{"one parameter excluded", exclude, get("https://a.test/p?a=1"), get("https://a.test/p?utm_x=1&a=1&fbclid=2"), true},
		{"exact is exact", exclude, a, get("https://a.test/p?fbclid2=y"), false},
		{"an excluded parameter without a value", exclude, a, get("https://a.test/p?fbclid"), true},
		{"names are compared as sent", exclude, a, get("https://a.test/p?utm%5Fsource=x"), false},
		{"empty parameters stay", exclude, get("https://a.test/p?a=1"), get("https://a.test/p?a=1&"), false},
		{"empty query, rules or not", exclude, a, get("https://a.test/p?"), false},
		{"a semicolon hides nothing behind an excluded name", exclude,
			get("https://a.test/p?utm_x=1;a=1"), get("https://a.test/p?utm_x=1;a=2"), false},
		{"only named parameters", include, get("https://a.test/p?id=1&f.x=2"), get("https://a.test/p?id=1&x=9&f.x=2"), true},
		{"their values count", include, get("https://a.test/p?id=1"), get("https://a.test/p?id=2"), false},
		{"a semicolon hides nothing from the named", include,
			get("https://a.test/p?x=1;id=1"), get("https://a.test/p?x=1;id=2"), false},
		{"no query at all", drop, a, get("https://a.test/p?x=1&y=2"), true},

		{"a named field", tenant, a.with("x-tenant", "1"), a.with("x-tenant", "2"), false},
		{"absent differs from empty", tenant, a, a.with("x-tenant", ""), false},
		{"a field that is not named", tenant, a, a.with("x-other", "1"), true},
		{"named cookies", cookies, a.with("cookie", "sid=1; x=1"), a.with("cookie", "x=2; sid=1"), true},
		{"their values", cookies, a.with("cookie", "sid=1"), a.with("cookie", "sid=2"), false},
		{"which cookie has the value", cookies, a.with("cookie", "sid=1"), a.with("cookie", "lang=1"), false},
		{"absent cookie differs from empty", cookies, a.with("cookie", "sid="), a, false},
		{"an empty Cookie field", cookies, a.with("cookie", ""), a, true},
		{"a cookie sent twice", cookies, a.with("cookie", "sid=1; sid=2"), a.with("cookie", "sid=2; sid=1"), false},
		{"cookies that are not named", none, a, a.with("cookie", "sid=1"), true},
		{"a quote that hides a cookie from some", cookies,
			a.with("cookie", `x="; lang=de; y="`), a.with("cookie", `x=1; lang=de; y=1`), false},
		{"a quote that goes on in a cookie that is not named", cookies,
			a.with("cookie", `sid="1; x=2"`), a.with("cookie", `sid="1; x=3"`), false},
		{"two lines, joined with a comma", cookies, a.with("cookie", "x=1, sid=1"), a.with("cookie", "x=1, sid=2"), false},
		{"a comma in a value", cookies, a.with("cookie", "x=1,2; sid=1"), a.with("cookie", "x=3,4; sid=1"), true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			rules := keyRules(t, tc.rules)
			a, b := tc.a.key(rules), tc.b.key(rules)
			if got := a.Canonical == b.Canonical; got != tc.same {
				t.Errorf("same key: %v, want %v\n%+q\n%+q", got, tc.same, a.Canonical, b.Canonical)
			}
			if (a.Hash == b.Hash) != (a.Canonical == b.Canonical) || a.Hash != sha256.Sum256([]byte(a.Canonical)) {
				t.Error("Hash is not that of Canonical")
			}
		})
	}
}

// TestFieldCase10 is case 10: fields outside a naive key that shape the page.
func TestFieldCase10(t *testing.T) {
	t.Parallel()
	rules := keyRules(t, `{}`)
	plain := get("https://a.test/p").with("x-forwarded-for", "10.0.0.1").with("x-forwarded-proto", "https")
	apart := []request{plain}
	for _, name := range []string{"x-forwarded-host", "x-forwarded-port", "x-forwarded-prefix", "forwarded"} {
		apart = append(apart, plain.with(name, "evil.test"), plain.with(name, ""))
	}
	apart = append(apart, plain.with("x-forwarded-proto", "http"), plain.with("x-forwarded-proto", "evil"),
		plain.with("x-forwarded-proto", "httpſ"))
	for i := range apart {
		for j := range i {
			if apart[i].key(rules).Canonical == apart[j].key(rules).Canonical {
				t.Errorf("one key for %+v and %+v", apart[i], apart[j])
			}
		}
	}
	for _, r := range []request{
		plain.with("x-forwarded-for", "10.9.9.9"), plain.with("x-forwarded-proto", "HTTPS"), get("https://a.test/p"),
	} {
		if r.key(rules).Canonical != plain.key(rules).Canonical {
			t.Errorf("%+v and %+v have different keys", r, plain)
		}
	}
}

// TestKeyRulesHash: reordering what a policy names moves no key; naming other
// things moves all.
func TestKeyRulesHash(t *testing.T) {
	t.Parallel()
	same := []string{
		`{headers: [X-A, X-B], cookies: [c, d], query: {names: [{value: a}, {type: Prefix, value: b}]}}`,
		`{headers: [x-b, x-a], cookies: [d, c],
			query: {mode: Exclude, names: [{type: Prefix, value: b}, {type: Exact, value: a}]}}`,
	}
	if a, b := keyRules(t, same[0]), keyRules(t, same[1]); !cmp.Equal(a, b) {
		t.Errorf("rules differ by order alone: %s", cmp.Diff(a, b))
	}
	seen := map[string]string{}
	for _, text := range []string{
		`{}`, `{headers: [a]}`, `{cookies: [a]}`, `{headers: [a, b]}`, `{headers: [ab]}`, `{headers: [a], cookies: [b]}`,
		`{query: {mode: Include}}`, `{query: {names: [{value: a}]}}`, `{query: {names: [{type: Prefix, value: a}]}}`,
		`{query: {mode: Include, names: [{value: a}]}}`, same[0],
	} {
		hash := keyRules(t, text).Hash
		if other, twice := seen[hash]; twice || len(hash) != 32 {
			t.Errorf("%s and %s have the hash %q", text, other, hash)
		}
		seen[hash] = text
	}
}

func TestCookiesOutsideKey(t *testing.T) {
	t.Parallel()
	tests := []struct {
		rules, header string
		want          bool
	}{
		{`{}`, "", false},
		{`{}`, " ; ;", false},
		{`{}`, "a=1", true},
		{`{}`, "nameless", true},
		{`{cookies: [sid]}`, "sid=1", false},
		{`{cookies: [sid]}`, "sid=1; sid=2;", false},
		{`{cookies: [sid]}`, "sid =1", false},
		{`{cookies: [sid]}`, "sid=1; a=1", true},
		{`{cookies: [sid]}`, "SID=1", true},
		{`{cookies: [sid]}`, `sid="a b"`, false},
		{`{cookies: [sid]}`, `sid="a; sid=b"`, true}, // one cookie to some
		{`{cookies: [sid]}`, `sid=1, sid=2`, true},   // two lines
		{`{cookies: [sid]}`, `sid=1,2`, false},
		{`{cookies: [sid]}`, "=1", true},
	}
	for _, tc := range tests {
		if got := keyRules(t, tc.rules).CookiesOutsideKey(tc.header); got != tc.want {
			t.Errorf("rules %s, Cookie %q: %v, want %v", tc.rules, tc.header, got, tc.want)
		}
	}
}

// hotRequest is a request as browsers send it, with rules that do everything.
func hotRequest(tb testing.TB) (*cachepolicy.KeyRules, cachepolicy.KeyInput) {
	tb.Helper()
	rules := keyRules(tb, `{query: {names: [{type: Prefix, value: utm_}]}, headers: [X-Tenant], cookies: [lang]}`)
	names := []string{"x-tenant", "cookie", "x-forwarded-proto", "x-forwarded-host"}
	values := []string{"blue", "sid=1234567890; lang=de", "https", "shop.example.com"}
	return rules, cachepolicy.KeyInput{
		Scope: "shop/route/catalog", Scheme: "https", Authority: "Shop.Example.com:443",
		Path: "/catalog/products/42?color=blue&utm_source=mail&utm_medium=x&size=xl",
		Header: func(name string) (string, bool) {
			if i := slices.Index(names, name); i >= 0 {
				return values[i], true
			}
			return "", false
		},
	}
}

func TestBuildKeyAllocations(t *testing.T) {
	rules, in := hotRequest(t)
	const most = 1 // Canonical
	if got := testing.AllocsPerRun(1000, func() { cachepolicy.BuildKey(rules, in) }); got > most {
		t.Errorf("%v allocations per key, want at most %d", got, most)
	}
	in.Path += strings.Repeat("x", 4096)
	const mostLong = 3
	if got := testing.AllocsPerRun(1000, func() { cachepolicy.BuildKey(rules, in) }); got > mostLong {
		t.Errorf("%v allocations per long key, want at most %d", got, mostLong)
	}
}

func BenchmarkBuildKey(b *testing.B) {
	rules, in := hotRequest(b)
	b.ReportAllocs()
	for b.Loop() {
		cachepolicy.BuildKey(rules, in)
	}
}

// TestCanonicalIsStable: keys outlive a process. A change here needs a new
// keyVersion.
func TestCanonicalIsStable(t *testing.T) {
	t.Parallel()
	rules, in := hotRequest(t)
	var want []byte
	add := func(prefix []byte, s string) {
		want = append(append(append(want, prefix...), binary.AppendUvarint(nil, uint64(len(s)))...), s...)
	}
	add([]byte{1}, "shop/route/catalog")
	add(nil, rules.Hash)
	add(nil, "https")
	add(nil, "shop.example.com")
	add(nil, "/catalog/products/42?color=blue&size=xl")
	add([]byte{1}, "shop.example.com") // X-Forwarded-Host
	want = append(want, 0, 0, 0, 0)    // -Port, -Prefix, Forwarded, -Proto
	add([]byte{1}, "blue")             // X-Tenant
	add([]byte{0, 1}, "lang=de")       // cookies chosen, one follows
	want = append(want, 0)             // no more of this name
	if got := cachepolicy.BuildKey(rules, in).Canonical; got != string(want) {
		t.Errorf("canonical key\n got %q\nwant %q", got, want)
	}
	if want := "3814aafdbba65d8b8e5dda62da2a0547"; rules.Hash != want {
		t.Errorf("hash of the rules %q, want %q", rules.Hash, want)
	}
}

// TestTarget: the target is what of it is in the key: two that the rules take for one have one key.
func TestTarget(t *testing.T) {
	t.Parallel()
	const (
		exclude = `{query: {names: [{type: Prefix, value: utm_}, {value: fbclid}]}}`
		include = `{query: {mode: Include, names: [{value: id}]}}`
	)
	tests := []struct{ rules, target, want string }{
		{`{}`, "/p?b=1&utm_a=2", "/p?b=1&utm_a=2"},
		{exclude, "/p", "/p"},
		{exclude, "/p?", "/p?"},
		{exclude, "/p?utm_a=2", "/p"},
		{exclude, "/p?b=1&utm_a=2&c&fbclid=3", "/p?b=1&c"},
		{exclude, "/p?utm_a=2;b=1", "/p?utm_a=2;b=1"},
		{exclude, "*", "*"},
		{include, "/p?b=1&id=2&id=3", "/p?id=2&id=3"},
	}
	for _, tt := range tests {
		rules := keyRules(t, tt.rules)
		if got := rules.Query.Target(tt.target); got != tt.want {
			t.Errorf("%s under %s: %q, want %q", tt.target, tt.rules, got, tt.want)
		}
		a, b := request{scheme: "https", host: "a.test", path: tt.target}, request{scheme: "https", host: "a.test"}
		b.path = tt.want
		if a.key(rules) != b.key(rules) {
			t.Errorf("%s and %s have two keys under %s", tt.target, tt.want, tt.rules)
		}
	}
}

// TestQueryRulesString: rules that differ read differently.
func TestQueryRulesString(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, text := range []string{
		`{}`, `{query: {mode: Include}}`, `{query: {names: [{value: a}]}}`, `{query: {names: [{value: a}, {value: b}]}}`,
		`{query: {names: [{type: Prefix, value: a}]}}`, `{query: {mode: Include, names: [{value: a}]}}`,
	} {
		s := keyRules(t, text).Query.String()
		if other, twice := seen[s]; twice {
			t.Errorf("%s and %s both read %s", text, other, s)
		}
		seen[s] = text
	}
}

package cachepolicy_test

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weirproxy/weir/cachepolicy"
)

// identity is all that two requests must agree in to share a key, made in the
// plainest way, without the encoding.
func identity(rules *cachepolicy.KeyRules, r request) []string {
	scheme, host := asciiLower(r.scheme), asciiLower(r.host)
	if port, ok := map[string]string{"http": ":80", "https": ":443"}[scheme]; ok {
		host = strings.TrimSuffix(host, port)
	}
	out := []string{r.scope, rules.Hash, scheme, host, keptTarget(rules, r.path)}
	for _, name := range []string{"x-forwarded-host", "x-forwarded-port", "x-forwarded-prefix", "forwarded"} {
		out = append(out, optional(r, name))
	}
	if proto, ok := r.header["x-forwarded-proto"]; ok && asciiLower(proto) != scheme {
		out = append(out, "is "+proto)
	} else {
		out = append(out, "absent")
	}
	for _, name := range rules.Headers {
		out = append(out, optional(r, name))
	}
	return append(out, keptCookies(rules, r.header["cookie"])...)
}

func optional(r request, name string) string {
	if value, ok := r.header[name]; ok {
		return "is " + value
	}
	return "absent"
}

func keptTarget(rules *cachepolicy.KeyRules, target string) string {
	path, query, ok := strings.Cut(target, "?")
	if !ok {
		return target
	}
	all := strings.Split(query, "&")
	kept := slices.DeleteFunc(slices.Clone(all), func(parameter string) bool {
		name, _, _ := strings.Cut(parameter, "=")
		named := slices.ContainsFunc(rules.Query.Names, func(m cachepolicy.NameMatcher) bool { return m.Matches(name) })
		return named != (rules.Query.Mode == cachepolicy.QueryInclude) && !strings.Contains(parameter, ";")
	})
	if len(kept) == 0 {
		return path
	}
	return path + "?" + strings.Join(kept, "&")
}

func keptCookies(rules *cachepolicy.KeyRules, header string) []string {
	if len(rules.Cookies) == 0 {
		return nil
	}
	var out []string
	pairs := strings.Split(header, ";")
	for _, pair := range pairs {
		for i, part := range strings.Split(pair, ",") {
			name, _, _ := strings.Cut(part, "=")
			if i > 0 && slices.Contains(rules.Cookies, strings.Trim(name, " \t")) {
				return []string{"whole " + header}
			}
		}
		if strings.Count(pair, `"`)%2 != 0 {
			return []string{"whole " + header}
		}
	}
	for _, want := range rules.Cookies {
		out = append(out, "cookie "+want)
		for _, pair := range pairs {
			if name, _, ok := strings.Cut(pair, "="); ok && strings.Trim(name, " \t") == want {
				out = append(out, strings.Trim(pair, " \t"))
			}
		}
	}
	return out
}

// drawRequest makes requests from few pieces, so that pairs of them are often
// alike in all but one.
func drawRequest(t *rapid.T, label string) request {
	pick := func(what string, from ...string) string { return rapid.SampledFrom(from).Draw(t, label+what) }
	piece := rapid.StringMatching(`[abs=&;?," id\x00\x01]{0,6}`)
	r := request{
		scope:  pick("scope", "a", "b", ""),
		scheme: pick("scheme", "http", "https", "HTTP"),
		host:   pick("host", "a.test", "A.test", "b.test", "a.test:80", "a.test:443", ""),
		path:   pick("path", "/", "/p", "/p?", "") + piece.Draw(t, label+"query"),
		header: map[string]string{},
	}
	for _, name := range []string{"x-forwarded-host", "x-forwarded-port", "x-forwarded-proto", "forwarded", "x-a", "x-b"} {
		if rapid.Bool().Draw(t, label+name) {
			r.header[name] = pick(name+" value", "", "a", "http", "https", "a.test")
		}
	}
	if rapid.Bool().Draw(t, label+"cookie") {
		r.header["cookie"] = piece.Draw(t, label+"cookies")
	}
	return r
}

var propertyRules = []string{
	`{}`, `{headers: [x-a]}`, `{headers: [x-a, x-b], cookies: [s, id]}`, `{cookies: [a]}`,
	`{query: {names: [{value: a}, {type: Prefix, value: i}]}}`,
	`{query: {mode: Include, names: [{value: a}]}, headers: [x-b]}`,
}

// TestBuildKeyIsInjective: two requests, under two sets of rules, have one key
// exactly if they have one identity.
func TestBuildKeyIsInjective(t *testing.T) {
	t.Parallel()
	var rules []*cachepolicy.KeyRules
	for _, text := range propertyRules {
		rules = append(rules, keyRules(t, text))
	}
	rapid.Check(t, func(t *rapid.T) {
		one := rapid.SampledFrom(rules).Draw(t, "rules")
		other := one
		if rapid.Bool().Draw(t, "under other rules") {
			other = rapid.SampledFrom(rules).Draw(t, "other rules")
		}
		a := drawRequest(t, "a ")
		b := a
		switch rapid.IntRange(0, 3).Draw(t, "b") {
		case 0:
			b = drawRequest(t, "b ")
		case 1:
			b.path = drawRequest(t, "b ").path
		case 2:
			b.header = drawRequest(t, "b ").header
		}
		sameKey := a.key(one).Canonical == b.key(other).Canonical
		same := cmp.Equal(identity(one, a), identity(other, b))
		if sameKey != same {
			t.Fatalf("same key: %v, same identity: %v\n%+q\n%+q", sameKey, same, identity(one, a), identity(other, b))
		}
	})
}

// FuzzBuildKey reads each key back and finds the identity of the request in it:
// an encoding that can be read back is injective.
func FuzzBuildKey(f *testing.F) {
	f.Add(byte(0), "shop/route/r", "https", "a.test:443", "/p?a=1&b=2", "evil.test", "blue", "sid=1; lang=de")
	f.Add(byte(2), "", "", "", "", "", "", "")
	f.Add(byte(2), "s", "http", "[::1]:80", "/?&&a", "\x00", "\x01\x02", `s="; id=1; x="`)
	f.Add(byte(4), "s", "http", "a", "/?a;i=1&i=2&=", "a", "b", "id=1, s=2")
	f.Add(byte(5), "s", "HTTPS", "\xff:443", strings.Repeat("/?a=1&b", 90), "a", "b", strings.Repeat("s=1;", 40))
	var rules []*cachepolicy.KeyRules
	for _, text := range propertyRules {
		rules = append(rules, keyRules(f, text))
	}
	f.Fuzz(func(t *testing.T, n byte, scope, scheme, host, path, forwarded, field, cookie string) {
		r := request{scope: scope, scheme: scheme, host: host, path: path, header: map[string]string{
			"x-forwarded-host": forwarded, "x-forwarded-proto": forwarded, "x-a": field, "cookie": cookie}}
		rule := rules[int(n)%len(rules)]
		key := r.key(rule).Canonical
		got, rest := readBack(key, rule)
		if diff := cmp.Diff(identity(rule, r), got); diff != "" || rest != "" {
			t.Fatalf("read back (-want +got), %q left over:\n%s", rest, diff)
		}
	})
}

func asciiLower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 32
		}
	}
	return string(b)
}

// readBack decodes a canonical key into an identity.
func readBack(key string, rules *cachepolicy.KeyRules) (identity []string, rest string) {
	rest = key[1:] // version
	next := func() string {
		length, n := binary.Uvarint([]byte(rest))
		value := rest[n : n+int(length)]
		rest = rest[n+int(length):]
		return value
	}
	mark := func() byte {
		c := rest[0]
		rest = rest[1:]
		return c
	}
	for range 5 {
		identity = append(identity, next())
	}
	for range 5 + len(rules.Headers) {
		if mark() == 0 {
			identity = append(identity, "absent")
			continue
		}
		identity = append(identity, "is "+next())
	}
	if len(rules.Cookies) == 0 {
		return identity, rest
	}
	if mark() == 1 {
		return append(identity, "whole "+next()), rest
	}
	for _, name := range rules.Cookies {
		identity = append(identity, "cookie "+name)
		for mark() == 1 {
			identity = append(identity, next())
		}
	}
	return identity, rest
}

package cachepolicy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/cachepolicy/feed"
)

func path(kind, value string) feed.Match {
	return feed.Match{Path: &feed.PathMatch{Type: kind, Value: value}}
}

// ruleOf is a rule under the policy shop/p, or, with a scope that begins with "-", under none.
func ruleOf(scope string, hosts []string, matches ...feed.Match) feed.Rule {
	r := feed.Rule{Scope: "shop/" + scope, Hosts: hosts, Matches: matches, Policies: []string{"shop/p"}}
	if strings.HasPrefix(scope, "-") {
		r.Policies = nil
	}
	return r
}

// TestMatchOrder is the order of the Gateway API (HTTPRouteRule.matches), case by case.
func TestMatchOrder(t *testing.T) {
	t.Parallel()
	exact := func(name, value string) feed.ValueMatch {
		return feed.ValueMatch{Type: "Exact", Name: name, Value: value}
	}
	regex := func(name, value string) feed.ValueMatch {
		return feed.ValueMatch{Type: "RegularExpression", Name: name, Value: value}
	}
	hosts := func(h ...string) []string { return h }
	old := func(r feed.Rule, created int64) feed.Rule {
		r.Created = created
		return r
	}
	tests := []struct {
		name  string
		rules []feed.Rule
		in    string // method, host and path, then header fields
		want  string
	}{
		{"exact host", []feed.Rule{ruleOf("any", nil), ruleOf("exact", hosts("a.b.test"))}, "GET a.b.test/", "exact"},
		{"host in capitals with port", []feed.Rule{ruleOf("exact", hosts("A.b.test"))}, "GET a.B.test:8443/", "exact"},
		{"wildcard", []feed.Rule{ruleOf("short", hosts("*.test")), ruleOf("long", hosts("*.b.test"))}, "GET a.b.test/", "long"},
		{"wildcard of several labels", []feed.Rule{ruleOf("short", hosts("*.test"))}, "GET a.b.test/", "short"},
		{"wildcard is not its suffix", []feed.Rule{ruleOf("short", hosts("*.test"))}, "GET test/", ""},
		{"wildcard is no part of a label", []feed.Rule{ruleOf("short", hosts("*.test"))}, "GET atest/", ""},
		{"any host", []feed.Rule{ruleOf("any", nil)}, "GET x/", "any"},
		{"star", []feed.Rule{ruleOf("any", hosts("*"))}, "GET x/", "any"},
		{"less specific host where no path of the other matches",
			[]feed.Rule{ruleOf("any", nil), ruleOf("exact", hosts("a.test"), path("Exact", "/x"))}, "GET a.test/y", "any"},
		{"IPv6", []feed.Rule{ruleOf("any", nil)}, "GET [::1]:80/", "any"},

		{"exact path", []feed.Rule{ruleOf("prefix", nil, path("PathPrefix", "/a/b")), ruleOf("exact", nil, path("Exact", "/a/b"))},
			"GET x/a/b?q", "exact"},
		{"exact is not its children", []feed.Rule{ruleOf("exact", nil, path("Exact", "/a"))}, "GET x/a/", ""},
		{"longest prefix", []feed.Rule{ruleOf("a", nil, path("PathPrefix", "/a")), ruleOf("ab", nil, path("PathPrefix", "/a/b"))},
			"GET x/a/b/c", "ab"},
		{"prefix by segments", []feed.Rule{ruleOf("a", nil, path("PathPrefix", "/a"))}, "GET x/ab", ""},
		{"prefix itself", []feed.Rule{ruleOf("a", nil, path("PathPrefix", "/a"))}, "GET x/a", "a"},
		{"prefix with a slash", []feed.Rule{ruleOf("a", nil, path("PathPrefix", "/a/"))}, "GET x/a", "a"},
		{"prefix before regular expression",
			[]feed.Rule{ruleOf("re", nil, path("RegularExpression", "/a.*")), ruleOf("a", nil, path("PathPrefix", "/a"))},
			"GET x/a/b", "a"},
		{"regular expression of the whole", []feed.Rule{ruleOf("re", nil, path("RegularExpression", "/a|/b"))}, "GET x/ab", ""},
		{"regular expression", []feed.Rule{ruleOf("re", nil, path("RegularExpression", "/[a-c]+"))}, "GET x/abc?d", "re"},
		{"path in capitals", []feed.Rule{ruleOf("a", nil, path("PathPrefix", "/a"))}, "GET x/A", ""},

		{"method", []feed.Rule{ruleOf("all", nil), ruleOf("get", nil, feed.Match{Method: "GET"})}, "GET x/", "get"},
		{"another method", []feed.Rule{ruleOf("all", nil), ruleOf("get", nil, feed.Match{Method: "GET"})}, "HEAD x/", "all"},
		{"method before headers", []feed.Rule{
			ruleOf("headers", nil, feed.Match{Headers: []feed.ValueMatch{exact("A", "1"), exact("B", "2")}}),
			ruleOf("get", nil, feed.Match{Method: "GET"})}, "GET x/ a=1 b=2", "get"},
		{"more headers", []feed.Rule{
			ruleOf("one", nil, feed.Match{Headers: []feed.ValueMatch{exact("A", "1")}}),
			ruleOf("two", nil, feed.Match{Headers: []feed.ValueMatch{exact("A", "1"), regex("B", "[0-9]")}})},
			"GET x/ a=1 b=2", "two"},
		{"headers that differ", []feed.Rule{ruleOf("one", nil, feed.Match{Headers: []feed.ValueMatch{exact("A", "1")}})},
			"GET x/ a=2", ""},
		{"headers before query", []feed.Rule{
			ruleOf("query", nil, feed.Match{Query: []feed.ValueMatch{exact("q", "1"), exact("r", "2")}}),
			ruleOf("header", nil, feed.Match{Headers: []feed.ValueMatch{exact("A", "1")}})}, "GET x/?q=1&r=2 a=1", "header"},
		{"more query parameters", []feed.Rule{
			ruleOf("one", nil, feed.Match{Query: []feed.ValueMatch{exact("q", "1")}}),
			ruleOf("two", nil, feed.Match{Query: []feed.ValueMatch{exact("q", "1"), exact("r", "2")}})}, "GET x/?q=1&r=2", "two"},
		{"query, decoded, the first of a name", []feed.Rule{
			ruleOf("query", nil, feed.Match{Query: []feed.ValueMatch{exact("q", "a b"), regex("r", "x+")}})},
			"GET x/?r=xx&q=a%20b&q=c", "query"},
		{"query that differs", []feed.Rule{ruleOf("query", nil, feed.Match{Query: []feed.ValueMatch{exact("q", "1")}})},
			"GET x/?q=2&q=1", ""},

		{"older route", []feed.Rule{old(ruleOf("new", nil), 9), old(ruleOf("old", nil), 5)}, "GET x/", "old"},
		{"first rule", []feed.Rule{ruleOf("first", nil), ruleOf("second", nil)}, "GET x/", "first"},
		{"one match of several", []feed.Rule{ruleOf("r", nil, path("Exact", "/a"), path("Exact", "/b"))}, "GET x/b", "r"},
		{"a rule without a policy keeps its requests", []feed.Rule{
			ruleOf("-none", nil, path("PathPrefix", "/private")), ruleOf("all", nil)}, "GET x/private/1", ""},
		{"host beyond its bound", []feed.Rule{ruleOf("any", nil)}, "GET " + strings.Repeat("a", 254) + "/", ""},
		{"path beyond the bound of segments", []feed.Rule{ruleOf("all", nil)}, "GET x" + strings.Repeat("/a", 4000), "all"},
		{"host of dots", []feed.Rule{ruleOf("any", nil)}, "GET " + strings.Repeat(".", 200) + "/", "any"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			table := cachepolicy.NewTable()
			changes := []cachepolicy.Change{put(fedPolicy("shop", "p", 1))}
			for i, rule := range tc.rules { // a route each, in the order of their names
				changes = append(changes, put(&feed.Route{Kind: "HTTPRoute", Namespace: "shop", Name: fmt.Sprint("r", i),
					Rules: []feed.Rule{rule}}))
			}
			got := ""
			if b := apply(t, table, changes...).Match(matchInput(tc.in)); b != nil {
				got = strings.TrimPrefix(b.Scope, "shop/")
			}
			if got != tc.want {
				t.Errorf("%s: rule %q, want %q", tc.in, got, tc.want)
			}
		})
	}
}

func matchInput(in string) *cachepolicy.MatchInput {
	words := strings.Fields(in)
	authority, rest, _ := strings.Cut(words[1], "/")
	return &cachepolicy.MatchInput{
		Method: words[0], Authority: authority, Path: "/" + rest,
		Header: func(name string) (string, bool) {
			for _, field := range words[2:] {
				if n, value, _ := strings.Cut(field, "="); n == name {
					return value, true
				}
			}
			return "", false
		},
	}
}

// TestRoutesThatAreRefused: each says which field is at fault.
func TestRoutesThatAreRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		change func(*feed.Route)
		want   string
	}{
		{func(r *feed.Route) { r.Kind = "GRPCRoute" }, `kind "GRPCRoute"`},
		{func(r *feed.Route) { r.Rules[0].Scope = "blog/x" }, `rules[0].scope "blog/x"`},
		{func(r *feed.Route) { r.Rules[0].MessageTimeoutMillis = -1 }, "rules[0].messageTimeoutMillis"},
		{func(r *feed.Route) { r.Rules[0].EnvoyRoutes = []string{"a", "b*"} }, `envoyRoutes[1] "b*"`},
		{func(r *feed.Route) { r.Rules[0].EnvoyRoutes = []string{strings.Repeat("/", 33) + "*"} }, "envoyRoutes[0]"},
		{func(r *feed.Route) { r.Rules[0].EnvoyRoutes = []string{""} }, "envoyRoutes[0]"},
		{func(r *feed.Route) { r.Rules[0].Hosts = []string{"a:80"} }, `hosts[0]: host "a:80"`},
		{func(r *feed.Route) { r.Rules[0].Hosts = []string{"*a"} }, "hosts[0]"},
		{func(r *feed.Route) { r.Rules[0].Matches = []feed.Match{path("Exact", "a")} }, "matches[0].path"},
		{func(r *feed.Route) { r.Rules[0].Matches = []feed.Match{path("Glob", "/a")} }, `path: type "Glob"`},
		{func(r *feed.Route) { r.Rules[0].Matches = []feed.Match{path("PathPrefix", strings.Repeat("/a", 65))} }, "65 segments"},
		{func(r *feed.Route) {
			r.Rules[0].Matches = []feed.Match{path("RegularExpression", strings.Repeat("a", 5000))}
		}, "5000 bytes"},
		{func(r *feed.Route) { r.Rules[0].Matches = []feed.Match{{Headers: []feed.ValueMatch{{Type: "Exact"}}}} },
			"headers[0]: no name"},
		{func(r *feed.Route) { r.Rules[0].Matches = []feed.Match{{Query: []feed.ValueMatch{{Name: "q"}}}} }, `query[0]: type ""`},
	}
	for _, tc := range tests {
		r := fedRoute("shop", "a", "shop/p")
		tc.change(r)
		_, verdicts := cachepolicy.NewTable().Apply([]cachepolicy.Change{put(fedPolicy("shop", "p", 1)), put(r)})
		if err := verdicts[r.Resource()]; err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("verdict %v, want %q", err, tc.want)
		}
	}
}

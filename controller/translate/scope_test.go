package translate

import (
	"strings"
	"testing"

	"github.com/weirproxy/weir/cachepolicy/feed"
)

func prefix(value string) feed.Match {
	return feed.Match{Path: &feed.PathMatch{Type: "PathPrefix", Value: value}}
}

func header(name, value string) feed.ValueMatch {
	return feed.ValueMatch{Type: "Exact", Name: name, Value: value}
}

// TestScopeStays wants one scope for matches that are the same.
func TestScopeStays(t *testing.T) {
	t.Parallel()
	r := Target{Kind: "HTTPRoute", Namespace: "shop", Name: "a"}
	for name, same := range map[string][2][]feed.Match{
		"order of matches":    {{prefix("/a"), prefix("/b")}, {prefix("/b"), prefix("/a")}},
		"repeated match":      {{prefix("/a")}, {prefix("/a"), prefix("/a")}},
		"no match, every one": {nil, {{}}},
		"order of headers": {{{Headers: []feed.ValueMatch{header("a", "1"), header("b", "2")}}},
			{{Headers: []feed.ValueMatch{header("b", "2"), header("a", "1")}}}},
	} {
		if a, b := scope(r, same[0]), scope(r, same[1]); a != b {
			t.Errorf("%s: %s, %s", name, a, b)
		}
	}
	if got := scope(r, nil); !strings.HasPrefix(got, "shop/httproute/a/") {
		t.Errorf("scope %q", got)
	}
}

// TestScopesDiffer wants other scopes for other matches, kinds and routes.
func TestScopesDiffer(t *testing.T) {
	t.Parallel()
	r := Target{Kind: "HTTPRoute", Namespace: "shop", Name: "a"}
	seen := map[string]string{}
	add := func(name, scope string) {
		if other, ok := seen[scope]; ok {
			t.Errorf("%s has the scope of %s", name, other)
		}
		seen[scope] = name
	}
	add("every request", scope(r, nil))
	add("of another kind", scope(Target{Kind: "VirtualService", Namespace: "shop", Name: "a"}, nil))
	add("of another route", scope(Target{Kind: "HTTPRoute", Namespace: "shop", Name: "b"}, nil))
	add("prefix", scope(r, []feed.Match{prefix("/a")}))
	add("exact", scope(r, []feed.Match{{Path: &feed.PathMatch{Type: "Exact", Value: "/a"}}}))
	add("two matches", scope(r, []feed.Match{prefix("/a"), prefix("/b")}))
	add("one match of both", scope(r, []feed.Match{prefix("/a/b")}))
	add("method", scope(r, []feed.Match{{Method: "GET"}}))
	add("header", scope(r, []feed.Match{{Headers: []feed.ValueMatch{header("a", "1")}}}))
	add("query", scope(r, []feed.Match{{Query: []feed.ValueMatch{header("a", "1")}}}))
	add("header, other cut", scope(r, []feed.Match{{Headers: []feed.ValueMatch{header("a1", "")}}}))
	add("two headers", scope(r, []feed.Match{{Headers: []feed.ValueMatch{header("a", "1"), header("b", "2")}}}))
	add("two matches of a header", scope(r, []feed.Match{{Headers: []feed.ValueMatch{header("a", "1")}},
		{Headers: []feed.ValueMatch{header("b", "2")}}}))
}

package cachepolicy_test

import (
	"testing"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/cachepolicy/feed"
)

// FuzzTable: whatever a controller sends and a request looks like, nothing panics, and what goes leaves nothing.
func FuzzTable(f *testing.F) {
	for _, o := range []feed.Object{
		fedRoute("shop", "a", "shop/p"), fedPolicy("shop", "p", 3),
		&feed.Route{Kind: "HTTPRoute", Namespace: "shop", Name: "b", Rules: []feed.Rule{
			ruleOf("x", []string{"*.test"}, path("RegularExpression", "/a.*"), path("Exact", "/a/b")),
			ruleOf("-y", nil, feed.Match{Method: "GET", Headers: []feed.ValueMatch{{Type: "Exact", Name: "A", Value: "1"}}}),
		}},
		&feed.Entrance{Namespace: "infra", Gateway: "gw", Listener: "http", Address: "gw:80", Scheme: "http"},
	} {
		r, err := feed.Encode(o)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(r.Name, r.Data, "a.test:80", "/a/b?c=%64", "httproute/shop/a/rule/0/match/0/*")
	}
	f.Fuzz(func(t *testing.T, name string, data []byte, authority, target, route string) {
		o, err := feed.Decode(name, data)
		if err != nil {
			return
		}
		table := cachepolicy.NewTable()
		table.Apply([]cachepolicy.Change{put(fedPolicy("shop", "p", 1))})
		set, verdicts := table.Apply([]cachepolicy.Change{{Name: name, Object: o}})
		if _, ok := verdicts[name]; !ok {
			t.Fatal("no verdict")
		}
		set.Identify("", "", route)
		set.Identify("shop/p", route, "")
		set.Match(&cachepolicy.MatchInput{Authority: authority, Method: "GET", Path: target, Header: func(string) (string, bool) {
			return target, true
		}})
		table.Apply([]cachepolicy.Change{{Name: name}, {Name: "policy/shop/p"}})
		for what, n := range cachepolicy.TableSizes(table) {
			if n != 0 {
				t.Fatalf("%d %s are left", n, what)
			}
		}
	})
}

package conformance_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/e2e/harness"
)

// TestCacheStatus: RFC 9211. That the field is well formed, and weir's member the last one, is checked of every
// response of every table here.
func TestCacheStatus(t *testing.T) {
	t.Parallel()
	const fresh = "max-age=60"
	one := func(pairs ...string) []harness.Reply { return []harness.Reply{fields(pairs...)} }
	runTable(t, []row{
		{name: "miss and hit", answers: one("Cache-Control", fresh), requests: []request{
			{want: want{cacheStatus: []string{"fwd=uri-miss|miss", "stored", "!hit"}}},
			{want: want{cacheStatus: []string{"hit", "ttl>=40", "ttl<61", "!fwd", "!stored"}}},
		}},
		{name: "ttl counts Age", answers: one("Cache-Control", fresh, "Age", "30"), requests: []request{
			{want: want{cacheStatus: []string{"fwd=uri-miss|miss", "stored"}}},
			{want: want{age: 30, cacheStatus: []string{"hit", "ttl>=10", "ttl<31"}}},
		}},
		{name: "not stored", answers: one("Cache-Control", "no-store"), requests: []request{
			{want: want{cacheStatus: []string{"fwd=uri-miss|miss", "!stored"}}},
		}},
		{name: "other variant", answers: one("Cache-Control", fresh, "Vary", "Foo"), requests: []request{
			{fields: []string{"Foo", "1"}, want: want{answer: 1, cacheStatus: []string{"stored"}}},
			{fields: []string{"Foo", "2"}, want: want{answer: 2, cacheStatus: []string{"fwd=vary-miss", "stored"}}},
			{fields: []string{"Foo", "1"}, want: want{answer: 1, cacheStatus: []string{"hit"}}},
		}},
		{name: "stale, fetched anew", answers: aged("max-age=90"), requests: []request{
			{want: want{answer: 1}},
			{want: want{answer: 2, cacheStatus: []string{"fwd=stale", "stored"}}},
		}},
		// §2.3: fwd-status where it is not the status of the response.
		{name: "stale, validated", answers: []harness.Reply{
			withETag(fields("Cache-Control", "max-age=90", "Age", "100")), withETag(fields("Cache-Control", "max-age=90")),
		}, requests: []request{
			{want: want{answer: 1}},
			{want: want{answer: 1, cacheStatus: []string{"fwd=stale", "fwd-status=304", "stored"}}},
		}},
		{name: "request's no-cache", answers: one("Cache-Control", fresh), requests: []request{
			{want: want{answer: 1}},
			{fields: []string{"Cache-Control", "no-cache"},
				want: want{answer: 2, cacheStatus: []string{"fwd=request"}}},
		}},
		{name: "304 from here", answers: []harness.Reply{withETag(fields("Cache-Control", fresh))}, requests: []request{
			{want: want{answer: 1}},
			{fields: []string{"If-None-Match", `"v1"`},
				want: want{status: 304, asked: 1, cacheStatus: []string{"hit"}}},
		}},
		{name: "HEAD", answers: one("Cache-Control", fresh), requests: []request{
			{want: want{answer: 1}},
			{method: http.MethodHead, want: want{asked: 1, cacheStatus: []string{"hit"}}},
		}},
	})
}

// TestCacheStatusKeepsUpstream: the members of caches nearer the origin stay first, as they were (§2).
func TestCacheStatusKeepsUpstream(t *testing.T) {
	t.Parallel()
	in := install(t)
	const upstream = `OriginCache; hit; ttl=1100, "CDN Company"; fwd=uri-miss;detail="a, b"`
	in.origin.Handle("/rfc/upstream", harness.Always(fields("Cache-Control", "max-age=60", "Cache-Status", upstream)))
	for range 2 {
		resp := harness.Do(t, harness.Get(in.envoy.URL("/rfc/upstream")))
		got := strings.Join(resp.Header.Values("Cache-Status"), ", ")
		rest, ok := strings.CutPrefix(got, upstream+",")
		if !ok || !strings.HasPrefix(strings.TrimSpace(rest), "weir") {
			t.Errorf("Cache-Status: %q, want %q, then weir's", got, upstream)
		}
	}
}

// TestCacheStatusUpstreamMalformed: what the origin sends there may be anything; the answer is served all the same.
func TestCacheStatusUpstreamMalformed(t *testing.T) {
	t.Parallel()
	in := install(t)
	for i, upstream := range []string{"((", `"open`, "weir; hit", ", ,", strings.Repeat("a,", 2000)} {
		path := "/rfc/malformed-" + string(rune('a'+i))
		in.origin.Handle(path, harness.Always(fields("Cache-Control", "max-age=60", "Cache-Status", upstream)))
		for range 2 {
			resp := harness.Do(t, harness.Get(in.envoy.URL(path)))
			lines := resp.Header.Values("Cache-Status")
			if resp.Status != http.StatusOK || len(lines) == 0 {
				t.Errorf("%.20q: status %d, Cache-Status %q", upstream, resp.Status, lines)
			}
		}
		if n := in.origin.Count(path); n != 1 {
			t.Errorf("%.20q: the origin was asked %d times, want 1", upstream, n)
		}
	}
}

// TestCollapsed: a request that waited for another's fetch says so (§2.6).
func TestCollapsed(t *testing.T) {
	t.Parallel()
	const path = "/rfc/collapsed"
	in := install(t)
	in.origin.Handle(path, harness.Always(harness.Reply{
		Delay: time.Second, Body: []byte("body"), Header: harness.Fields("Cache-Control", "max-age=60"),
	}))
	collapsed := 0
	for _, r := range harness.Burst(t, 2, harness.Same(harness.Get(in.envoy.URL(path)))) {
		member, err := lastMember(r.Header.Values("Cache-Status"))
		if err != nil || r.Err != nil || string(r.Body) != "body" {
			t.Fatalf("%d %q %v, Cache-Status: %q: %v", r.Status, r.Body, r.Err, r.Header.Values("Cache-Status"), err)
		}
		if slices.Contains(member.Names(), "collapsed") {
			collapsed++
		}
	}
	if n := in.origin.Count(path); n != 1 || collapsed != 1 {
		t.Errorf("the origin was asked %d times, %d answers say collapsed, want 1 and 1", n, collapsed)
	}
}

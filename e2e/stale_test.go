package e2e_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirproxy/weir/e2e/harness"
)

// aged answers in turn with the given ages of an answer that lives for 100 s, and then with the last; a request that
// names its ETag is answered 304. So an answer is as old as a test needs it, however long the test takes.
func aged(cacheControl string, ages ...string) harness.Script {
	return func(n int, _ *http.Request) harness.Reply {
		return harness.Reply{
			Body: []byte("page"), ETag: `"v1"`,
			Header: harness.Fields("Cache-Control", cacheControl, "Age", ages[min(n, len(ages))-1]),
		}
	}
}

// wantHit makes a request and checks that it was answered from the cache, with these words in Cache-Status.
func (e *edge) wantHit(when, path string, words ...string) {
	e.t.Helper()
	r := e.do(e.get(path))
	status := r.Header.Get("Cache-Status")
	for _, w := range append(words, "weir; hit") {
		if !strings.Contains(status, w) {
			e.t.Errorf("%s: Cache-Status %q, want %q", when, status, w)
		}
	}
	if r.Status != http.StatusOK || string(r.Body) != "page" {
		e.t.Errorf("%s: %d %q", when, r.Status, r.Body)
	}
}

// refreshed waits until the n-th request for a path has been answered and what it brought is stored.
func (e *edge) refreshed(path string, n int) {
	e.t.Helper()
	e.eventually("the refresh is over", func() bool {
		return e.origin.Count(path) == n && e.status().Refills.Running == 0
	})
}

// TestStaleIsRefreshed: within the window the old answer comes at once and one refresh behind it; a 304 begins its life
// anew; outside the window the origin is waited for.
func TestStaleIsRefreshed(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{Spec: "jitterPercent: 0\nstale: {ifError: 0s}"})
	defer e.settles()
	const swr = "max-age=100, stale-while-revalidate=1000"
	e.serve("/page", aged(swr, "0", "50", "150", "0"))
	e.do(e.get("/page"))
	e.wantHit("fresh", "/page", "ttl=")
	e.invalidate("/page")
	e.do(e.get("/page"))
	e.wantHit("fresh, half of its life over", "/page", "ttl=")
	e.wantCount("/page", 2)
	e.invalidate("/page")
	e.do(e.get("/page")) // comes 50 s past its life
	e.wantHit("stale", "/page", "ttl=-")
	e.refreshed("/page", 4)
	if seen := e.origin.Requests("/page")[3].Header.Get("If-None-Match"); seen != `"v1"` {
		t.Errorf("the refresh asked with If-None-Match %q", seen)
	}
	for range 3 {
		e.wantHit("after a 304", "/page", "ttl=9")
	}
	e.wantCount("/page", 4)

	e.serve("/late", aged(swr, "2000", "0"))
	e.do(e.get("/late"))
	if r := e.do(e.get("/late")); strings.Contains(r.Header.Get("Cache-Status"), "hit") || string(r.Body) != "page" {
		t.Errorf("outside the window: %q, Cache-Status %q", r.Body, r.Header.Get("Cache-Status"))
	}
	e.wantCount("/late", 2)

	// The decision where the RFCs can be read both ways: a window said beside s-maxage is the origin's consent.
	e.serve("/shared", aged("s-maxage=100, stale-while-revalidate=1000", "150", "0"))
	e.do(e.get("/shared"))
	e.wantHit("s-maxage with a window", "/shared", "ttl=-")
	e.refreshed("/shared", 2)
}

// TestStaleThatIsForbidden: the windows of a policy never override what the origin forbids, not even while it is down.
func TestStaleThatIsForbidden(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, noRefill bool) {
		e := startEdge(t, edgeOptions{NoRefill: noRefill, Spec: "stale: {whileRevalidate: 30s, ifError: 300s}"})
		defer e.settles()
		pages := map[string]string{
			"/plain": "max-age=100", "/must": "max-age=100, must-revalidate", "/proxy": "max-age=100, proxy-revalidate",
			"/shared": "s-maxage=100",
		}
		for path, cacheControl := range pages {
			e.serve(path, aged(cacheControl, "150"))
			e.do(e.get(path))
		}
		e.origin.Down()
		for path := range pages {
			r := e.do(e.get(path))
			if served := r.Status == http.StatusOK; served != (path == "/plain") {
				t.Errorf("%s, %s: status %d, Cache-Status %q", path, pages[path], r.Status, r.Header.Get("Cache-Status"))
			}
		}
	})
}

// TestErrorsEndWithTheOutage: a failure never takes the place of a good copy, is itself kept for a second at a time,
// and never as long as what is good. Afterwards everybody sees the page.
func TestErrorsEndWithTheOutage(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{Spec: "ttl: {default: 1h}\n" +
		"negativeTTL: [{status: \"404\", ttl: 5s}, {status: 5xx, ttl: 1s}]\n" +
		"stale: {whileRevalidate: 0s, ifError: 60s}"})
	defer e.settles()
	var outage atomic.Bool
	page := func(header http.Header) harness.Script {
		return func(int, *http.Request) harness.Reply {
			if outage.Load() {
				return harness.Reply{Status: http.StatusServiceUnavailable, Body: []byte("deploying")}
			}
			return harness.Reply{Body: []byte("page"), ETag: `"v1"`, Header: header}
		}
	}
	e.serve("/good", page(harness.Fields("Cache-Control", "max-age=1")))
	e.serve("/none", page(nil))
	e.do(e.get("/good"))
	outage.Store(true)
	during := map[string]harness.LoadResult{}
	for _, path := range []string{"/none", "/good"} {
		during[path] = harness.Load(t, harness.LoadOptions{
			Request: e.get(path), Rate: 20, Duration: 2 * time.Second, Connections: 8,
		})
	}
	if r := e.do(e.get("/good", "If-None-Match", `"v1"`)); r.Status != http.StatusNotModified {
		t.Errorf("conditional, while the origin fails: %d", r.Status)
	}
	wantOK(t, during["/good"], 40)
	if s := during["/none"].Statuses; s[http.StatusOK] != 0 || s[http.StatusServiceUnavailable] != 40 {
		t.Errorf("without a copy: %v", s)
	}
	// One a second in two seconds; a busy machine takes longer, and is asked the more often.
	if n := e.origin.Count("/none"); n > 8 {
		t.Errorf("without a copy the origin was asked %d times in 2 s, want about one a second", n)
	}
	outage.Store(false)
	for _, path := range []string{"/none", "/good"} {
		e.eventually(path+" is well again", func() bool {
			r := e.do(e.get(path))
			return r.Status == http.StatusOK && !strings.Contains(r.Header.Get("Cache-Status"), "stale")
		})
		if r := e.do(e.get(path)); r.Status != http.StatusOK {
			t.Errorf("%s: %d after it was well again", path, r.Status)
		}
	}
}

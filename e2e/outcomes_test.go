package e2e_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirproxy/weir/e2e/harness"
)

// outcomePolicies has one policy for each way to treat a stale copy, each on the route of its name.
const outcomePolicies = `
apiVersion: weir.dev/v1alpha1
kind: CachePolicy
metadata: {name: plain, namespace: shop}
spec:
  targetRefs: [{group: weir.dev, kind: EnvoyRoute, name: plain}]
  negativeTTL: [{status: "404", ttl: 60s}]
  stale: {whileRevalidate: 1h}
  requestDirectives: Honor
---
apiVersion: weir.dev/v1alpha1
kind: CachePolicy
metadata: {name: failing, namespace: shop}
spec:
  targetRefs: [{group: weir.dev, kind: EnvoyRoute, name: failing}]
  stale: {whileRevalidate: 0s, ifError: 1h, softTimeout: 0s}
---
apiVersion: weir.dev/v1alpha1
kind: CachePolicy
metadata: {name: slow, namespace: shop}
spec:
  targetRefs: [{group: weir.dev, kind: EnvoyRoute, name: slow}]
  stale: {whileRevalidate: 0s, ifError: 1h, softTimeout: 100ms}
---
apiVersion: weir.dev/v1alpha1
kind: CachePolicy
metadata: {name: tight, namespace: shop}
spec:
  targetRefs: [{group: weir.dev, kind: EnvoyRoute, name: tight}]
  stale: {whileRevalidate: 0s, ifError: 1h, softTimeout: 0s}
  originLimits: {maxConcurrentFetches: 1, maxQueue: 0}
---
apiVersion: weir.dev/v1alpha1
kind: CachePolicy
metadata: {name: shadow, namespace: shop}
spec:
  mode: Shadow
  targetRefs: [{group: weir.dev, kind: EnvoyRoute, name: shadow}]
`

// step is one request, or a few, and what must be counted for it.
type step struct {
	name string
	do   func()
	want map[string]int
}

// outcomes is a test with every outcome that a working Envoy can bring about.
type outcomes struct{ *edge }

// one makes a request and checks the status and what Cache-Status says; none: nothing of weir's.
func (o outcomes) one(method, path string, wantStatus int, wantCacheStatus string, fields ...string) func() {
	return func() {
		o.t.Helper()
		req := o.get(path, fields...)
		req.Method = method
		resp := o.do(req)
		status := resp.Header.Get("Cache-Status")
		if resp.Status != wantStatus || !strings.Contains(status, wantCacheStatus) || wantCacheStatus == "" && status != "" {
			o.t.Errorf("%s %s: %d, Cache-Status %q; want %d and %q", method, path, resp.Status, status, wantStatus, wantCacheStatus)
		}
	}
}

// stale makes the answer of a path stale, and what the origin says from now on.
func (o outcomes) stale(path string, then harness.Reply) {
	o.t.Helper()
	o.ask(path)
	o.invalidateSoftly(path)
	o.serve(path, harness.Always(then))
}

// occupied has one request at the origin while it does something else.
func (o outcomes) occupied(path string, f func()) {
	o.t.Helper()
	gate := make(chan struct{})
	o.serve(path, harness.Always(harness.Reply{Gate: gate, Header: harness.Fields("Cache-Control", "max-age=60")}))
	wait := o.burst(1, o.get(path))
	o.answering(path, 1)
	f()
	close(gate)
	wait()
}

// TestEveryOutcome: each request moves one counter, which agrees with Cache-Status and with what the access log shows;
// fetches in the background are counted apart, and each fetch under how it ended.
func TestEveryOutcome(t *testing.T) {
	t.Parallel()
	var routes []harness.Route
	for _, name := range []string{"plain", "failing", "slow", "tight", "shadow", "none"} {
		routes = append(routes, harness.Route{Name: name, Prefix: "/" + name})
	}
	o := outcomes{startEdge(t, edgeOptions{
		Envoy:    harness.EnvoyOptions{Routes: routes, FiltersBefore: []string{refuse}},
		Policies: map[string]string{"shop.yaml": outcomePolicies},
	})}
	defer o.settles()
	page := harness.Reply{Body: []byte("page"), Header: harness.Fields("Cache-Control", "max-age=60", "Content-Type", "text/plain")}
	o.serve("/", harness.Always(page))
	o.serve("/plain/private", harness.Always(harness.Reply{Header: harness.Fields("Cache-Control", "private")}))
	o.serve("/plain/gone", harness.Always(harness.Reply{Status: 404}))
	o.serve("/plain/tagged", harness.Always(harness.Reply{ETag: `"v1"`, Header: harness.Fields("Cache-Control", "no-cache")}))

	seen := make(map[string]int)
	for _, s := range o.steps() {
		before := o.weir.Metrics()
		s.do()
		o.quiet()
		o.wantOutcomesSince(before, s.name, s.want)
		for outcome, n := range o.outcomesSince(before) {
			seen[outcome] += n
		}
	}
	all := slices.Sorted(maps.Keys(seen))
	want := []string{"bypass_method", "bypass_policy", "bypass_request", "canceled", "coalesced", "hit", "hit_negative",
		"hit_stale", "local_reply", "miss", "miss_uncacheable", "only_if_cached", "revalidated", "shadow",
		"stale_if_error", "stale_overflow", "stale_slow", "unavailable"}
	if diff := cmp.Diff(want, all); diff != "" { // bypass_mode and error want an Envoy that does not work
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	o.wantLogged()
	o.wantFetches()
}

func (o outcomes) steps() []step {
	steps := append(o.freshSteps(), o.staleSteps()...)
	return append(append(steps, o.passingSteps()...), o.limitSteps()...)
}

// freshSteps are what may happen with an answer that is not stale.
func (o outcomes) freshSteps() []step {
	return []step{
		{"miss", o.one("GET", "/plain/a", 200, "weir; fwd=uri-miss; fwd-status=200; stored"), map[string]int{"miss": 1}},
		{"hit", o.one("GET", "/plain/a", 200, "weir; hit; ttl=5"), map[string]int{"hit": 1}},
		{"hit by HEAD", o.one("HEAD", "/plain/a", 200, "weir; hit; ttl=5"), map[string]int{"hit": 1}},
		{"hit by range", o.one("GET", "/plain/a", 206, "weir; hit; ttl=5", "Range", "bytes=0-1"), map[string]int{"hit": 1}},
		{"miss by HEAD", o.one("HEAD", "/plain/b", 200, "weir; fwd=uri-miss; fwd-status=200"),
			map[string]int{"miss_uncacheable": 1}},
		{"not stored", o.one("GET", "/plain/private", 200, "weir; fwd=uri-miss; fwd-status=200; detail="),
			map[string]int{"miss_uncacheable": 1}},
		{"negative", o.one("GET", "/plain/gone", 404, "weir; fwd=uri-miss; fwd-status=404; stored"), map[string]int{"miss": 1}},
		{"hit, negative", o.one("GET", "/plain/gone", 404, "weir; hit; ttl="), map[string]int{"hit_negative": 1}},
		{"always validated", o.one("GET", "/plain/tagged", 200, "weir; fwd=uri-miss; fwd-status=200; stored"),
			map[string]int{"miss": 1}},
		{"validated", o.one("GET", "/plain/tagged", 200, "fwd-status=304"), map[string]int{"revalidated": 1}},
		{"coalesced", func() {
			gate := make(chan struct{})
			o.serve("/plain/burst", harness.Always(harness.Reply{
				Gate: gate, Body: []byte("x"), Header: harness.Fields("Cache-Control", "max-age=60"),
			}))
			answers := o.burst(3, o.get("/plain/burst"))
			o.waiting(2)
			close(gate)
			o.wantBody(answers(), []byte("x"))
		}, map[string]int{"miss": 1, "coalesced": 2}},
		{"only if cached", o.one("GET", "/plain/never", 504, "weir; ", "Cache-Control", "only-if-cached"),
			map[string]int{"only_if_cached": 1}},
	}
}

// staleSteps are what may happen with an answer that is stale.
func (o outcomes) staleSteps() []step {
	failed := harness.Reply{Status: http.StatusServiceUnavailable}
	return []step{
		{"stale, refreshed behind", func() {
			o.ask("/plain/stale")
			o.invalidateSoftly("/plain/stale")
			o.one("GET", "/plain/stale", 200, "weir; hit; ttl=-1")()
		}, map[string]int{"miss": 1, "hit_stale": 1}},
		{"the origin fails", func() {
			o.stale("/failing/page", failed)
			o.one("GET", "/failing/page", 200, "detail=stale-if-error")()
		}, map[string]int{"miss": 1, "stale_if_error": 1}},
		{"the origin is slow", func() {
			gate := make(chan struct{})
			o.stale("/slow/page", harness.Reply{Gate: gate})
			o.one("GET", "/slow/page", 200, "detail=stale-slow-origin")()
			close(gate)
		}, map[string]int{"miss": 1, "stale_slow": 1}},
	}
}

// passingSteps are requests that weir has no part in.
func (o outcomes) passingSteps() []step {
	return []step{
		{"POST", o.one("POST", "/plain/a", 200, "weir; fwd=method"), map[string]int{"bypass_method": 1}},
		{"override", o.one("GET", "/plain/a", 200, "", "X-HTTP-Method-Override", "PUT"), map[string]int{"bypass_request": 1}},
		{"no policy", o.one("GET", "/none", 200, ""), map[string]int{"bypass_policy": 1}},
		{"shadow", func() {
			o.one("GET", "/shadow", 200, "stored")()
			o.one("GET", "/shadow", 200, "")()
		}, map[string]int{"miss": 1, "shadow": 1}},
		{"refused by a filter", o.one("GET", "/plain/a", 401, "", "X-Refuse", "yes"), map[string]int{"local_reply": 1}},
		{"the client leaves", func() {
			o.serve("/plain/left", harness.Always(harness.Reply{Hang: true}))
			conn := o.send(o.get("/plain/left"))
			o.answering("/plain/left", 1)
			o.hangUp(conn)
		}, map[string]int{"canceled": 1}},
	}
}

// limitSteps find the origin's limits used up.
func (o outcomes) limitSteps() []step {
	return []step{
		{"no room, stale", func() {
			o.stale("/tight/stale", harness.Reply{})
			o.occupied("/tight/other", func() { o.one("GET", "/tight/stale", 200, "detail=origin-limits")() })
		}, map[string]int{"miss": 2, "stale_overflow": 1}},
		{"no room", func() {
			o.occupied("/tight/another", func() { o.one("GET", "/tight/nothing", 503, "detail=origin-limits")() })
		}, map[string]int{"miss": 1, "unavailable": 1}},
	}
}

// wantLogged checks that the access log shows the outcome of every request that weir said something about; settles
// compares the outcomes themselves.
func (o outcomes) wantLogged() {
	o.t.Helper()
	for _, l := range o.envoy.AccessLog() {
		if l.CacheStatus != "" && (l.Weir["outcome"] == nil || l.Weir["policy"] == nil) {
			o.t.Errorf("%s %s: Cache-Status %q beside metadata %v", l.Method, l.Path, l.CacheStatus, l.Weir)
		}
	}
}

// wantFetches checks that every fetch that might be stored was counted under how it ended: those of requests, and those
// behind them, which are also counted apart.
func (o outcomes) wantFetches() {
	o.t.Helper()
	m := o.weir.Metrics()
	for name, want := range map[string]map[string]int{
		"weir_refills_total": {"stored": 1, "uncacheable": 1}, // of hit_stale, and of stale_slow
		"weir_fills_total": {
			"stored":       12, // every miss, and the refill of hit_stale
			"not_modified": 1,  // revalidated
			"uncacheable":  2,  // private, and what came late for stale_slow
			"failed":       1,  // stale_if_error
			"incomplete":   1,  // canceled
		},
	} {
		counted := make(map[string]int)
		for series, n := range m.Since(nil, name) {
			counted[strings.TrimSuffix(strings.TrimPrefix(series, name+`{result="`), `"}`)] = int(n)
		}
		if diff := cmp.Diff(want, counted); diff != "" {
			o.t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if n := m["weir_fetch_seconds_count"]; n != 16 { // all of these but the one whose client left
		o.t.Errorf("weir_fetch_seconds has %v samples, want 16", n)
	}
}

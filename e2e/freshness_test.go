package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/e2e/harness"
)

// The promises of the freshness layers, through a real Envoy. `make test` checks the counts, at four times the speed:
// all times are divided by four and the rate is multiplied, so that rate × cost, on which the law of early refreshes
// depends, is the same. With WEIR_FULL=1 the real times run, and how long clients wait is checked too, which means
// little on a machine that has other work:
//
//	WEIR_FULL=1 go test ./e2e -run 'TestHotKey|TestOriginStopped|TestOriginFrozen' -v
const speedUp = 4

// full reports whether the real times run.
func full() bool { return os.Getenv("WEIR_FULL") != "" }

// scaled divides a time unless the real times run.
func scaled(d time.Duration) time.Duration {
	if full() {
		return d
	}
	return d / speedUp
}

// countStatus counts the responses of a load by whether their Cache-Status contains a word.
func countStatus(r harness.LoadResult, word string) (with, without int) {
	for value, n := range r.CacheStatus {
		if strings.Contains(value, word) {
			with += n
		} else {
			without += n
		}
	}
	return with, without
}

// wantOK checks that every request of a load got a whole answer with status 200.
func wantOK(t *testing.T, r harness.LoadResult, n int) {
	t.Helper()
	if r.Errors != 0 || len(r.Statuses) != 1 || r.Statuses[http.StatusOK] != n {
		t.Errorf("%d requests: statuses %v, %d without a whole response", n, r.Statuses, r.Errors)
	}
}

// TestHotKey: a key at 200 requests a second that lives for 5 s and costs the origin 300 ms. In a minute the origin is
// asked at most 22 times, one at a time and ahead of need: after the first answer all others are hits.
func TestHotKey(t *testing.T) {
	lifetime, cost, duration, rate := scaled(5*time.Second), scaled(300*time.Millisecond), scaled(time.Minute), 200
	if !full() {
		rate *= speedUp
	}
	e := startEdge(t, edgeOptions{Spec: fmt.Sprintf("ttl: {default: %dms}", lifetime.Milliseconds())})
	defer e.quiet()
	e.serve("/hot", harness.Always(harness.Reply{
		Delay: cost, Size: 1000, Header: harness.Fields("Content-Type", "text/plain"),
	}))
	e.do(e.get("/hot"))
	load := harness.Load(t, harness.LoadOptions{
		Request: e.get("/hot"), Rate: rate, Duration: duration, Connections: 32,
	})
	count := e.origin.Count("/hot")
	hits, others := countStatus(load, "hit")
	t.Logf("%d requests at the origin, %d at a time; %d hits, %d others; p99 %v, longest %v", count,
		e.origin.MaxConcurrent("/hot"), hits, others, harness.Percentile(load.Latencies, 99),
		harness.Percentile(load.Latencies, 100))
	wantOK(t, load, int(duration.Seconds()*float64(rate)))
	if count > 22 || count < 10 || e.origin.MaxConcurrent("/hot") != 1 {
		t.Errorf("the origin saw %d requests, %d at a time; want 10 to 22, one at a time", count,
			e.origin.MaxConcurrent("/hot"))
	}
	if others != 0 {
		t.Errorf("%d clients waited for the origin: %v", others, load.CacheStatus)
	}
	if held := e.weir.Metrics().Sum("weir_wait_seconds_count"); held != 0 {
		t.Errorf("%v requests were held", held)
	}
	if longest := harness.Percentile(load.Latencies, 100); full() && longest > 100*time.Millisecond {
		t.Errorf("a client waited for %v", longest)
	}
	e.wantCost("/hot", cost)
}

// wantCost checks what weir takes a fetch to cost: not less than the origin's time, which is not rounded to 0.
func (e *edge) wantCost(path string, cost time.Duration) {
	e.t.Helper()
	var x struct{ Stored struct{ Cost float64 } }
	e.weir.AdminGet("/v1/explain?url="+e.envoy.URL(path), &x)
	if got := x.Stored.Cost; got < cost.Seconds() || got > cost.Seconds()+1 {
		e.t.Errorf("%s: cost %v s, want %v and a little", path, got, cost)
	}
}

// TestOriginStopped: the origin is gone for the whole ifError window; no client sees it. Past the window nothing older
// is served.
func TestOriginStopped(t *testing.T) {
	t.Parallel()
	lifetime, window := scaled(4*time.Second), scaled(24*time.Second)
	e := startEdge(t, edgeOptions{Spec: fmt.Sprintf("ttl: {default: %[1]dms}\njitterPercent: 0\n"+
		"stale: {whileRevalidate: %[1]dms, ifError: %[2]dms}", lifetime.Milliseconds(), window.Milliseconds())})
	defer e.settles()
	e.serve("/page", harness.Always(harness.Reply{Body: []byte("page")}))
	filled := time.Now()
	e.do(e.get("/page"))
	e.origin.Down()
	const rate = 40
	duration := time.Until(filled.Add(lifetime + window - time.Second))
	load := harness.Load(t, harness.LoadOptions{
		Request: e.get("/page"), Rate: rate, Duration: duration, Connections: 8,
	})
	t.Logf("statuses %v, %v", load.Statuses, load.CacheStatus)
	wantOK(t, load, int(duration.Seconds()*rate))
	e.eventually("past the window nothing is served", func() bool { return e.do(e.get("/page")).Status >= 500 })
	if age := time.Since(filled); age < lifetime+window {
		t.Errorf("an error %v after the fill, want none before %v", age, lifetime+window)
	}
	if n := e.outcomes(); n["stale_if_error"] == 0 || n["hit_stale"] == 0 {
		t.Errorf("outcomes %v: the origin was not missed", n)
	}
	e.origin.Up()
	e.eventually("the origin is asked again", func() bool { return e.do(e.get("/page")).Status == http.StatusOK })
}

// TestOriginFrozen: the origin takes requests and answers none. Clients get the stale copy within softTimeout, and the
// origin sees one request.
func TestOriginFrozen(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{Spec: "stale: {whileRevalidate: 0s, ifError: 60s, softTimeout: 250ms}"})
	defer e.settles()
	thaw := make(chan struct{})
	e.serve("/page", func(n int, _ *http.Request) harness.Reply {
		if n == 1 { // older than its lifetime, and in the window
			return harness.Reply{Body: []byte("old"), Header: harness.Fields("Cache-Control", "max-age=10", "Age", "20")}
		}
		return harness.Reply{Gate: thaw, Body: []byte("new"), Header: harness.Fields("Cache-Control", "max-age=60")}
	})
	e.do(e.get("/page"))
	clients := 50
	if full() {
		clients = 5 // so that what is measured is the wait, not the crowd
	}
	for range 3 {
		for i, r := range e.burst(clients, e.get("/page"))() {
			if r.Err != nil || r.Status != http.StatusOK || string(r.Body) != "old" {
				t.Errorf("client %d: status %d, %q, error %v", i, r.Status, r.Body, r.Err)
			}
			if full() && (r.FirstByte < 250*time.Millisecond || r.FirstByte > 300*time.Millisecond) {
				t.Errorf("client %d waited %v, want softTimeout + 50 ms at most", i, r.FirstByte)
			}
		}
	}
	e.wantCount("/page", 2)
	close(thaw)
	e.eventually("the answer comes at last", func() bool {
		status := e.do(e.get("/page")).Header.Get("Cache-Status")
		return strings.Contains(status, "hit; ttl=") && e.status().Refills.Running == 0
	})
	if r := e.do(e.get("/page")); string(r.Body) != "new" {
		t.Errorf("after the thaw: %q", r.Body)
	}
	e.wantCount("/page", 2)
	if n := e.outcomes(); n["stale_slow"] < 3*clients {
		t.Errorf("outcomes %v, want %d stale_slow at least", n, 3*clients)
	}
}

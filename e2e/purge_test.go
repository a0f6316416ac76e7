package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weirproxy/weir/e2e/harness"
)

// TestPurgeDuringAFetch: what a fetch brings that began before a purge is for those who asked before it; it is not
// stored, and who comes after does not wait for it.
func TestPurgeDuringAFetch(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, noRefill bool) {
		e := startEdge(t, edgeOptions{NoRefill: noRefill})
		defer e.settles()
		gate := make(chan struct{})
		e.serve("/page", func(n int, _ *http.Request) harness.Reply {
			reply := harness.Reply{
				Body: fmt.Appendf(nil, "v%d", n), Header: harness.Fields("Cache-Control", "max-age=60"),
			}
			if n == 1 { // reads v1 at once, and answers late
				reply.Gate = gate
			}
			return reply
		})
		before := e.burst(1, e.get("/page"))
		e.answering("/page", 1)
		follower := e.burst(1, e.get("/page"))
		e.waiting(1)
		e.invalidate("/page")
		if r := e.do(e.get("/page")); string(r.Body) != "v2" {
			t.Errorf("after the purge: %q, want v2 without waiting for v1", r.Body)
		}
		close(gate)
		e.wantBody(append(before(), follower()...), []byte("v1"))
		for range 3 {
			if r := e.do(e.get("/page")); string(r.Body) != "v2" || !strings.Contains(r.Header.Get("Cache-Status"), "hit") {
				t.Errorf("later: %q, Cache-Status %q, want a hit of v2", r.Body, r.Header.Get("Cache-Status"))
			}
		}
		e.wantCount("/page", 2)
	})
}

// TestPurgeOfACrowd: 500 pages under one tag. After a soft purge each is served stale, with one refresh behind it, few
// of them at a time; after a hard purge each is fetched once, however many ask.
func TestPurgeOfACrowd(t *testing.T) {
	t.Parallel()
	const pages, atATime = 500, 10
	e := startEdge(t, edgeOptions{Spec: "tags: {responseHeader: Surrogate-Key}\n" +
		fmt.Sprintf("originLimits: {maxConcurrentFetches: %d, maxQueue: 1000}\n", atATime) + "coalescing: {maxWait: 30s}"})
	defer e.settles()
	e.serve("/pages/", harness.Always(harness.Reply{
		Body: []byte("page"), Header: harness.Fields("Cache-Control", "max-age=600", "Surrogate-Key", "crowd other"),
	}))
	ask := func(times int) []harness.BurstResult {
		return harness.Burst(t, times*pages, func(i int) *http.Request { return e.get(fmt.Sprintf("/pages/%d", i%pages)) })
	}
	purge := func(mode string) {
		t.Helper()
		var done map[string]any
		e.weir.AdminPost("/v1/invalidate", map[string]string{
			"by": "Tag", "value": "crowd", "namespace": "shop", "mode": mode,
		}, &done)
	}
	e.wantBody(ask(1), []byte("page"))
	e.wantCount("/pages/", pages)

	purge("Soft")
	for i, r := range ask(1) {
		if status := r.Header.Get("Cache-Status"); !strings.Contains(status, "hit; ttl=-") {
			t.Errorf("page %d after a soft purge: Cache-Status %q, want a stale hit", i, status)
		}
	}
	e.refreshed("/pages/", 2*pages)

	purge("Hard")
	e.wantBody(ask(2), []byte("page"))
	e.wantCount("/pages/", 3*pages)
	if most := e.origin.MaxConcurrent("/pages/"); most > atATime {
		t.Errorf("%d fetches at a time, want %d at most", most, atATime)
	}
}

// TestRefreshThatBreaks: a refresh whose answer breaks off leaves no mark behind: the old copy serves on, and the next
// refresh comes.
func TestRefreshThatBreaks(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{Spec: "stale: {whileRevalidate: 600s}"})
	defer e.settles()
	e.serve("/page", func(n int, _ *http.Request) harness.Reply {
		reply := harness.Reply{Body: []byte("page"), Header: harness.Fields("Cache-Control", "max-age=60")}
		switch n {
		case 1:
			reply.Header.Set("Age", "100")
		case 2:
			reply.Cut, reply.CutAfter = true, 2
		}
		return reply
	})
	e.do(e.get("/page"))
	e.wantHit("stale", "/page", "ttl=-")
	e.eventually("the refresh broke", func() bool {
		return e.weir.Metrics().Sum("weir_refills_total") == 1 && e.status().Flights.Flights == 0
	})
	e.eventually("another refresh comes", func() bool {
		r := e.do(e.get("/page"))
		if string(r.Body) != "page" {
			t.Errorf("meanwhile: %d %q", r.Status, r.Body)
		}
		return !strings.Contains(r.Header.Get("Cache-Status"), "ttl=-")
	})
	e.wantCount("/page", 3)
}

// TestKilledDuringARefresh: the process that refreshes dies. Its clients are served all the same, its fetch ends with
// it, and the process that takes its place fetches at once.
func TestKilledDuringARefresh(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{})
	e.serve("/page", func(n int, _ *http.Request) harness.Reply {
		switch n {
		case 1:
			return harness.Reply{Body: []byte("page"), Header: harness.Fields("Cache-Control", "max-age=60", "Age", "70")}
		case 2:
			return harness.Reply{Hang: true}
		}
		return harness.Reply{Body: []byte("page"), Header: harness.Fields("Cache-Control", "max-age=60")}
	})
	e.do(e.get("/page"))
	e.wantHit("stale", "/page", "ttl=-")
	e.answering("/page", 1)
	e.weir.Kill()
	e.answering("/page", 0)
	if r := e.do(e.get("/page")); r.Status != http.StatusOK || string(r.Body) != "page" {
		t.Errorf("without weir: %d %q", r.Status, r.Body)
	}
	e.weir = harness.StartWeir(t, harness.WeirOptions{
		Policies: map[string]string{"shop.yaml": shopPolicy}, RefillAddress: e.envoy.RefillAddress(),
	})
	e.envoy.SetWeir(e.weir.GRPCAddress)
	e.do(e.get("/page"))
	e.wantHit("a new process", "/page", "ttl=")
	e.quiet()
}

package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weirproxy/weir/e2e/harness"
)

const mib = 1 << 20

// flood sends n requests over a few connections, and meanwhile calls look again and again. It returns how many got no
// whole answer with status 200.
func flood(t *testing.T, n int, request func(i int) *http.Request, look func()) (failed int64) {
	t.Helper()
	const clients = 16
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: clients}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: patience}
	var next, bad atomic.Int64
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				resp, err := client.Do(request(int(i)))
				if err == nil {
					_, err = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
				if err != nil || resp.StatusCode != http.StatusOK {
					bad.Add(1)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	for {
		select {
		case <-done:
			return bad.Load()
		default:
			look()
		}
	}
}

// TestEndlessKeys: a counter in the query string fills the store to its limit and no further, in what it says and in
// what the process holds; what is asked for again and again stays.
func TestEndlessKeys(t *testing.T) {
	t.Parallel()
	const (
		keys  = 20_000
		limit = 8 * mib
	)
	e := startEdge(t, edgeOptions{Weir: harness.WeirOptions{Args: []string{fmt.Sprintf("--memory-limit=%d", limit)}}})
	defer e.quiet() // Envoy's log of so many lines is another matter
	page := harness.Reply{Size: 1000, Header: harness.Fields("Cache-Control", "max-age=600", "Content-Type", "text/plain")}
	e.serve("/hot", harness.Always(page))
	e.serve("/page", harness.Always(page))
	for range 10 {
		e.ask("/hot")
	}
	var most float64
	var resident uint64
	look := func() {
		m := e.weir.Metrics()
		most = max(most, m["weir_store_bytes"])
		resident = max(resident, e.weir.ResidentBytes())
	}
	request := func(i int) *http.Request { return e.get(fmt.Sprintf("/page?cb=%d", i)) }

	failed := flood(t, keys/4, request, look)
	warm := resident
	failed += flood(t, keys*3/4, func(i int) *http.Request { return request(keys/4 + i) }, look)
	e.wantCount("/page", keys)
	if failed != 0 {
		t.Errorf("%d requests failed", failed)
	}
	if most > limit || most < limit/2 {
		t.Errorf("weir_store_bytes was up to %.0f, want it near %d and never above", most, limit)
	}
	// Whatever the garbage collector has not taken yet may be there beside what is stored.
	if resident > warm+32*mib {
		t.Errorf("weir held %d MiB after %d keys and %d MiB after %d: it grows", warm/mib, keys/4, resident/mib, keys)
	}
	t.Logf("weir held %d MiB, then up to %d MiB; the store up to %.0f bytes", warm/mib, resident/mib, most)
	m := e.weir.Metrics()
	if stored, gone := m["weir_store_entries"], m[`weir_store_evictions_total{reason="capacity"}`]; stored+gone < keys {
		t.Errorf("%v entries are stored and %v were evicted, of %d", stored, gone, keys)
	}
	e.ask("/hot")
	e.wantCount("/hot", 1)
}

// TestEndlessVariants: one URL collects no more variants than the policy lets it.
func TestEndlessVariants(t *testing.T) {
	t.Parallel()
	const requests, variants = 1000, 16
	e := startEdge(t, edgeOptions{})
	defer e.settles()
	e.serve("/page", harness.Always(harness.Reply{
		Size: 1000, Header: harness.Fields("Cache-Control", "max-age=600", "Vary", "User-Agent"),
	}))
	agent := func(i int) *http.Request { return e.get("/page", "User-Agent", fmt.Sprintf("browser %d", i)) }
	most := 0.0
	failed := flood(t, requests, agent, func() { most = max(most, e.weir.Metrics()["weir_store_entries"]) })
	m := e.weir.Metrics()
	if failed != 0 || most > variants || m["weir_store_entries"] != variants {
		t.Errorf("%d failed; up to %v variants, and %v in the end, want %d", failed, most, m["weir_store_entries"], variants)
	}
	if got := m[`weir_store_evictions_total{reason="variants"}`]; got != requests-variants {
		t.Errorf("%v variants were counted out, want %d", got, requests-variants)
	}
	if got := e.do(agent(requests - 1)); got.Status != 200 || e.origin.Count("/page") > requests {
		t.Errorf("the newest variant: %d, and the origin saw %d requests of %d", got.Status, e.origin.Count("/page"), requests)
	}
}

// TestEndlessTags: an answer is stored with all its tags, by each of which it can be invalidated, or not at all.
func TestEndlessTags(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{Spec: "tags: {responseHeader: Surrogate-Key}"})
	defer e.settles()
	tagged := func(n int) harness.Script {
		var tags strings.Builder
		for i := range n {
			fmt.Fprintf(&tags, "tag-%04d ", i)
		}
		return harness.Always(harness.Reply{
			Body: []byte("page"), Header: harness.Fields("Cache-Control", "max-age=600", "Surrogate-Key", tags.String()),
		})
	}
	e.serve("/many", tagged(1000))
	e.serve("/endless", tagged(5000))
	for range 2 {
		e.ask("/many")
		e.wantCacheStatus("5000 tags", e.do(e.get("/endless")).Header, "detail=too-many-tags")
	}
	e.wantCount("/many", 1)
	e.wantCount("/endless", 2)
	for i, tag := range []string{"tag-0000", "tag-0999", "tag-1000"} {
		var done map[string]any
		e.weir.AdminPost("/v1/invalidate", map[string]string{"by": "Tag", "value": tag, "namespace": "shop"}, &done)
		e.ask("/many")
		e.wantCount("/many", min(2+i, 3))
	}
}

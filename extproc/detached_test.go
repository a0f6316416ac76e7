package extproc_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirproxy/weir/extproc"
	"github.com/weirproxy/weir/extproc/extproctest"
	"github.com/weirproxy/weir/extproc/refill"
)

const tenSeconds = `{ttl: {default: 10s}, jitterPercent: 0, xfetch: {mode: "Off"},
	stale: {whileRevalidate: 600s, ifError: 3600s, softTimeout: 250ms}}`

// TestRefreshIsConditional: a refresh asks with the stored validator, and a 304
// begins the life of what is stored anew.
func TestRefreshIsConditional(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, tenSeconds, page(100*time.Millisecond, "etag", `"v1"`), nil)
		w.get("/page")
		for range 3 {
			time.Sleep(11 * time.Second)
			if r := w.get("/page"); r.FirstByte != 0 || string(r.Body) != "page /page" {
				t.Errorf("stale: %q after %v", r.Body, r.FirstByte)
			}
			time.Sleep(time.Second)
			if r := w.get("/page"); r.Header.Get("age") != "1" && r.Header.Get("age") != "0" {
				t.Errorf("age %s after the refresh", r.Header.Get("age"))
			}
		}
		seen := w.seen()
		for i, a := range seen {
			if got := a.header.Get("if-none-match"); (got == `"v1"`) != (i > 0) {
				t.Errorf("request %d: If-None-Match %q", i, got)
			}
		}
		if n := w.counted("weir_refills_total"); len(seen) != 4 || n["not_modified"] != 3 {
			t.Errorf("%d requests, refills %v", len(seen), n)
		}
	})
}

// TestRefreshOutlivesItsRequest: the client that a refresh began with is long gone
// when it ends.
func TestRefreshOutlivesItsRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, tenSeconds, page(5*time.Second), nil)
		w.get("/page")
		time.Sleep(12 * time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		w.envoy.Do(ctx, extproctest.Get("shop.test", "/page"))
		cancel()
		time.Sleep(6 * time.Second)
		if r := w.get("/page"); r.Header.Get("cache-status") != "weir; hit; ttl=4" {
			t.Errorf("Cache-Status %q, want a fresh hit", r.Header.Get("cache-status"))
		}
		w.wantSeen(2, "one refresh")
	})
}

// TestRefreshDeadlines: a refresh ends by limits of its own where the origin does
// not, and the stale copy serves on.
func TestRefreshDeadlines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, tenSeconds, page(0), nil)
		w.get("/page")
		w.answers(hang)
		time.Sleep(11 * time.Second)
		w.get("/page")
		time.Sleep(refill.DefaultHeaderTimeout - time.Second)
		if s := w.service.Stats(); s.Refills != 1 || s.Flights != 1 {
			t.Errorf("while the origin hangs: %+v", s)
		}
		time.Sleep(2 * time.Second)
		if s := w.service.Stats(); s.Refills != 0 || s.Flights != 0 {
			t.Errorf("after the header timeout: %+v", s)
		}
		if r := w.get("/page"); r.Status != 200 || r.FirstByte != 0 {
			t.Errorf("status %d after %v", r.Status, r.FirstByte)
		}
	})
}

// TestBackOff: a dead origin is asked ever more rarely for a page, and at once
// when it is back and the wait is over.
func TestBackOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, tenSeconds, page(0), nil)
		w.get("/page")
		w.answers(status(503))
		time.Sleep(11 * time.Second)
		w.seen()
		var perMinute []int
		for range 8 {
			for range 60 * 20 {
				if r := w.get("/page"); r.Status != 200 || r.FirstByte > 250*time.Millisecond {
					t.Fatalf("status %d after %v while the origin is down", r.Status, r.FirstByte)
				}
				time.Sleep(50 * time.Millisecond)
			}
			perMinute = append(perMinute, len(w.seen()))
		}
		// Waits of 1, 2, 4 … s, at least half of each: seven at most in the first minute,
		// then one or two a minute.
		if perMinute[0] < 5 || perMinute[0] > 8 || perMinute[7] > 2 {
			t.Errorf("attempts a minute: %v", perMinute)
		}
		w.answers(page(0))
		time.Sleep(time.Minute)
		w.get("/page")
		time.Sleep(time.Second)
		if r := w.get("/page"); r.Header.Get("age") != "1" {
			t.Errorf("age %s, want 1: the origin is back", r.Header.Get("age"))
		}
	})
}

// TestRetryBudget: the pages of a dead origin share a budget of retries.
func TestRetryBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, tenSeconds, page(0), nil)
		const pages = 400
		readAll := func() {
			for i := range pages {
				w.get(fmt.Sprintf("/%d", i))
			}
		}
		readAll()
		w.answers(status(503))
		time.Sleep(11 * time.Second)
		w.seen()
		readAll()
		time.Sleep(time.Second)
		w.wantSeen(pages, "each fails once")
		for range 60 {
			readAll()
			time.Sleep(time.Second)
		}
		if n := len(w.seen()); n > 620 {
			t.Errorf("%d retries in a minute, want 10 a second at most", n)
		}
	})
}

// TestRefreshesAreBounded: of many pages that become stale together no more are
// fetched at a time than originLimits say.
func TestRefreshesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		spec := `{ttl: {default: 10s}, jitterPercent: 0, xfetch: {mode: "Off"},
			originLimits: {maxConcurrentFetches: 3, maxQueue: 20}}`
		w := newWorld(t, spec, page(100*time.Millisecond), nil)
		for i := range 50 {
			w.get(fmt.Sprintf("/%d", i))
		}
		time.Sleep(11 * time.Second)
		w.seen()
		w.mu.Lock()
		w.most = 0
		w.mu.Unlock()
		for i := range 50 {
			if r := w.get(fmt.Sprintf("/%d", i)); r.Status != 200 || r.FirstByte != 0 {
				t.Errorf("page %d: status %d after %v", i, r.Status, r.FirstByte)
			}
		}
		time.Sleep(5 * time.Second)
		n := w.counted("weir_refills_total")
		if seen := len(w.seen()); seen != 23 || w.most != 3 || n["stored"] != 23 || n["dropped"] != 27 {
			t.Errorf("%d fetches, %d at a time; %v", seen, w.most, n)
		}
	})
}

// TestCloseReleasesRefreshes: those at the origin, those in the queue.
func TestCloseReleasesRefreshes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, `{ttl: {default: 10s}, jitterPercent: 0, xfetch: {mode: "Off"},
			originLimits: {maxConcurrentFetches: 1}}`, page(0), nil)
		for i := range 5 {
			w.get(fmt.Sprintf("/%d", i))
		}
		w.answers(hang)
		time.Sleep(11 * time.Second)
		for i := range 5 {
			w.get(fmt.Sprintf("/%d", i))
		}
		synctest.Wait()
		if o := w.service.Origins()[0]; o.Running != 1 || o.Queued != 4 {
			t.Errorf("%d run, %d wait; want 1, 4", o.Running, o.Queued)
		}
		start := time.Now()
		w.service.Close()
		if s, o := w.service.Stats(), w.service.Origins()[0]; s.Refills+s.Flights+o.Running+o.Queued != 0 ||
			time.Since(start) != 0 {
			t.Errorf("left after %v: %+v, %+v", time.Since(start), s, o)
		}
	})
}

// TestWinnerCarries: where no detached fetch is possible, one request carries the
// refresh and all others have the stale copy meanwhile.
func TestWinnerCarries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, tenSeconds, page(time.Second), func(o *extproc.Options) { o.Fetcher = nil })
		w.get("/page")
		time.Sleep(11 * time.Second)
		winner := w.start("/page")
		synctest.Wait()
		for range 10 {
			if r := w.get("/page"); r.FirstByte != 0 || r.Asked {
				t.Errorf("another waits %v", r.FirstByte)
			}
		}
		if r := <-winner; r.FirstByte != time.Second || !r.Asked {
			t.Errorf("the winner waits %v, want 1s", r.FirstByte)
		}
		if r := w.get("/page"); r.Header.Get("cache-status") != "weir; hit; ttl=9" {
			t.Errorf("Cache-Status %q, want a fresh hit", r.Header.Get("cache-status"))
		}
		w.wantSeen(2, "one refresh")
	})
}

// TestSoftTimeout: past the stale-while-revalidate window a request waits for a
// slow or dead origin for softTimeout, not longer, and its fetch lives on.
func TestSoftTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, `{ttl: {default: 10s}, jitterPercent: 0, xfetch: {mode: "Off"},
			stale: {whileRevalidate: 0s, ifError: 600s, softTimeout: 250ms}}`, page(2*time.Second), nil)
		w.get("/page")
		time.Sleep(11 * time.Second)
		if r := w.get("/page"); r.Status != 200 || r.FirstByte != 250*time.Millisecond {
			t.Errorf("status %d after %v, want stale after 250ms", r.Status, r.FirstByte)
		}
		time.Sleep(2 * time.Second)
		if r := w.get("/page"); r.FirstByte != 0 || r.Header.Get("cache-status") != "weir; hit; ttl=7" {
			t.Errorf("%q after %v, want a fresh hit", r.Header.Get("cache-status"), r.FirstByte)
		}
		w.wantSeen(2, "one refresh")
		time.Sleep(time.Hour)
		if r := w.get("/page"); !r.Asked && r.FirstByte < 2*time.Second {
			t.Errorf("past every window: %q after %v", r.Header.Get("cache-status"), r.FirstByte)
		}
	})
}

// TestRefillCarriesNothingOfItsClient: neither credentials nor conditions.
func TestRefillCarriesNothingOfItsClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, tenSeconds, page(0, "cache-control", "public, max-age=10"), nil)
		w.get("/page")
		time.Sleep(11 * time.Second)
		w.seen()
		w.get("/page", "authorization", "Bearer x", "if-none-match", `"mine"`, "x-forwarded-for", "192.0.2.1",
			"accept-language", "de")
		time.Sleep(time.Second)
		seen := w.seen()
		if len(seen) != 1 {
			t.Fatalf("%d fetches, want a refresh", len(seen))
		}
		for _, name := range []string{"authorization", "if-none-match", "x-forwarded-for"} {
			if seen[0].header.Has(name) {
				t.Errorf("the refresh carries %s", name)
			}
		}
		if !seen[0].header.Has("accept-language") {
			t.Error("the refresh lacks what may select the variant")
		}
	})
}

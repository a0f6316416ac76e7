package extproc_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirproxy/weir/extproc"
	"github.com/weirproxy/weir/extproc/extproctest"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/warm"
)

// warm loads a path with the given fields.
func (w *world) warm(ctx context.Context, path string, fields ...string) warm.Outcome {
	return w.service.Warm(ctx, w.binding, extproctest.Get("shop.test", path, fields...))
}

func (w *world) wantWarm(got, want warm.Outcome) {
	w.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("warm-up (-want +got):\n%s", diff)
	}
}

// TestWarmStoresWhatARequestWould: under the same key, and the variant that the
// fields select.
func TestWarmStoresWhatARequestWould(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, `{ttl: {default: 60s}, key: {headers: [X-Tenant], query: {mode: Exclude, names: [{value: x}]}}}`,
			page(10*time.Millisecond, "vary", "Accept-Encoding"), nil)
		stored := warm.Outcome{Result: warm.Stored}
		w.wantWarm(w.warm(t.Context(), "/page?x=1&y=2", "x-tenant", "t1"), stored)
		w.wantWarm(w.warm(t.Context(), "/page?y=2", "x-tenant", "t1", "accept-encoding", "gzip"), stored)
		w.wantWarm(w.warm(t.Context(), "/page?y=2", "x-tenant", "t2"), stored)
		w.wantWarm(w.warm(t.Context(), "/page?y=2", "x-tenant", "t1"), warm.Outcome{Result: warm.Skipped})
		w.wantSeen(3, "the warm-up")
		for _, fields := range [][]string{{"x-tenant", "t1"}, {"x-tenant", "t1", "accept-encoding", "gzip"},
			{"x-tenant", "t2", "user-agent", "me"}} {
			if r := w.get("/page?y=2&x=9", fields...); r.Status != 200 || r.Asked {
				t.Errorf("%v: status %d, asked the origin: %t", fields, r.Status, r.Asked)
			}
		}
		if r := w.get("/page?y=2", "x-tenant", "t1", "accept-encoding", "br"); !r.Asked {
			t.Error("a variant that was not loaded is a hit")
		}
		if n := w.counted("weir_requests_total"); n["hit"] != 3 || n["miss"] != 1 || len(n) != 2 {
			t.Errorf("outcomes %v: a warm-up is no client's request", n)
		}
	})
}

// TestWarmOutcomes: what becomes of URLs that are not simply stored.
func TestWarmOutcomes(t *testing.T) {
	t.Parallel()
	failed := func(reason string) warm.Outcome { return warm.Outcome{Result: warm.Failed, Reason: reason} }
	retry := func(reason string) warm.Outcome {
		return warm.Outcome{Result: warm.Failed, Reason: reason, Retry: true}
	}
	uncacheable := func(reason string) warm.Outcome {
		return warm.Outcome{Result: warm.Uncacheable, Reason: reason}
	}
	const minute = `{ttl: {default: 60s}, negativeTTL: [{status: "404", ttl: 5s}], storage: {maxObjectSize: 1Ki}}`
	tests := []struct {
		name, spec string
		origin     extproctest.Origin
		fields     []string
		want       warm.Outcome
		asked      int
	}{
		{"private", minute, page(0, "cache-control", "private"), nil, uncacheable("status 200: private"), 1},
		{"no lifetime", `{}`, page(0), nil, uncacheable("status 200: no-lifetime"), 1},
		{"a cookie is set", minute, page(0, "set-cookie", "a=b"), nil, uncacheable("status 200: set-cookie"), 1},
		{"redirect", minute, status(301), nil, uncacheable("status 301: refill-status"), 1},
		{"too large", minute, page(0, "content-length", "2048"), nil, uncacheable("status 200: too-large"), 1},
		{"not found", minute, status(404), nil, failed("status 404, kept by negativeTTL"), 1},
		{"server error", minute, status(500), nil, retry("status 500"), 1},
		{"unavailable", minute, status(503), nil, retry("status 503"), 1},
		{"authorization", minute, page(0), []string{"authorization", "Bearer x"},
			failed("what is fetched for everybody carries no credentials"), 0},
		{"cookie", minute, page(0), []string{"cookie", "sid=1"},
			failed("what is fetched for everybody carries no credentials"), 0},
		{"range", minute, page(0), []string{"range", "bytes=0-9"}, failed("the whole is stored, not a range"), 0},
		{"upgrade", minute, page(0), []string{"connection", "upgrade", "upgrade", "websocket"},
			failed("a request like this passes the cache by: tunnel"), 0},
		{"disabled", `{mode: Disabled}`, page(0), nil,
			failed("a request like this passes the cache by: policy-disabled"), 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, tt.spec, tt.origin, nil)
				w.wantWarm(w.warm(t.Context(), "/page", tt.fields...), tt.want)
				w.wantSeen(tt.asked, tt.name)
			})
		})
	}
}

func TestWarmWithoutRefill(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, `{ttl: {default: 60s}}`, page(0), func(o *extproc.Options) { o.Fetcher = nil })
		w.wantWarm(w.warm(t.Context(), "/page"), warm.Outcome{Result: warm.Failed,
			Reason: "no detached fetch is possible for the scheme http"})
	})
}

// TestWarmAndClients: who asks meanwhile follows the warm-up's fetch, and a fetch
// of clients is not made twice.
func TestWarmAndClients(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, `{ttl: {default: 60s}}`, page(time.Second), nil)
		warmed := make(chan warm.Outcome, 1)
		w.clients.Go(func() { warmed <- w.warm(t.Context(), "/a") })
		synctest.Wait()
		client := w.start("/a")
		if r := <-client; r.Status != 200 || r.FirstByte != time.Second || string(r.Body) != "page /a" {
			t.Errorf("a follower: status %d after %v", r.Status, r.FirstByte)
		}
		w.wantWarm(<-warmed, warm.Outcome{Result: warm.Stored})
		client = w.start("/b")
		synctest.Wait()
		w.wantWarm(w.warm(t.Context(), "/b"), warm.Outcome{Result: warm.Skipped})
		<-client
		w.answers(page(time.Second, "cache-control", "private"))
		client = w.start("/c")
		synctest.Wait()
		w.wantWarm(w.warm(t.Context(), "/c"), warm.Outcome{Result: warm.Failed, Retry: true,
			Reason: "the fetch it followed: private"})
		<-client
		w.wantSeen(3, "each")
	})
}

// TestWarmVariantsAtOnce: variants of one URL that are loaded at the same time all
// get there, although Vary is not known when they begin.
func TestWarmVariantsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, `{ttl: {default: 60s}}`, page(time.Second, "vary", "accept-encoding"), nil)
		codings := []string{"gzip", "br", "zstd", "gzip"}
		outcomes, start := make(chan warm.Outcome, len(codings)), time.Now()
		for _, coding := range codings {
			w.clients.Go(func() { outcomes <- w.warm(t.Context(), "/page", "accept-encoding", coding) })
			synctest.Wait()
		}
		results := map[warm.Result]int{}
		for range codings {
			results[(<-outcomes).Result]++
		}
		if results[warm.Stored] != 3 || results[warm.Skipped] != 1 {
			t.Errorf("results %v, want 3 stored and 1 skipped", results)
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("took %v, want 2s: one fetch, then two at a time", took)
		}
		w.wantSeen(3, "the warm-up")
		for _, coding := range codings {
			if r := w.get("/page", "accept-encoding", coding); r.Asked {
				t.Errorf("%s was not loaded", coding)
			}
		}
	})
}

// TestWarmEnds: with its context, and with the service; nothing stays.
func TestWarmEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, `{ttl: {default: 60s}}`, hang, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if o := w.warm(ctx, "/a"); o.Result != warm.Failed || time.Since(start) != time.Second {
			t.Errorf("%+v after %v, want a failure after 1s", o, time.Since(start))
		}
		ended := make(chan warm.Outcome, 1)
		w.clients.Go(func() { ended <- w.warm(t.Context(), "/b") })
		time.Sleep(time.Second)
		start = time.Now()
		w.service.Close()
		if o := <-ended; o.Result != warm.Failed || time.Since(start) != 0 {
			t.Errorf("%+v %v after the service ended", o, time.Since(start))
		}
	})
}

// TestWarmerOverService: a list, end to end: the pace, the counts, the store.
func TestWarmerOverService(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, `{ttl: {default: 600s}, jitterPercent: 0}`, page(100*time.Millisecond), nil)
		warmer := warm.New(warm.Options{Rate: 10, Concurrency: 2, Log: w.logger(),
			Load: func(ctx context.Context, r *warm.Request) warm.Outcome {
				return w.service.Warm(ctx, w.binding, r.Cache())
			}})
		ctx, cancel := context.WithCancel(t.Context())
		w.clients.Go(func() { warmer.Run(ctx) })
		list := "http://shop.test/bad\n  Range: bytes=0-1\n"
		for i := range 50 {
			list += "http://shop.test/" + string(rune('a'+i%25)) + "\n"
		}
		requests, err := warm.ParseFile("list", []byte(list))
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, done, err := warmer.Add("test", requests, start)
		if err != nil {
			t.Fatal(err)
		}
		<-done
		j := warmer.Jobs()[0]
		if j.Stored != 25 || j.Skipped != 25 || j.Failed != 1 || time.Since(start) < 5*time.Second {
			t.Errorf("%+v after %v", j, time.Since(start))
		}
		w.wantSeen(25, "a list of 25 pages, each twice")
		if r := w.get("/c"); r.Asked {
			t.Error("a loaded page is fetched")
		}
		cancel()
	})
}

// TestWarmKeyIsTheRequests: the key of a loaded URL does not depend on how Envoy
// shows a client's request beyond what counts in it.
func TestWarmKeyIsTheRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, `{ttl: {default: 60s}}`, page(0), nil)
		w.wantWarm(w.service.Warm(t.Context(), w.binding, &httpcache.Request{
			Method: "GET", Scheme: "http", Authority: "SHOP.test:80", Path: "/%7Ea?b",
		}), warm.Outcome{Result: warm.Stored})
		r := w.get("/%7Ea?b", "x-forwarded-proto", "http", "x-forwarded-for", "192.0.2.1", "x-request-id", "1",
			"accept", "*/*", "user-agent", "me")
		if r.Asked {
			t.Error("the request has another key than the URL that was loaded")
		}
	})
}

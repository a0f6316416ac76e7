package e2e_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirproxy/weir/e2e/harness"
)

// refuse is a filter in front of weir that answers 401 by itself. Its Cache-Control is bait.
const refuse = `name: envoy.filters.http.lua
typed_config:
  "@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua
  default_source_code:
    inline_string: |
      function envoy_on_request(handle)
        if handle:headers():get("x-refuse") then
          handle:respond({[":status"] = "401", ["cache-control"] = "max-age=60"}, "refused")
        end
      end`

// shortRoute times out while an origin hangs.
func shortRoute() []harness.Route { return []harness.Route{{Name: "default", Timeout: time.Second}} }

// TestAnswersOfEnvoyAreNotStored: a filter's 401, a 400 for want of a host, a refused connection's 503 and a route's 504 go
// to the client they are for, and to nobody else: the next one gets the origin's answer.
func TestAnswersOfEnvoyAreNotStored(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{
		Envoy: harness.EnvoyOptions{FiltersBefore: []string{refuse}, Routes: shortRoute()},
		Spec: "negativeTTL: [{status: 5xx, ttl: 60s}, {status: \"401\", ttl: 60s}, {status: \"400\", ttl: 60s}]\n" +
			"ttl: {default: 60s}",
	})
	defer e.settles()
	page := harness.Reply{Body: []byte("page"), Header: harness.Fields("Cache-Control", "max-age=60")}
	hangsOnce := func(n int, _ *http.Request) harness.Reply {
		if n == 1 {
			return harness.Reply{Hang: true}
		}
		return page
	}
	tests := []struct {
		name, path string
		script     harness.Script
		fails      func(path string) int // makes one request that fails and returns its status
		want       int
		counted    string
	}{
		{"filter in front", "/refused", harness.Always(page), func(path string) int {
			return e.do(e.get(path, "X-Refuse", "yes")).Status
		}, 401, "local_reply"},
		{"no host", "/hostless", harness.Always(page), func(path string) int {
			e.wantRawStatus("400", "GET "+path+" HTTP/1.1\r\nConnection: close\r\n\r\n")
			return 400
		}, 400, "local_reply"},
		{"connection refused", "/down", harness.Always(page), func(path string) int {
			e.origin.Down()
			defer e.origin.Up()
			return e.do(e.get(path)).Status
		}, 503, "miss_uncacheable"},
		{"route timeout", "/slow", hangsOnce, func(path string) int {
			return e.do(e.get(path)).Status
		}, 504, "miss_uncacheable"},
	}
	for _, tt := range tests {
		before := e.outcomes()
		e.serve(tt.path, tt.script)
		if status := tt.fails(tt.path); status != tt.want {
			t.Errorf("%s: status %d, want %d", tt.name, status, tt.want)
		}
		if tt.counted != "" && e.outcomes()[tt.counted] != before[tt.counted]+1 {
			t.Errorf("%s: counted %v after %v, want one more %s", tt.name, e.outcomes(), before, tt.counted)
		}
		if n, want := e.status().Store.Entries, before["miss"]; n != want {
			t.Errorf("%s: %d entries are stored, want %d", tt.name, n, want)
		}
		if got := e.do(e.get(tt.path)); got.Status != 200 || string(got.Body) != "page" {
			t.Errorf("%s: the next client got %d %q", tt.name, got.Status, got.Body)
		}
	}
}

// wantRawStatus sends bytes and checks the status of what comes back.
func (e *edge) wantRawStatus(want, request string) {
	e.t.Helper()
	if got := harness.Raw(e.t, e.envoy.Address(), request); !strings.HasPrefix(got, "HTTP/1.1 "+want+" ") {
		e.t.Errorf("answer %.200q, want status %s", got, want)
	}
}

// TestCodecErrorIsNotStored: weir may or may not hear of a request that Envoy cannot read, depending on whether its
// stream was on its way when Envoy closed the connection. Envoy does not wait for what weir says of its 400, so the
// client mostly sees the connection closed.
func TestCodecErrorIsNotStored(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{Spec: "negativeTTL: [{status: \"400\", ttl: 60s}]"})
	defer e.quiet()
	e.serve("/page", harness.Always(harness.Reply{Body: []byte("page")}))
	for range 10 {
		answer := harness.Raw(t, e.envoy.Address(), "GET /page HTTP/1.1\r\nHost: shop.test\r\nbad header\r\n\r\n")
		if answer != "" && !strings.HasPrefix(answer, "HTTP/1.1 400 ") {
			t.Errorf("answer to a malformed request: %q", answer)
		}
	}
	if got := e.do(e.get("/page", "Host", "shop.test")); got.Status != 200 || string(got.Body) != "page" {
		t.Errorf("the next client got %d %q", got.Status, got.Body)
	}
	e.quiet()
	counted := e.outcomes()
	delete(counted, "local_reply")
	delete(counted, "canceled")
	if diff := cmp.Diff(map[string]int{"miss_uncacheable": 1}, counted); diff != "" || e.status().Store.Entries != 0 {
		t.Errorf("%d entries; outcomes (-want +got):\n%s", e.status().Store.Entries, diff)
	}
}

// TestUnreachableIsStoredWhereThePolicySaysSo: negativeTTL for Unreachable is about Envoy's own answers, and only those.
func TestUnreachableIsStoredWhereThePolicySaysSo(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{
		Envoy: harness.EnvoyOptions{FiltersBefore: []string{refuse}},
		Spec:  "negativeTTL: [{status: Unreachable, ttl: 1h}]",
	})
	defer e.settles()
	e.serve("/down", harness.Always(harness.Reply{Body: []byte("up")}))
	e.serve("/error", harness.Always(harness.Reply{Status: 503}))
	e.origin.Down()
	for _, wait := range []string{"stored", "hit"} {
		got := e.do(e.get("/down"))
		if status := got.Header.Get("Cache-Status"); got.Status != 503 || !strings.Contains(status, wait) {
			t.Errorf("%d with Cache-Status %q, want 503 and %s", got.Status, status, wait)
		}
	}
	e.origin.Up()
	for range 2 {
		e.do(e.get("/error"))
		e.do(e.get("/refused", "X-Refuse", "yes"))
	}
	e.wantCount("/error", 2)
	e.wantOutcomes(map[string]int{"miss": 1, "hit_negative": 1, "miss_uncacheable": 2, "local_reply": 2})
}

// TestFollowersOfAFailedFetch: the leader gets Envoy's own answer, the followers one of weir's, with Retry-After.
func TestFollowersOfAFailedFetch(t *testing.T) {
	t.Parallel()
	const clients = 10
	e := startEdge(t, edgeOptions{Envoy: harness.EnvoyOptions{Routes: shortRoute()}})
	defer e.settles()
	e.serve("/page", harness.Always(harness.Reply{Hang: true}))
	statuses := make(map[int]int)
	for _, r := range e.burst(clients, e.get("/page"))() {
		statuses[r.Status]++
		if r.Err != nil || r.Status == 503 && r.Header.Get("Retry-After") == "" {
			t.Errorf("status %d, header %v, error %v", r.Status, r.Header, r.Err)
		}
	}
	if statuses[504] != 1 || statuses[503] != clients-1 {
		t.Errorf("statuses %v, want one 504 of Envoy's and the others 503 of weir's", statuses)
	}
	e.wantCount("/page", 1)
	e.wantOutcomes(map[string]int{"miss_uncacheable": 1, "unavailable": clients - 1})
}

// TestStaleStandsInForAnswersOfEnvoy: with a stale copy, a refused connection and a route's timeout are not seen by
// clients; a refusal by a filter in front is, for it is meant for this request.
func TestStaleStandsInForAnswersOfEnvoy(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, noRefill bool) {
		e := startEdge(t, edgeOptions{
			Envoy:    harness.EnvoyOptions{FiltersBefore: []string{refuse}, Routes: shortRoute()},
			NoRefill: noRefill,
			Spec: "stale: {whileRevalidate: 0s, ifError: 60s, softTimeout: 0s}\n" +
				"negativeTTL: [{status: 5xx, ttl: 10s}, {status: Unreachable, ttl: 10s}]",
		})
		defer e.settles()
		old := func(tag string) harness.Script {
			return func(n int, _ *http.Request) harness.Reply {
				if n > 1 {
					return harness.Reply{Hang: true}
				}
				return harness.Reply{Body: []byte("old"), ETag: tag, Header: harness.Fields("Cache-Control", "max-age=0")}
			}
		}
		tests := []struct{ name, path, tag string }{
			{"slow, with validator", "/slow/tag", `"v1"`},
			{"slow", "/slow", ""},
			{"down, with validator", "/down/tag", `"v1"`},
			{"down", "/down", ""},
		}
		for _, tt := range tests {
			e.serve(tt.path, old(tt.tag))
			e.do(e.get(tt.path))
		}
		for _, tt := range tests {
			if strings.HasPrefix(tt.name, "down") {
				e.origin.Down()
			}
			got := e.do(e.get(tt.path))
			if got.Status != 200 || string(got.Body) != "old" || !strings.Contains(got.Header.Get("Cache-Status"), "stale-if-error") {
				t.Errorf("%s: %d %q, Cache-Status %q", tt.name, got.Status, got.Body, got.Header.Get("Cache-Status"))
			}
			if got.Header.Get("Age") == "" {
				t.Errorf("%s: no Age", tt.name)
			}
			if got := e.do(e.get(tt.path, "X-Refuse", "yes")); got.Status != 401 || string(got.Body) != "refused" {
				t.Errorf("%s: refused by a filter: %d %q", tt.name, got.Status, got.Body)
			}
			e.origin.Up()
		}
		e.wantOutcomes(map[string]int{"miss": 4, "stale_if_error": 4, "local_reply": 4})
		for _, tt := range tests {
			e.serve(tt.path, harness.Always(harness.Reply{Body: []byte("new"), Header: harness.Fields("Cache-Control", "max-age=60")}))
			e.eventually("the new answer is served", func() bool { return string(e.do(e.get(tt.path)).Body) == "new" })
		}
	})
}

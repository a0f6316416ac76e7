package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weirproxy/weir/e2e/harness"
)

// wantMissThenHit asks twice and checks that both answers are the origin's and the second comes from the cache.
func (e *edge) wantMissThenHit(what, path string, req *http.Request, want string) {
	e.t.Helper()
	before := e.origin.Count(path)
	for _, how := range []string{"stored", "hit"} {
		got := e.do(req.Clone(e.t.Context()))
		if status := got.Header.Get("Cache-Status"); got.Status != 200 || string(got.Body) != want ||
			!strings.Contains(status, how) {
			e.t.Errorf("%s: %d %.100q, Cache-Status %q, want %q and %s", what, got.Status, got.Body, status, want, how)
		}
	}
	if n := e.origin.Count(path) - before; n != 1 {
		e.t.Errorf("%s: the origin saw %d requests, want 1", what, n)
	}
}

// TestOversizedRequests: 100 kB of header fields and a URL of 60 kB are as good as any other, and a difference in the
// last byte is one.
func TestOversizedRequests(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{})
	defer e.settles()
	e.serve("/", func(n int, r *http.Request) harness.Reply {
		size := 0
		for name, values := range r.Header {
			size += len(name) + len(strings.Join(values, ""))
		}
		body := fmt.Sprintf("%d: %t %.10s", n, size > 100_000, r.URL.Query().Get("end"))
		return harness.Reply{Body: []byte(body), Header: harness.Fields("Cache-Control", "max-age=60")}
	})
	oneField := e.get("/field", "X-Large", strings.Repeat("x", 100_000))
	e.wantMissThenHit("one field", "/", oneField, "1: true ")
	manyFields := e.get("/fields")
	for i := range 900 {
		manyFields.Header.Set(fmt.Sprintf("X-Field-%d", i), strings.Repeat("y", 110))
	}
	e.wantMissThenHit("many fields", "/", manyFields, "2: true ")

	long := "/long?" + strings.Repeat("x", 60_000) + "&end="
	e.wantMissThenHit("long URL", "/", e.get(long+"a"), "3: false a")
	e.wantMissThenHit("long URL with another end", "/", e.get(long+"b"), "4: false b")
	e.wantOutcomes(map[string]int{"miss": 4, "hit": 4})
}

// TestOversizedResponses: fields that Envoy lets through come back byte for byte from the cache; what it refuses (its
// limit is 60 KiB) is an error of Envoy's that is not stored.
func TestOversizedResponses(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{Spec: "negativeTTL: [{status: 5xx, ttl: 60s}]"})
	defer e.settles()
	large := strings.Repeat("x", 50_000)
	e.serve("/large", harness.Always(harness.Reply{Header: harness.Fields("Cache-Control", "max-age=60", "X-Large", large)}))
	for range 2 {
		if got := e.do(e.get("/large")); got.Status != 200 || got.Header.Get("X-Large") != large {
			t.Errorf("status %d, X-Large of %d bytes, want %d", got.Status, len(got.Header.Get("X-Large")), len(large))
		}
	}
	e.serve("/refused", harness.Always(harness.Reply{Header: harness.Fields("Cache-Control", "max-age=60", "X-Large", large+large)}))
	for range 2 {
		if got := e.do(e.get("/refused")); got.Status/100 != 5 {
			t.Errorf("status %d for fields that Envoy does not take", got.Status)
		}
	}
	e.wantOutcomes(map[string]int{"miss": 1, "hit": 1, "miss_uncacheable": 2})
}

// TestOddBytesInFields: bytes that are no UTF-8 may stand in a field (RFC 9110 §5.5): they come through, and select
// variants. Control characters may not: Envoy refuses them on either side, and nothing of it is stored.
func TestOddBytesInFields(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{Spec: "negativeTTL: [{status: 5xx, ttl: 60s}]"})
	defer e.quiet() // weir need not hear of what Envoy refuses
	const odd = "caf\xe9 \xff\xfe"
	e.serve("/odd", func(_ int, r *http.Request) harness.Reply {
		return harness.Reply{
			Body:   []byte(r.Header.Get("X-Odd")),
			Header: harness.Fields("Cache-Control", "max-age=60", "Vary", "X-Odd", "X-Odd", odd),
		}
	})
	for _, value := range []string{"\xff", "\xfe", "\xef\xbf\xbd", odd} { // the third is U+FFFD, which they are not
		e.wantMissThenHit(fmt.Sprintf("%q", value), "/odd", e.get("/odd", "X-Odd", value), value)
	}
	got := e.do(e.get("/odd", "X-Odd", odd))
	if field := got.Header.Get("X-Odd"); field != odd || !strings.Contains(got.Header.Get("Cache-Status"), "hit") {
		t.Errorf("a hit has the field %q, Cache-Status %q; want %q", field, got.Header.Get("Cache-Status"), odd)
	}

	for _, value := range []string{"a\x01b", "a\x00b", "a\x7fb"} {
		answer := harness.Raw(t, e.envoy.Address(),
			"GET /odd HTTP/1.1\r\nHost: shop.test\r\nConnection: close\r\nX-Odd: "+value+"\r\n\r\n")
		if answer != "" && !strings.HasPrefix(answer, "HTTP/1.1 400 ") {
			t.Errorf("request with %q: answer %.100q", value, answer)
		}
	}
	for i, value := range []string{"a\x01b", "a\x00b"} {
		path := fmt.Sprint("/control/", i)
		e.serve(path, harness.Always(harness.Reply{
			Raw: "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nX-Odd: " + value + "\r\nContent-Length: 4\r\n\r\nevil",
		}))
		for range 2 {
			if got := e.do(e.get(path)); got.Status/100 != 5 {
				t.Errorf("response with %q: %d %q, header %v", value, got.Status, got.Body, got.Header)
			}
		}
		e.wantCount(path, 2)
	}
	if n := e.status().Store.Entries; n != 4 {
		t.Errorf("%d entries are stored, want the 4 variants", n)
	}
}

// TestOddURLs: what Envoy lets through is a key like any other, and no two of them are one.
func TestOddURLs(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{})
	defer e.settles()
	e.serve("/", func(_ int, r *http.Request) harness.Reply {
		return harness.Reply{Body: []byte(r.RequestURI), Header: harness.Fields("Cache-Control", "max-age=60")}
	})
	targets := []string{
		"/a%00b", "/a%0d%0aSet-Cookie:%20x=1", "/a%ffb", "/a%FEb", "/..%2f..%2fetc", "/a//b", "/a/./b", "/?", "/",
		"/a?b=%00", "/a?b=%zz", "/a;b", "/%61", "/a%20b", `/a"b`, "/a|b",
	}
	for _, target := range targets {
		request := "GET " + target + " HTTP/1.1\r\nHost: shop.test\r\nConnection: close\r\n\r\n"
		for _, how := range []string{"stored", "hit"} {
			answer := harness.Raw(t, e.envoy.Address(), request)
			refused := strings.HasPrefix(answer, "HTTP/1.1 400 ") // by the origin: Go wants a valid escape
			if !refused && (!strings.HasSuffix(answer, "\r\n\r\n"+target) || !strings.Contains(answer, how)) {
				t.Errorf("%s: want it %s: %q", target, how, answer)
			}
			if strings.Contains(answer, "set-cookie") {
				t.Errorf("%s: an injected field: %q", target, answer)
			}
		}
	}
}

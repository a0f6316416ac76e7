package e2e_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirproxy/weir/e2e/harness"
)

// sessions answers each request with a cookie and a body of its own.
func sessions(gate <-chan struct{}) harness.Script {
	return func(n int, _ *http.Request) harness.Reply {
		return harness.Reply{Gate: gate, Body: fmt.Append(nil, n), Header: harness.Fields(
			"Cache-Control", "public, max-age=60", "Set-Cookie", fmt.Sprintf("sid=%d", n), "Set-Cookie", "theme=dark")}
	}
}

// TestSetCookieIsNotStored: an answer that sets a cookie is one client's own, those that asked meanwhile included.
func TestSetCookieIsNotStored(t *testing.T) {
	t.Parallel()
	const clients = 10
	e := startEdge(t, edgeOptions{})
	defer e.settles()
	e.serve("/page", sessions(nil))
	for n := 1; n <= 3; n++ {
		got := e.do(e.get("/page"))
		want := []string{fmt.Sprintf("sid=%d", n), "theme=dark"}
		if diff := cmp.Diff(want, got.Header.Values("Set-Cookie")); diff != "" || string(got.Body) != fmt.Sprint(n) {
			t.Errorf("client %d got %q with cookies (-want +got):\n%s", n, got.Body, diff)
		}
	}
	gate := make(chan struct{})
	e.serve("/burst", sessions(gate))
	answers := e.burst(clients, e.get("/burst"))
	e.waiting(clients - 1)
	close(gate)
	all := answers()
	wantDistinct(t, all)
	for i, r := range all {
		if got := r.Header.Get("Set-Cookie"); got != "sid="+string(r.Body) {
			t.Errorf("client %d got body %q with cookie %q", i, r.Body, got)
		}
	}
	if n := e.status().Store.Entries; n != 0 {
		t.Errorf("%d entries are stored, want none", n)
	}
}

// TestSetCookieIsStripped: where the policy says so, the client whose request went to the origin gets its cookie, and
// everybody else the page without one.
func TestSetCookieIsStripped(t *testing.T) {
	t.Parallel()
	const clients = 10
	e := startEdge(t, edgeOptions{Spec: "storage: {setCookie: Strip}"})
	defer e.settles()
	gate := make(chan struct{})
	e.serve("/page", sessions(gate))
	answers := e.burst(clients, e.get("/page"))
	e.waiting(clients - 1)
	close(gate)
	cookies := 0
	all := answers()
	e.wantBody(all, []byte("1"))
	for _, r := range all {
		if got := r.Header.Values("Set-Cookie"); len(got) > 0 {
			cookies++
			if diff := cmp.Diff([]string{"sid=1", "theme=dark"}, got); diff != "" {
				t.Errorf("cookies of the first client (-want +got):\n%s", diff)
			}
		}
	}
	if cookies != 1 {
		t.Errorf("%d clients got a cookie, want 1", cookies)
	}
	for range 2 {
		if got := e.do(e.get("/page")); string(got.Body) != "1" || got.Header.Get("Set-Cookie") != "" {
			t.Errorf("a hit is %q with cookie %q", got.Body, got.Header.Get("Set-Cookie"))
		}
	}
	e.wantCount("/page", 1)
}

// TestCookieOfARequest: an answer to a request with a cookie is shared only where the origin states a lifetime, where
// the policy has the cookie in the key, or where it ignores cookies.
func TestCookieOfARequest(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, spec string
		silent     int // fetches of two users' requests, one after the other, twice: the origin states nothing
		stated     int // and where it states a lifetime
	}{
		{"bypass", "", 4, 1},
		{"ignore", "storage: {requestCookies: Ignore}", 1, 1},
		{"key", "key: {cookies: [user]}", 2, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := startEdge(t, edgeOptions{Spec: "ttl: {default: 60s}\n" + tt.spec})
			defer e.settles()
			e.serve("/silent", says(field("Cookie")))
			e.serve("/stated", says(field("Cookie"), "Cache-Control", "max-age=60"))
			for _, path := range []string{"/silent", "/stated"} {
				for _, user := range []string{"a", "b", "a", "b"} {
					got := e.ask(path, "Cookie", "user="+user)
					if tt.name == "key" && got != "Cookie=user="+user {
						t.Errorf("%s: %s got %q", path, user, got)
					}
				}
			}
			e.wantCount("/silent", tt.silent)
			e.wantCount("/stated", tt.stated)
		})
	}
}

// TestCutBodiesAreNotStored: an answer that breaks off is seen to break off, by followers too, and is kept by nobody.
func TestCutBodiesAreNotStored(t *testing.T) {
	t.Parallel()
	const followers, size, seen = 5, 1000, 300
	e := startEdge(t, edgeOptions{})
	defer e.settles()
	for path, chunked := range map[string]bool{"/chunked": true, "/length": false} {
		before := e.weir.Metrics()
		more := make(chan struct{})
		e.serve(path, func(n int, _ *http.Request) harness.Reply {
			reply := harness.Reply{Size: size, Chunked: chunked, Header: harness.Fields("Cache-Control", "max-age=60")}
			if n == 1 {
				reply.PauseAfter, reply.BodyGate, reply.Cut, reply.CutAfter = seen, more, true, 2*seen
			}
			return reply
		})
		var clients []*answer
		for range 1 + followers {
			clients = append(clients, e.begin(e.get(path), seen))
		}
		close(more)
		for i, c := range clients {
			if body, err := c.rest(); err == nil {
				t.Errorf("%s: client %d took %d bytes for the whole", path, i, len(body))
			}
			c.hangUp()
		}
		e.quiet()
		if gained := e.weir.Metrics().Since(before, "weir_fills_total"); gained[`weir_fills_total{result="incomplete"}`] != 1 {
			t.Errorf("%s: fills %v, want one incomplete", path, gained)
		}
		for range 2 {
			e.wantBody(e.burst(1, e.get(path))(), harness.GeneratedBody(size))
		}
		e.wantCount(path, 2)
	}
}

// TestCutRefreshKeepsWhatIsThere: a refresh that breaks off changes nothing.
func TestCutRefreshKeepsWhatIsThere(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{Spec: "stale: {whileRevalidate: 60s}"})
	defer e.settles()
	e.serve("/page", func(n int, _ *http.Request) harness.Reply {
		reply := harness.Reply{Body: bytes.Repeat([]byte{'a' + byte(n)}, 1000), Header: harness.Fields("Cache-Control", "max-age=60")}
		reply.Cut, reply.CutAfter = n == 2, 600
		return reply
	})
	first := e.ask("/page")
	e.invalidateSoftly("/page")
	if got := e.ask("/page"); got != first {
		t.Errorf("stale answer %.10q, want the first", got)
	}
	e.eventually("the refresh has failed", func() bool {
		return e.weir.Metrics()[`weir_refills_total{result="failed"}`] == 1
	})
	if got := e.ask("/page"); got != first {
		t.Errorf("after a refresh that broke off: %.10q, want the first answer", got)
	}
	e.eventually("a later refresh takes its place", func() bool { return e.ask("/page") == strings.Repeat("d", 1000) })
	e.wantCount("/page", 3)
}

// invalidateSoftly makes what is stored of a path stale.
func (e *edge) invalidateSoftly(path string) {
	e.t.Helper()
	var done map[string]any
	e.weir.AdminPost("/v1/invalidate", map[string]string{
		"by": "Url", "value": e.envoy.URL(path), "namespace": "shop", "mode": "Soft",
	}, &done)
}

// gunzip decompresses answers on their way.
const gunzip = `name: envoy.filters.http.decompressor
typed_config:
  "@type": type.googleapis.com/envoy.extensions.filters.http.decompressor.v3.Decompressor
  decompressor_library:
    name: gzip
    typed_config: {"@type": type.googleapis.com/envoy.extensions.compression.gzip.decompressor.v3.Gzip}`

// TestBodiesThatEndInTrailers: a body may end in trailers, of the origin's or of another filter's. It is whole then.
func TestBodiesThatEndInTrailers(t *testing.T) {
	t.Parallel()
	plain := harness.GeneratedBody(300_000)
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	if _, err := w.Write(plain); err != nil || w.Close() != nil {
		t.Fatal("cannot compress")
	}
	withTrailers := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Checksum")
		w.Header().Set("Cache-Control", "max-age=60")
		_, _ = w.Write(plain) // fails when the client is gone
		w.Header().Set("X-Checksum", "right")
	})
	compressed := harness.Reply{
		Body: zipped.Bytes(), Header: harness.Fields("Cache-Control", "max-age=60", "Content-Encoding", "gzip"),
	}
	tests := []struct {
		name  string
		envoy harness.EnvoyOptions
		reply harness.Reply
	}{
		{"origin", harness.EnvoyOptions{Origins: []string{http2Origin(t, withTrailers)}, OriginHTTP2: true}, harness.Reply{}},
		{"filter before weir", harness.EnvoyOptions{FiltersBefore: []string{gunzip}}, compressed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := startEdge(t, edgeOptions{Envoy: tt.envoy})
			defer e.settles()
			e.serve("/page", harness.Always(tt.reply))
			for range 3 {
				e.wantBody(e.burst(1, e.get("/page"))(), plain)
			}
			e.wantOutcomes(map[string]int{"miss": 1, "hit": 2})
		})
	}
	// Envoy does not tell the end of a body to which a filter behind weir added trailers, and its client waits with weir.
	t.Run("filter behind weir", func(t *testing.T) {
		t.Parallel()
		e := startEdge(t, edgeOptions{Envoy: harness.EnvoyOptions{FiltersAfter: []string{gunzip}}})
		defer e.settles()
		e.serve("/page", harness.Always(compressed))
		e.wantBody(e.burst(1, e.get("/page"))(), plain)
		e.eventually("a detached fetch has stored it", func() bool {
			return e.weir.Metrics()[`weir_refills_total{result="stored"}`] == 1
		})
		for range 2 {
			e.wantBody(e.burst(1, e.get("/page"))(), plain)
		}
		e.wantOutcomes(map[string]int{"miss": 1, "hit": 2})
		e.wantCount("/page", 2)
		if !strings.Contains(e.weir.Output(), "decompressor") {
			t.Error("the log does not name the cause")
		}
	})
}

// http2Origin serves HTTP/2 without TLS and returns its address.
func http2Origin(t *testing.T, handler http.Handler) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler, Protocols: new(http.Protocols)}
	server.Protocols.SetUnencryptedHTTP2(true)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Shutdown(context.Background())
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("origin: %v", err)
		}
	})
	return listener.Addr().String()
}

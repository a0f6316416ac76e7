package harness_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirproxy/weir/e2e/harness"
)

func TestOriginFollowsTheScript(t *testing.T) {
	t.Parallel()
	origin := harness.StartOrigin(t)
	origin.Handle("/etag", harness.Always(harness.Reply{ETag: `"v1"`, Size: 100_000}))
	origin.Handle("/below/", func(n int, r *http.Request) harness.Reply {
		return harness.Reply{Status: 200 + n, Body: []byte(r.URL.Path)}
	})
	origin.Handle("/raw", harness.Always(harness.Reply{Raw: "HTTP/1.1 299 Odd\r\nX: 1\r\n\r\nrest"}))

	url := "http://" + origin.Address()
	resp := harness.Do(t, harness.Get(url+"/etag"))
	if resp.Status != 200 || !bytes.Equal(resp.Body, harness.GeneratedBody(100_000)) {
		t.Errorf("/etag: %d, %d bytes", resp.Status, len(resp.Body))
	}
	resp = harness.Do(t, harness.Get(url+"/etag", "If-None-Match", `"v0", "v1"`))
	if resp.Status != 304 || len(resp.Body) != 0 {
		t.Errorf("/etag, conditional: %d, %d bytes", resp.Status, len(resp.Body))
	}
	for n, path := range []string{"/below/a", "/below/b/c"} {
		if resp := harness.Do(t, harness.Get(url+path)); resp.Status != 201+n || string(resp.Body) != path {
			t.Errorf("%s: %d %q", path, resp.Status, resp.Body)
		}
	}
	if resp := harness.Do(t, harness.Get(url+"/raw")); resp.Status != 299 || string(resp.Body) != "rest" {
		t.Errorf("/raw: %d %q", resp.Status, resp.Body)
	}
	if resp := harness.Do(t, harness.Get(url+"/none")); resp.Status != 404 {
		t.Errorf("/none: %d", resp.Status)
	}
	if a, b, c := origin.Count("/etag"), origin.Count("/below/"), origin.Count("/none"); a != 2 || b != 2 || c != 1 {
		t.Errorf("counted %d, %d, %d; want 2, 2, 1", a, b, c)
	}
	origin.Reset()
	if n := origin.Count("/etag") + len(origin.Requests("/etag")); n != 0 {
		t.Errorf("after Reset: %d", n)
	}
}

func TestOriginSendsExactBytes(t *testing.T) {
	t.Parallel()
	origin := harness.StartOrigin(t)
	undated := http.Header{"Date": nil}
	origin.Handle("/chunked", harness.Always(harness.Reply{Body: []byte("abc"), Chunked: true, Header: undated}))
	origin.Handle("/plain", harness.Always(harness.Reply{Body: []byte("abc"), Header: undated}))
	const ok = "HTTP/1.1 200 OK\r\n"
	tests := []struct{ name, method, path, want string }{
		{"chunked", "GET", "/chunked",
			ok + "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"},
		{"length", "GET", "/plain", ok + "Content-Length: 3\r\nConnection: close\r\n\r\nabc"},
		{"HEAD has no body", "HEAD", "/plain", ok + "Content-Length: 3\r\nConnection: close\r\n\r\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			request := tt.method + " " + tt.path + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
			got := harness.Raw(t, origin.Address(), request)
			got = strings.Replace(got, "Content-Type: text/plain; charset=utf-8\r\n", "", 1)
			if got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestOriginBreaksAndGoesDown(t *testing.T) {
	t.Parallel()
	origin := harness.StartOrigin(t)
	origin.Handle("/cut", harness.Always(harness.Reply{Size: 1000, Cut: true, CutAfter: 10}))
	origin.Handle("/hang", harness.Always(harness.Reply{Hang: true}))
	get := func(path string) harness.BurstResult {
		return harness.Burst(t, 1, harness.Same(harness.Get("http://"+origin.Address()+path)))[0]
	}
	if r := get("/cut"); !errors.Is(r.Err, io.ErrUnexpectedEOF) || r.Length != 10 || r.Status != 200 {
		t.Errorf("/cut: %+v", r)
	}
	ended := harness.StartBurst(t, 1, harness.Same(harness.Get("http://"+origin.Address()+"/hang")))
	harness.Eventually(t, time.Minute, "the origin has the request", func() bool {
		return origin.Concurrent("/hang") == 1
	})
	origin.Down()
	if r := ended()[0]; r.Err == nil || r.Status != 0 {
		t.Errorf("/hang, origin down: %+v", r)
	}
	if conn, err := net.Dial("tcp", origin.Address()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("while down: %v, %v, want connection refused", conn, err)
	}
	origin.Up()
	if resp := harness.Do(t, harness.Get("http://"+origin.Address()+"/")); resp.Status != 404 {
		t.Errorf("up again: %d", resp.Status)
	}
}

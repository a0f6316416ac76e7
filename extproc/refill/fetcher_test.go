package refill

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirproxy/weir/extproc/httpcache"
)

func TestWhole(t *testing.T) {
	t.Parallel()
	big := bytes.Repeat([]byte("0123456789abcdef"), 100_000)
	tests := []struct {
		name   string
		method string
		answer http.HandlerFunc
		status int
		body   []byte
	}{
		{"content-length", "GET", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(big)))
			_, _ = w.Write(big)
		}, 200, big},
		{"chunked", "GET", func(w http.ResponseWriter, _ *http.Request) {
			for part := range bytes.Lines(bytes.ReplaceAll(big, []byte("f"), []byte("\n"))) {
				_, _ = w.Write(part)
			}
		}, 200, bytes.ReplaceAll(big, []byte("f"), []byte("\n"))},
		{"chunked with trailers", "GET", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "X-Sum")
			_, _ = io.WriteString(w, "body")
			w.Header().Set("X-Sum", "1")
		}, 200, []byte("body")},
		{"empty", "GET", func(http.ResponseWriter, *http.Request) {}, 200, nil},
		{"after early hints", "GET", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			_, _ = io.WriteString(w, "late")
		}, 200, []byte("late")},
		{"204", "GET", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, 204, nil},
		{"304", "GET", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(304) }, 304, nil},
		{"HEAD", "HEAD", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
		}, 200, nil},
		{"HEAD without a length", "HEAD", func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
		}, 200, nil},
		{"redirect, not followed", "GET", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/x" {
				t.Errorf("followed to %s", r.URL)
			}
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(302)
		}, 302, nil},
		{"compressed, left so", "GET", func(w http.ResponseWriter, r *http.Request) {
			if e := r.Header.Values("Accept-Encoding"); e != nil {
				t.Errorf("asked for %q", e)
			}
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, "not even gzip")
		}, 200, []byte("not even gzip")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := fetcher(t, Options{Addr: serveHTTP(t, tt.answer)})
			req := get
			req.Method = tt.method
			var got record
			before := time.Now()
			if err := f.Do(t.Context(), req, &got); err != nil {
				t.Fatal(err)
			}
			if got.status != tt.status || !bytes.Equal(got.body, tt.body) {
				t.Errorf("status %d and %d bytes; want %d and %d", got.status, len(got.body), tt.status, len(tt.body))
			}
			if got.largest > chunkSize {
				t.Errorf("a chunk of %d bytes", got.largest)
			}
			if got.at.Before(before) || got.at.After(time.Now()) {
				t.Errorf("headers came at %v", got.at)
			}
			byName := func(a, b httpcache.Field) int { return strings.Compare(a.Name, b.Name) }
			for _, field := range got.fields {
				if field.Name != strings.ToLower(field.Name) || !slices.IsSortedFunc(got.fields, byName) {
					t.Errorf("fields = %v, want lower case and in order", got.fields)
				}
			}
		})
	}
}

// Field case 18: an answer that was cut short is never taken for whole.
func TestIncomplete(t *testing.T) {
	t.Parallel()
	const (
		ok      = "HTTP/1.1 200 OK\r\n"
		chunked = ok + "Transfer-Encoding: chunked\r\n\r\n"
	)
	tests := []struct {
		name   string
		answer string
		want   error
		body   string // what the sink got until then
	}{
		{"shorter than Content-Length", ok + "Content-Length: 10\r\n\r\n123456", ErrTruncated, "123456"},
		{"chunked without the last chunk", chunked + "3\r\nabc\r\n", ErrTruncated, "abc"},
		{"cut within a chunk", chunked + "5\r\nabc", ErrTruncated, "abc"},
		{"cut within a chunk's size", chunked + "3\r\nabc\r\n1", ErrTruncated, "abc"},
		{"cut before the trailers end", chunked + "3\r\nabc\r\n0\r\nX: 1\r\n", ErrTruncated, "abc"},
		{"broken chunk size", chunked + "3\r\nabc\r\nzz\r\n", ErrTruncated, "abc"},
		{"ends with the connection", ok + "\r\nabc", ErrTruncated, ""},
		{"HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\nabc", ErrTruncated, ""},
		{"closed without an answer", "", ErrUnreachable, ""},
		{"cut within the head", ok + "Content-Le", ErrUnreachable, ""},
		{"not HTTP", "SSH-2.0-x\r\n\r\n", ErrUnreachable, ""},
		{"two lengths", ok + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", ErrUnreachable, ""},
		{"unknown transfer coding", ok + "Transfer-Encoding: gzip\r\n\r\nab", ErrUnreachable, ""},
		{"a head of 70 kB", ok + "X: " + strings.Repeat("a", 70<<10) + "\r\n\r\n", ErrUnreachable, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := serveWire(t, "tcp", "127.0.0.1:0", tt.answer)
			f := fetcher(t, Options{Addr: s.addr()})
			var got record
			if err := f.Do(t.Context(), get, &got); !errors.Is(err, tt.want) {
				t.Errorf("Do = %v, want %v", err, tt.want)
			}
			if string(got.body) != tt.body {
				t.Errorf("the sink got %q, want %q", got.body, tt.body)
			}
		})
	}
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	s := serveWire(t, "tcp", "127.0.0.1:0", "")
	_ = s.listener.Close()
	for _, addr := range []string{s.addr(), filepath.Join(t.TempDir(), "socket")} {
		var got record
		if err := fetcher(t, Options{Addr: addr}).Do(t.Context(), get, &got); !errors.Is(err, ErrUnreachable) {
			t.Errorf("%s: Do = %v, want %v", addr, err, ErrUnreachable)
		}
	}
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	serveWire(t, "unix", path, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	for _, addr := range []string{path, "unix://" + path} {
		var got record
		if err := fetcher(t, Options{Addr: addr}).Do(t.Context(), get, &got); err != nil || string(got.body) != "ok" {
			t.Errorf("%s: %q, %v", addr, got.body, err)
		}
	}
}

func TestAddr(t *testing.T) {
	t.Parallel()
	for addr, ok := range map[string]bool{
		"127.0.0.1:80": true, "[::1]:80": true, "envoy:10000": true, "/run/envoy.sock": true,
		"unix:///run/envoy.sock": true, "": false, "envoy": false, ":80": false, "envoy:": false,
		"unix://run/envoy.sock": false, "http://envoy:80": false,
	} {
		f, err := New(Options{Addr: addr})
		if (err == nil) != ok {
			t.Errorf("New(%q) = %v", addr, err)
		}
		if f != nil {
			f.Close()
		}
	}
}

// What the sink does not want is not fetched to its end.
func TestSinkStops(t *testing.T) {
	t.Parallel()
	stop := errors.New("too large")
	gone := make(chan struct{}, 2)
	addr := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = w.Write(make([]byte, 1<<10))
		}
		gone <- struct{}{}
	})
	f := fetcher(t, Options{Addr: addr})
	if err := f.Do(t.Context(), get, &record{refuse: true}); err != nil {
		t.Errorf("the body is not wanted: %v", err)
	}
	<-gone
	s := &record{onBody: func(n int) error {
		if n > 100<<10 {
			return stop
		}
		return nil
	}}
	if err := f.Do(t.Context(), get, s); !errors.Is(err, stop) {
		t.Errorf("the sink stops: %v", err)
	}
	<-gone
	if len(s.body) > 100<<10+chunkSize {
		t.Errorf("%d bytes after the stop", len(s.body))
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	reason := errors.New("nobody wants it")
	addr := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			_, _ = io.WriteString(w, "abc")
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	})
	f := fetcher(t, Options{Addr: addr})
	for _, path := range []string{"/head", "/body"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		req := get
		req.Path = path
		if path == "/head" {
			time.AfterFunc(10*time.Millisecond, func() { cancel(reason) })
		}
		err := f.Do(ctx, req, &record{onBody: func(int) error { cancel(reason); return nil }})
		if !errors.Is(err, reason) {
			t.Errorf("%s: Do = %v, want %v", path, err, reason)
		}
		cancel(nil)
	}
}

func TestConcurrencyIsBounded(t *testing.T) {
	t.Parallel()
	var now, most atomic.Int64
	addr := serveHTTP(t, func(w http.ResponseWriter, _ *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		_, _ = io.WriteString(w, "x")
	})
	f := fetcher(t, Options{Addr: addr, MaxConcurrent: 3})
	var all sync.WaitGroup
	for range 30 {
		all.Go(func() {
			if err := f.Do(t.Context(), get, &record{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if most.Load() > 3 {
		t.Errorf("%d fetches at a time, want at most 3", most.Load())
	}
}

// A panic of the sink is its own, but leaves no slot taken.
func TestSinkPanics(t *testing.T) {
	t.Parallel()
	addr := serveHTTP(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "x") })
	f := fetcher(t, Options{Addr: addr, MaxConcurrent: 1})
	func() {
		defer func() { _ = recover() }()
		_ = f.Do(t.Context(), get, &record{onBody: func(int) error { panic("bug") }})
	}()
	if err := f.Do(t.Context(), get, &record{}); err != nil {
		t.Error(err)
	}
}

package refill

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirproxy/weir/extproc/httpcache"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// get is a plain request.
var get = Request{Method: "GET", Scheme: "http", Authority: "a.test", Path: "/x"}

// record is a Sink that keeps what it gets.
type record struct {
	status  int
	fields  httpcache.Fields
	at      time.Time
	body    []byte
	largest int

	refuse bool              // the body
	onBody func(n int) error // called with the length so far
}

func (r *record) Headers(status int, fields httpcache.Fields, at time.Time) bool {
	r.status, r.fields, r.at = status, fields, at
	return !r.refuse
}

func (r *record) Body(p []byte) error {
	r.body = append(r.body, p...)
	r.largest = max(r.largest, len(p))
	if r.onBody != nil {
		return r.onBody(len(r.body))
	}
	return nil
}

// fetcher returns a Fetcher for addr that the test closes.
func fetcher(t *testing.T, o Options) *Fetcher {
	t.Helper()
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// wire is a server that answers the first request of each connection with bytes
// as they are, closes it, and keeps the requests.
type wire struct {
	listener net.Listener
	mu       sync.Mutex
	requests []string
}

func serveWire(t *testing.T, network, addr, answer string) *wire {
	t.Helper()
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	s := &wire{listener: l}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { s.answer(c, answer) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		running.Wait()
	})
	return s
}

func (s *wire) answer(c net.Conn, answer string) {
	defer func() { _ = c.Close() }()
	request, err := readHead(bufio.NewReader(c))
	if err != nil {
		return
	}
	s.mu.Lock()
	s.requests = append(s.requests, request)
	s.mu.Unlock()
	_, _ = io.WriteString(c, answer)
}

// last returns the last request, as it was on the wire.
func (s *wire) last(t *testing.T) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.requests) == 0 {
		t.Fatal("no request")
	}
	return s.requests[len(s.requests)-1]
}

func (s *wire) addr() string { return s.listener.Addr().String() }

// readHead reads up to the empty line.
func readHead(r *bufio.Reader) (string, error) {
	var b strings.Builder
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return "", err
		}
		if line == "\r\n" {
			return b.String(), nil
		}
		b.WriteString(line)
	}
}

// serveHTTP starts a server on the loopback and returns its address.
func serveHTTP(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		_ = s.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

func fields(pairs ...string) httpcache.Fields {
	var f httpcache.Fields
	for i := 0; i < len(pairs); i += 2 {
		f = append(f, httpcache.Field{Name: pairs[i], Value: pairs[i+1]})
	}
	return f
}

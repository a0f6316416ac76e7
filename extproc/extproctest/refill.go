package extproctest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/refill"
)

// Entrance is a listener of Envoy's without the filter, in memory: detached
// fetches go through it to the origin.
type Entrance struct {
	// Fetcher makes detached fetches through the entrance.
	Fetcher *refill.Fetcher

	server   http.Server
	listener *listener
	served   sync.WaitGroup
}

// NewEntrance returns an entrance to the origin. Close it when it is no longer
// needed.
func NewEntrance(origin Origin) *Entrance {
	e := &Entrance{listener: &listener{conns: make(chan net.Conn), closed: make(chan struct{})}}
	e.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { forward(w, r, origin) })
	e.served.Go(func() { _ = e.server.Serve(e.listener) })                            // until Close
	e.Fetcher, _ = refill.New(refill.Options{Addr: "envoy:1", Dial: e.listener.dial}) // the address is well formed
	return e
}

// Close ends the entrance: connections break, new ones are refused.
func (e *Entrance) Close() {
	e.Fetcher.Close()
	_ = e.server.Close() // of connections in memory
	e.served.Wait()
}

// forward asks the origin on behalf of a detached fetch, and marks the answer as
// Envoy's router does.
func forward(w http.ResponseWriter, r *http.Request, origin Origin) {
	req := &httpcache.Request{Method: r.Method, Scheme: "http", Authority: r.Host, Path: r.RequestURI}
	for name, values := range r.Header {
		for _, v := range values {
			req.Header = append(req.Header, httpcache.Field{Name: strings.ToLower(name), Value: v})
		}
	}
	a := origin(r.Context(), req)
	if r.Context().Err() != nil {
		panic(http.ErrAbortHandler)
	}
	for _, f := range a.Header {
		w.Header().Add(f.Name, f.Value)
	}
	if !a.Header.Has("date") {
		w.Header()["Date"] = nil // the server is to add none
	}
	if a.Details == "" {
		w.Header().Set("X-Envoy-Upstream-Service-Time", "1")
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body) // fails when the fetch was given up
}

// listener is a listener in memory.
type listener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *listener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements [net.Listener].
func (l *listener) Addr() net.Addr { return &net.UnixAddr{Name: "entrance", Net: "unix"} }

// Sleep waits for d; it is false if ctx ended first.
func Sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

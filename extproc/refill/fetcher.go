package refill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/weirproxy/weir/extproc/httpcache"
)

// chunkSize is how much of a body is read, and given to the Sink, at a time.
const chunkSize = 64 << 10

// Errors of Fetcher.Do. Every error of a fetch that began but did not end well
// wraps one of them, the Sink's own error, or the context's.
var (
	// ErrRequest: the request cannot be sent over HTTP/1.1 as it is.
	ErrRequest = errors.New("refill: request cannot be sent")
	// ErrUnreachable: no connection, or the connection failed before an answer.
	ErrUnreachable = errors.New("refill: no answer")
	// ErrHeaderTimeout, ErrStalled and ErrTotalTimeout: a time limit of Options.
	ErrHeaderTimeout = errors.New("refill: no response headers in time")
	ErrStalled       = errors.New("refill: body made no progress")
	ErrTotalTimeout  = errors.New("refill: fetch took too long")
	// ErrTruncated: the body broke off, or has no end that could be told from a
	// connection that broke (RFC 9112 §8).
	ErrTruncated = errors.New("refill: incomplete body")
	// ErrLoop: weir itself answered, from its own store.
	ErrLoop = errors.New("refill: answered by weir's own cache, not by the origin")
)

// Sink takes the answer in. Its methods are called in turn, never at the same
// time.
type Sink interface {
	// Headers gets the head of the final answer, field names in lower case, and
	// when it came. False: the body is not wanted, and the fetch is over.
	Headers(status int, fields httpcache.Fields, at time.Time) (copyBody bool)
	// Body gets the next bytes of the body; p is only valid during the call. An
	// error stops the fetch, and Do returns it.
	Body(p []byte) error
}

// Fetcher sends detached fetches into Envoy. It is safe for concurrent use.
type Fetcher struct {
	opts      Options
	transport *http.Transport
	slots     chan struct{} // holds a token per fetch that is being sent
	marked    atomic.Bool   // an answer showed that Envoy marks those of upstreams
}

// New returns a Fetcher. Close it when it is no longer needed.
func New(o Options) (*Fetcher, error) {
	o.setDefaults()
	network, address, err := splitAddr(o.Addr)
	if err != nil {
		return nil, err
	}
	dial := o.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: o.ConnectTimeout}).DialContext
	}
	return newFetcher(o, func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dial(ctx, network, address)
	}), nil
}

// newFetcher returns a Fetcher whose connections dial makes.
func newFetcher(o Options, dial func(ctx context.Context, network, addr string) (net.Conn, error)) *Fetcher {
	return &Fetcher{
		opts:  o,
		slots: make(chan struct{}, o.MaxConcurrent),
		transport: &http.Transport{
			DialContext:            dial,
			TLSClientConfig:        o.TLS.Clone(),
			TLSHandshakeTimeout:    o.ConnectTimeout,
			DisableCompression:     true, // the answer must be what the client would get
			MaxIdleConns:           o.MaxConcurrent,
			MaxIdleConnsPerHost:    o.MaxConcurrent,
			IdleConnTimeout:        30 * time.Second,
			MaxResponseHeaderBytes: o.MaxHeaderBytes,
		},
	}
}

// Close closes the idle connections. Fetches that still run end by their context.
func (f *Fetcher) Close() { f.transport.CloseIdleConnections() }

// Do makes one fetch and gives its answer to sink. Nil means that the body is
// whole, or that the sink did not want it; after any other return what the sink
// got is incomplete and must not be stored (RFC 9111 §3.3). Redirects are not
// followed.
func (f *Fetcher) Do(ctx context.Context, req Request, sink Sink) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	total := time.AfterFunc(f.opts.TotalTimeout, func() { cancel(ErrTotalTimeout) })
	defer total.Stop()
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}

	out, err := f.build(ctx, req)
	if err != nil {
		return err
	}
	header := time.AfterFunc(f.opts.HeaderTimeout, func() { cancel(ErrHeaderTimeout) })
	resp, err := f.transport.RoundTrip(out)
	header.Stop()
	if err != nil {
		return because(ctx, ErrUnreachable, err)
	}
	defer func() { _ = resp.Body.Close() }()
	at := time.Now()
	fields := fieldsOf(resp.Header)
	if fields.Has(serviceTime) {
		f.marked.Store(true)
	}
	if looped(fields) {
		return ErrLoop
	}
	if !sink.Headers(resp.StatusCode, fields, at) {
		return nil
	}
	if undelimited(resp) {
		return fmt.Errorf("%w: ends with the connection", ErrTruncated)
	}
	return f.copyBody(ctx, cancel, resp.Body, sink)
}

// copyBody gives the body to the sink as it comes. The sink's own time does not
// count as the origin's.
func (f *Fetcher) copyBody(ctx context.Context, cancel context.CancelCauseFunc, body io.Reader, sink Sink) error {
	idle := time.AfterFunc(f.opts.IdleTimeout, func() { cancel(ErrStalled) })
	defer idle.Stop()
	buf := make([]byte, chunkSize)
	for {
		n, err := body.Read(buf)
		idle.Stop()
		if n > 0 {
			if err := sink.Body(buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return because(ctx, ErrTruncated, err)
		}
		idle.Reset(f.opts.IdleTimeout)
	}
}

// because returns why a fetch failed with err: the reason it was cancelled for,
// or else kind.
func because(ctx context.Context, kind, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("%w (%w)", cause, err)
	}
	return fmt.Errorf("%w: %w", kind, err)
}

package extproctest

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/weirproxy/weir/extproc/httpcache"
)

// Answer is what the origin answers, or Envoy in its place.
type Answer struct {
	Status int
	Header httpcache.Fields
	Body   []byte
	// Details is response.code_details where Envoy made the answer; empty: the
	// origin did.
	Details string
}

// Origin answers a request. It takes its time by sleeping, and ends when ctx does.
// It is called by several goroutines.
type Origin func(ctx context.Context, req *httpcache.Request) Answer

// Envoy is one Envoy with the filter on its only route. It is safe for concurrent
// use.
type Envoy struct {
	service any
	process grpc.StreamHandler
	route   string
	origin  Origin
}

// NewEnvoy returns an Envoy before an origin. register is Service.Register; route
// is the name of the route.
func NewEnvoy(register func(grpc.ServiceRegistrar), route string, origin Origin) *Envoy {
	e := &Envoy{route: route, origin: origin}
	register(registrar{e})
	return e
}

// registrar takes the place of a gRPC server.
type registrar struct{ envoy *Envoy }

// RegisterService implements [grpc.ServiceRegistrar].
func (r registrar) RegisterService(d *grpc.ServiceDesc, service any) {
	r.envoy.service, r.envoy.process = service, d.Streams[0].Handler
}

// Result is what a client got.
type Result struct {
	Answer
	// FirstByte is the time from the request to the head of the answer.
	FirstByte time.Duration
	// Asked is whether the request itself went to the origin.
	Asked bool
	// Err is set if the answer did not come to a proper end.
	Err error
}

// Do sends a client's request and waits for the answer. When ctx ends the client
// goes away.
func (e *Envoy) Do(ctx context.Context, req *httpcache.Request) Result {
	ctx, cancel := context.WithCancel(ctx) // Envoy ends the stream with the exchange
	defer cancel()
	s := &stream{envoy: e, ctx: ctx, req: *req, began: time.Now(), todo: make(chan step, 4)}
	s.todo <- stepRequest
	err := e.process(e.service, s)
	if ctx.Err() != nil {
		s.result.Err = context.Cause(ctx)
		return s.result
	}
	s.settle(err)
	return s.result
}

// settle ends an exchange whose stream has ended: what was not answered goes on
// without the filter.
func (s *stream) settle(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.whole:
	case s.headed && err != nil:
		s.result.Err = fmt.Errorf("the answer broke off: %w", err)
	case s.headed:
		s.result.Body = s.answer.Body
	case s.answered: // the origin's, which goes on as it is
		s.head(s.answer.Status, s.answer.Header)
		s.result.Body = s.answer.Body
	default:
		a := s.ask()
		s.head(a.Status, a.Header)
		s.result.Body = a.Body
	}
}

// Get returns a GET request for the path, with header fields as name, value pairs.
func Get(authority, path string, fields ...string) *httpcache.Request {
	r := &httpcache.Request{Method: "GET", Scheme: "http", Authority: authority, Path: path}
	for i := 0; i+1 < len(fields); i += 2 {
		r.Header = append(r.Header, httpcache.Field{Name: fields[i], Value: fields[i+1]})
	}
	return r
}

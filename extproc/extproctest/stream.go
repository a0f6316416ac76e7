package extproctest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/wire"
)

// step is what Envoy does next on a stream.
type step int

const (
	stepRequest  step = iota // send request_headers
	stepResponse             // ask the origin, send response_headers
	stepBody                 // send the response's body
	stepEnd                  // nothing more
)

// stream is one exchange, seen from the filter: a gRPC stream as the service has
// it. The service runs on the client's goroutine; what Envoy would do between two
// messages is done when the service asks for the next.
type stream struct {
	envoy *Envoy
	ctx   context.Context
	began time.Time
	todo  chan step

	mu       sync.Mutex // the service may wait for a message while it sends one
	req      httpcache.Request
	answer   Answer // of the origin
	answered bool
	headed   bool // the client has the head of its answer
	whole    bool // and the end
	result   Result
}

// RecvMsg implements [grpc.ServerStream]: it does what comes next and gives the
// service the message about it.
func (s *stream) RecvMsg(v any) error {
	msg := v.(*wire.Message)
	select {
	case next := <-s.todo:
		return s.do(next, msg)
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
}

func (s *stream) do(next step, msg *wire.Message) error {
	*msg = wire.Message{}
	switch next {
	case stepRequest:
		msg.Kind, msg.EndOfStream, msg.RouteName = wire.KindRequestHeaders, true, s.envoy.route
		msg.Method, msg.Scheme, msg.Authority, msg.Path = s.req.Method, s.req.Scheme, s.req.Authority, s.req.Path
		msg.Header = slices.Clone(s.req.Header)
	case stepResponse:
		a := s.ask()
		if s.ctx.Err() != nil {
			return context.Cause(s.ctx)
		}
		s.mu.Lock()
		s.answer, s.answered = a, true
		s.mu.Unlock()
		msg.Kind, msg.Status, msg.Header = wire.KindResponseHeaders, a.Status, slices.Clone(a.Header)
		msg.EndOfStream, msg.CodeDetails = len(a.Body) == 0, a.Details
		if a.Details == "" {
			msg.CodeDetails = "via_upstream"
		}
	case stepBody:
		msg.Kind, msg.Body, msg.EndOfStream = wire.KindResponseBody, slices.Clone(s.answer.Body), true
	default:
		return io.EOF
	}
	return nil
}

// ask sends the request to the origin.
func (s *stream) ask() Answer {
	s.result.Asked = true
	req := s.req
	a := s.envoy.origin(s.ctx, &req)
	if !a.Header.Has("content-length") && a.Status != 304 {
		length := httpcache.Field{Name: "content-length", Value: strconv.Itoa(len(a.Body))}
		a.Header = append(slices.Clone(a.Header), length)
	}
	return a
}

// SendMsg implements [grpc.ServerStream]: it reads the reply as Envoy would.
func (s *stream) SendMsg(v any) error {
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	var r extprocv3.ProcessingResponse
	if err := proto.Unmarshal(v.(*wire.Reply).Bytes(), &r); err != nil {
		return fmt.Errorf("reply: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch part := r.Response.(type) {
	case *extprocv3.ProcessingResponse_RequestHeaders:
		s.req.Header = mutated(s.req.Header, part.RequestHeaders.GetResponse().GetHeaderMutation())
		s.todo <- stepResponse
	case *extprocv3.ProcessingResponse_ResponseHeaders:
		s.onResponseHeaders(part.ResponseHeaders.GetResponse(), r.GetModeOverride())
	case *extprocv3.ProcessingResponse_ResponseBody:
		s.result.Body, s.whole = s.answer.Body, true
		s.todo <- stepEnd
	case *extprocv3.ProcessingResponse_ImmediateResponse:
		i := part.ImmediateResponse
		s.head(int(i.GetStatus().GetCode()), mutated(nil, i.GetHeaders()))
		s.result.Body, s.whole = i.GetBody(), true
		s.todo <- stepEnd
	case *extprocv3.ProcessingResponse_StreamedImmediateResponse:
		return s.onStreamed(part.StreamedImmediateResponse)
	case nil: // override_message_timeout alone
	default:
		return errUnexpected
	}
	return nil
}

var errUnexpected = errors.New("a reply that has no place here")

// onResponseHeaders takes the reply to response_headers; the caller holds mu.
func (s *stream) onResponseHeaders(c *extprocv3.CommonResponse, mode *filterv3.ProcessingMode) {
	header := mutated(s.answer.Header, c.GetHeaderMutation())
	status := s.answer.Status
	if v := header.Get(":status"); v != "" {
		status, _ = strconv.Atoi(v)
		header = slices.DeleteFunc(header, func(f httpcache.Field) bool { return f.Name == ":status" })
	}
	s.head(status, header)
	switch {
	case c.GetStatus() == extprocv3.CommonResponse_CONTINUE_AND_REPLACE:
		s.result.Body, s.whole = c.GetBodyMutation().GetBody(), true
		s.todo <- stepEnd
	case mode.GetResponseBodyMode() == filterv3.ProcessingMode_STREAMED && len(s.answer.Body) > 0:
		s.todo <- stepBody
	default:
		s.result.Body, s.whole = s.answer.Body, true
		s.todo <- stepEnd
	}
}

// onStreamed takes a part of a StreamedImmediateResponse; the caller holds mu.
func (s *stream) onStreamed(r *extprocv3.StreamedImmediateResponse) error {
	end := false
	switch part := r.Response.(type) {
	case *extprocv3.StreamedImmediateResponse_HeadersResponse:
		header := fieldsOf(part.HeadersResponse.GetHeaders().GetHeaders())
		status, _ := strconv.Atoi(header.Get(":status"))
		s.head(status, slices.DeleteFunc(header, func(f httpcache.Field) bool { return f.Name[0] == ':' }))
		end = part.HeadersResponse.GetEndOfStream()
	case *extprocv3.StreamedImmediateResponse_BodyResponse:
		s.result.Body = append(s.result.Body, part.BodyResponse.GetBody()...)
		end = part.BodyResponse.GetEndOfStream()
	default:
		return errUnexpected
	}
	if end {
		s.whole = true
		s.todo <- stepEnd
	}
	return nil
}

// head notes the head of the client's answer; the caller holds mu, or is alone.
func (s *stream) head(status int, header httpcache.Fields) {
	s.headed = true
	s.result.Status, s.result.Header, s.result.FirstByte = status, header, time.Since(s.began)
}

// mutated applies a HeaderMutation: what is set replaces, then what is named goes.
func mutated(h httpcache.Fields, m *extprocv3.HeaderMutation) httpcache.Fields {
	out := slices.Clone(h)
	without := func(name string) {
		out = slices.DeleteFunc(out, func(f httpcache.Field) bool { return f.Name == name })
	}
	for _, o := range m.GetSetHeaders() {
		f := fieldOf(o.GetHeader())
		without(f.Name)
		out = append(out, f)
	}
	for _, name := range m.GetRemoveHeaders() {
		without(name)
	}
	return out
}

func fieldsOf(headers []*corev3.HeaderValue) httpcache.Fields {
	out := make(httpcache.Fields, 0, len(headers))
	for _, h := range headers {
		out = append(out, fieldOf(h))
	}
	return out
}

func fieldOf(h *corev3.HeaderValue) httpcache.Field {
	f := httpcache.Field{Name: strings.ToLower(h.GetKey()), Value: h.GetValue()}
	if len(h.GetRawValue()) > 0 {
		f.Value = string(h.GetRawValue())
	}
	return f
}

// Context implements [grpc.ServerStream].
func (s *stream) Context() context.Context { return s.ctx }

// SetHeader implements [grpc.ServerStream].
func (s *stream) SetHeader(metadata.MD) error { return nil }

// SendHeader implements [grpc.ServerStream].
func (s *stream) SendHeader(metadata.MD) error { return nil }

// SetTrailer implements [grpc.ServerStream].
func (s *stream) SetTrailer(metadata.MD) {}

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weirproxy/weir/e2e/harness"
)

// rawCodec sends bytes as they are, which need not be protobuf.
type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (rawCodec) Unmarshal(data []byte, v any) error { *v.(*[]byte) = data; return nil }
func (rawCodec) Name() string                       { return "proto" }

// dialWeir connects to weir's ext_proc port.
func (e *edge) dialWeir(o ...grpc.DialOption) *grpc.ClientConn {
	e.t.Helper()
	conn, err := grpc.NewClient(e.weir.GRPCAddress, append(o, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		e.t.Fatalf("connect to weir: %v", err)
	}
	e.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// headersOf makes a header map with raw values, as Envoy sends them.
func headersOf(end bool, pairs ...string) *extprocv3.HttpHeaders {
	m := &corev3.HeaderMap{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m.Headers = append(m.Headers, &corev3.HeaderValue{Key: pairs[i], RawValue: []byte(pairs[i+1])})
	}
	return &extprocv3.HttpHeaders{Headers: m, EndOfStream: end}
}

// requestMessage is the first message of a stream: a GET on the route that shopPolicy covers.
func requestMessage(path string, pairs ...string) *extprocv3.ProcessingRequest {
	pairs = append([]string{":method", "GET", ":scheme", "http", ":authority", "shop.test", ":path", path}, pairs...)
	route := &structpb.Struct{Fields: map[string]*structpb.Value{"xds.route_name": structpb.NewStringValue("default")}}
	return &extprocv3.ProcessingRequest{
		Request:        &extprocv3.ProcessingRequest_RequestHeaders{RequestHeaders: headersOf(true, pairs...)},
		Attributes:     map[string]*structpb.Struct{"envoy.filters.http.ext_proc": route},
		ProtocolConfig: &extprocv3.ProtocolConfiguration{},
	}
}

func responseMessage(pairs ...string) *extprocv3.ProcessingRequest {
	pairs = append([]string{":status", "200", "cache-control", "max-age=60"}, pairs...)
	return &extprocv3.ProcessingRequest{
		Request: &extprocv3.ProcessingRequest_ResponseHeaders{ResponseHeaders: headersOf(false, pairs...)},
	}
}

func bodyMessage(body string) *extprocv3.ProcessingRequest {
	return &extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_ResponseBody{
		ResponseBody: &extprocv3.HttpBody{Body: []byte(body), EndOfStream: true},
	}}
}

// converse sends messages one after another, each after the answer to the one before, and returns the answers. The
// error is what ended the stream, io.EOF if weir had nothing more to say.
func (e *edge) converse(conn *grpc.ClientConn, messages ...*extprocv3.ProcessingRequest) (
	[]*extprocv3.ProcessingResponse, error,
) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), patience)
	defer cancel()
	stream, err := extprocv3.NewExternalProcessorClient(conn).Process(ctx)
	if err != nil {
		e.t.Fatalf("open a stream: %v", err)
	}
	var answers []*extprocv3.ProcessingResponse
	for _, m := range messages {
		if err := stream.Send(m); err != nil && !errors.Is(err, io.EOF) {
			e.t.Fatalf("send: %v", err)
		}
		answer, err := stream.Recv()
		if err != nil {
			return answers, err
		}
		answers = append(answers, answer)
	}
	_ = stream.CloseSend() // never fails
	_, err = stream.Recv()
	return answers, err
}

// sendBytes sends one message of arbitrary bytes and returns how the stream ended.
func (e *edge) sendBytes(conn *grpc.ClientConn, message []byte) error {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), patience)
	defer cancel()
	both := &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}
	stream, err := conn.NewStream(ctx, both, extprocv3.ExternalProcessor_Process_FullMethodName)
	if err != nil {
		e.t.Fatalf("open a stream: %v", err)
	}
	if err := stream.SendMsg(&message); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	_ = stream.CloseSend() // never fails
	for {
		var answer []byte
		if err := stream.RecvMsg(&answer); err != nil {
			return err
		}
	}
}

// TestMalformedMessages: bytes that are no ProcessingRequest end their stream with an error, those that are an odd one
// end it without; either way weir goes on.
func TestMalformedMessages(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{})
	defer e.quiet()
	e.serve("/page", harness.Always(harness.Reply{Size: 1000, Header: harness.Fields("Cache-Control", "max-age=60")}))
	valid, err := proto.Marshal(requestMessage("/page"))
	if err != nil {
		t.Fatal(err)
	}
	crowd := requestMessage("/page")
	for i := range 5000 {
		crowd.GetRequestHeaders().Headers.Headers = append(crowd.GetRequestHeaders().Headers.Headers,
			&corev3.HeaderValue{Key: fmt.Sprint("x-", i), RawValue: []byte("1")})
	}
	tooMany, err := proto.Marshal(crowd)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name    string
		message []byte
		want    codes.Code
	}{
		{"empty", nil, codes.OK},
		{"text", []byte("GET / HTTP/1.1\r\n\r\n"), codes.Internal},
		{"cut off", valid[:len(valid)-3], codes.Internal},
		{"length beyond the end", []byte{0x12, 0xff, 0xff, 0xff, 0xff, 0x0f}, codes.Internal},
		{"endless varint", []byte(strings.Repeat("\xff", 100)), codes.Internal},
		{"unknown field", []byte{0xfa, 0x7f, 0x01, 0x00}, codes.OK},
		{"group", []byte{0x0b, 0x0b, 0x0b}, codes.Internal},
		{"two requests in one", append(valid, valid...), codes.Internal},
		{"too many fields", tooMany, codes.Internal},
		{"too large", make([]byte, 17<<20), codes.ResourceExhausted},
	}
	conn := e.dialWeir(grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{})))
	for _, tt := range tests {
		err := e.sendBytes(conn, tt.message)
		if errors.Is(err, io.EOF) {
			err = nil
		}
		if got := status.Code(err); got != tt.want {
			t.Errorf("%s: %v (%v), want %v", tt.name, got, err, tt.want)
		}
	}
	e.wantMissThenHit("afterwards", "/page", e.get("/page"), string(harness.GeneratedBody(1000)))
	if _, err := e.converse(e.dialWeir(), requestMessage("/page")); err != nil && !errors.Is(err, io.EOF) {
		t.Errorf("a good stream after the bad ones: %v", err)
	}
	other := e.dialWeir(grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{})))
	both := &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}
	if stream, err := other.NewStream(t.Context(), both, "/envoy.service.ext_proc.v3.ExternalProcessor/Other"); err == nil {
		var answer []byte
		if err := stream.RecvMsg(&answer); status.Code(err) != codes.Unimplemented {
			t.Errorf("another method: %v", err)
		}
	}
}

// TestStreamsThatStartWithABody: what comes is let through, and weir is out of it.
func TestStreamsThatStartWithABody(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{})
	defer e.quiet()
	conn := e.dialWeir()
	trailers := &corev3.HeaderMap{}
	tests := map[string]*extprocv3.ProcessingRequest{
		"response body": bodyMessage("hello"),
		"request body": {Request: &extprocv3.ProcessingRequest_RequestBody{
			RequestBody: &extprocv3.HttpBody{Body: []byte("hello")},
		}},
		"request trailers": {Request: &extprocv3.ProcessingRequest_RequestTrailers{
			RequestTrailers: &extprocv3.HttpTrailers{Trailers: trailers},
		}},
		"response trailers": {Request: &extprocv3.ProcessingRequest_ResponseTrailers{
			ResponseTrailers: &extprocv3.HttpTrailers{Trailers: trailers},
		}},
		"response headers": responseMessage(),
	}
	for name, message := range tests {
		answers, err := e.converse(conn, message)
		if len(answers) != 1 || !errors.Is(err, io.EOF) {
			t.Errorf("%s: %d answers, then %v; want one and a clean end", name, len(answers), err)
			continue
		}
		if answers[0].GetImmediateResponse() != nil || answers[0].GetStreamedImmediateResponse() != nil {
			t.Errorf("%s: answered with %v", name, answers[0])
		}
	}
	if n := e.status().Store.Entries; n != 0 {
		t.Errorf("%d entries are stored", n)
	}
}

// TestControlCharactersBesideEnvoy: who reaches the port without Envoy can send what Envoy would refuse. What cannot be
// given back is not stored; what is asked for cannot reach beyond its own request.
func TestControlCharactersBesideEnvoy(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{})
	defer e.quiet()
	e.serve("/", harness.Always(harness.Reply{Size: 100, Header: harness.Fields("Cache-Control", "max-age=60")}))
	conn := e.dialWeir()
	for _, value := range []string{"a\r\nSet-Cookie: x", "a\nb", "a\x00b", "a\x7fb"} {
		for range 2 {
			answers, err := e.converse(conn, requestMessage("/field"), responseMessage("x-odd", value), bodyMessage("hello"))
			if len(answers) != 2 || answers[0].GetRequestHeaders() == nil {
				t.Errorf("response with %q: answers %v, then %v; want none of it stored", value, answers, err)
			}
		}
	}
	for _, path := range []string{"/a\r\nX-Injected: x", "/a\x00b", "/a b", "no-slash", "", "http://[::1", "*"} {
		answers, err := e.converse(conn, requestMessage(path, "host", "a\r\nb"), responseMessage(), bodyMessage("hello"))
		if len(answers) == 0 || answers[0].GetRequestHeaders() == nil || !errors.Is(err, io.EOF) {
			t.Errorf("path %q: answers %v, then %v", path, answers, err)
		}
		e.refillOf(conn, path+"?refill")
	}
	for _, r := range e.origin.Requests("/") {
		if r.Header.Get("X-Injected") != "" || r.Host != "shop.test" {
			t.Errorf("the origin saw %+v", r)
		}
	}
}

// refillOf has a leader hang up, so that weir fetches its path in its place, and checks that who waits is answered.
func (e *edge) refillOf(conn *grpc.ClientConn, path string) {
	e.t.Helper()
	client := extprocv3.NewExternalProcessorClient(conn)
	ctx, hangUp := context.WithCancel(e.t.Context())
	defer hangUp()
	leader, err := client.Process(ctx)
	if err != nil {
		e.t.Fatalf("open a stream: %v", err)
	}
	if err := leader.Send(requestMessage(path)); err != nil {
		e.t.Fatalf("send: %v", err)
	}
	if _, err := leader.Recv(); err != nil {
		e.t.Fatalf("%q: the leader's answer: %v", path, err)
	}
	follower, err := client.Process(e.t.Context())
	if err != nil {
		e.t.Fatalf("open a stream: %v", err)
	}
	if err := follower.Send(requestMessage(path)); err != nil {
		e.t.Fatalf("send: %v", err)
	}
	e.waiting(1)
	hangUp()
	for {
		answer, err := follower.Recv()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			e.t.Errorf("%q: the follower's answer: %v", path, err)
			return
		}
		if answer.GetRequestHeaders() != nil {
			e.t.Errorf("%q: the follower goes on, instead of an answer by a fetch in the leader's place", path)
			return
		}
	}
}

// TestStreamsOpenedAndCancelled: ten thousand of them, at every point of a request's life, leave nothing behind.
func TestStreamsOpenedAndCancelled(t *testing.T) {
	t.Parallel()
	const streams, at = 10_000, 100
	e := startEdge(t, edgeOptions{})
	defer e.quiet()
	e.serve("/", harness.Always(harness.Reply{Size: 100, Header: harness.Fields("Cache-Control", "max-age=60")}))
	conn := e.dialWeir()
	client := extprocv3.NewExternalProcessorClient(conn)
	e.cancelStreams(client, at, at) // what is made once is made
	e.quiet()
	before := e.weir.Metrics()["go_goroutines"]
	e.cancelStreams(client, streams, at)
	e.quiet()
	e.eventually("goroutines are as few as before", func() bool {
		return e.weir.Metrics()["go_goroutines"] <= before+5 // those that serve this very question among them
	})
	// Streams that are reset where the rest of a response is due look like a filter that allows no mode override, for
	// which weir keeps out for a while.
	e.eventually("answers come from the cache", func() bool {
		got := e.do(e.get("/afterwards"))
		return got.Status == 200 && strings.Contains(got.Header.Get("Cache-Status"), "hit")
	})
}

// cancelStreams opens n streams, some at a time, and cancels them: at once, after a request for one key that they share,
// after a request of their own, after the answer to it, after half of a response.
func (e *edge) cancelStreams(client extprocv3.ExternalProcessorClient, n, atATime int) {
	e.t.Helper()
	slots := make(chan struct{}, atATime)
	for i := range n {
		slots <- struct{}{}
		go func() {
			defer func() { <-slots }()
			ctx, cancel := context.WithCancel(e.t.Context())
			defer cancel()
			stream, err := client.Process(ctx)
			if err != nil || i%5 == 0 {
				return
			}
			path := "/shared"
			if i%5 > 1 {
				path = fmt.Sprint("/own/", i)
			}
			if stream.Send(requestMessage(path)) != nil || i%5 < 3 {
				return
			}
			if _, err := stream.Recv(); err == nil && i%5 == 4 {
				_ = stream.Send(responseMessage("content-length", "5")) // cancelled either way
			}
		}()
	}
	for range atATime {
		slots <- struct{}{}
	}
}

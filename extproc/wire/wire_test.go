package wire_test

import (
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/wire"
)

func rawHeader(name, value string) *corev3.HeaderValue {
	return &corev3.HeaderValue{Key: name, RawValue: []byte(value)}
}

func parse(t *testing.T, in *extprocv3.ProcessingRequest) *wire.Message {
	t.Helper()
	b, err := proto.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	m := new(wire.Message)
	if err := m.Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Reset)
	return m
}

func TestUnmarshalReadsWhatEnvoySends(t *testing.T) {
	t.Parallel()
	attrs, err := structpb.NewStruct(map[string]any{"xds.route_name": "products", "response.code_details": "via_upstream"})
	if err != nil {
		t.Fatal(err)
	}
	m := parse(t, &extprocv3.ProcessingRequest{
		Request: &extprocv3.ProcessingRequest_RequestHeaders{RequestHeaders: &extprocv3.HttpHeaders{
			Headers: &corev3.HeaderMap{Headers: []*corev3.HeaderValue{
				rawHeader(":method", "GET"), rawHeader(":scheme", "https"), rawHeader(":authority", "a.test"),
				rawHeader(":path", "/x?y=1"), rawHeader("accept", "*/*"), {Key: "x-old", Value: "v"}, rawHeader("x-empty", ""),
			}},
			EndOfStream: true,
		}},
		Attributes:        map[string]*structpb.Struct{"envoy.filters.http.ext_proc": attrs},
		ObservabilityMode: true,
		ProtocolConfig: &extprocv3.ProtocolConfiguration{
			RequestBodyMode:  filterv3.ProcessingMode_NONE,
			ResponseBodyMode: filterv3.ProcessingMode_STREAMED,
		},
	})
	want := httpcache.Fields{{Name: "accept", Value: "*/*"}, {Name: "x-old", Value: "v"}, {Name: "x-empty"}}
	if diff := cmp.Diff(want, m.Header); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	got := []any{m.Kind, m.Method, m.Scheme, m.Authority, m.Path, m.EndOfStream, m.RouteName, m.CodeDetails,
		m.Observability, m.HasConfig, m.Config.ResponseBody}
	wantRest := []any{wire.KindRequestHeaders, "GET", "https", "a.test", "/x?y=1", true, "products", "via_upstream",
		true, true, wire.BodyStreamed}
	if diff := cmp.Diff(wantRest, got); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
}

func TestUnmarshalBodies(t *testing.T) {
	t.Parallel()
	m := parse(t, &extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_ResponseBody{
		ResponseBody: &extprocv3.HttpBody{Body: []byte("chunk"), EndOfStream: true},
	}})
	if m.Kind != wire.KindResponseBody || string(m.Body) != "chunk" || !m.EndOfStream {
		t.Errorf("got %v %q %v", m.Kind, m.Body, m.EndOfStream)
	}
	m = parse(t, &extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_ResponseBody{
		ResponseBody: &extprocv3.HttpBody{},
	}})
	if m.Kind != wire.KindResponseBody || m.Body == nil || m.EndOfStream {
		t.Errorf("empty chunk: got %v %v %v", m.Kind, m.Body, m.EndOfStream)
	}
}

func TestUnmarshalRefusesMalformed(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]string{
		"cut tag":    "\xff",
		"cut length": "\x12\xff\xff\xff\xff\x0f",
		"cut header": "\x12\x04\x0a\x09\x0a\x07",
		"bad status": "\x1a\x10\x0a\x0e\x0a\x0c\x0a\x07:status\x1a\x01x",
	} {
		m := new(wire.Message)
		if err := m.Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func reply(t *testing.T, r *wire.Reply) *extprocv3.ProcessingResponse {
	t.Helper()
	out := new(extprocv3.ProcessingResponse)
	if err := proto.Unmarshal(r.Bytes(), out); err != nil {
		t.Fatal(err)
	}
	return out
}

func setHeader(name, value string) *corev3.HeaderValueOption {
	return &corev3.HeaderValueOption{Header: rawHeader(name, value)}
}

func overwriting(name, value string) *corev3.HeaderValueOption {
	o := setHeader(name, value)
	o.AppendAction = corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD
	return o
}

func TestReplies(t *testing.T) {
	t.Parallel()
	status := overwriting(":status", "200")
	mutation := wire.Mutation{Set: httpcache.Fields{{Name: "a", Value: "1"}}, Remove: []string{"range"}}
	wantMutation := &extprocv3.HeaderMutation{
		SetHeaders: []*corev3.HeaderValueOption{overwriting("a", "1")}, RemoveHeaders: []string{"range"},
	}
	again := setHeader("x", "2")
	again.Append = wrapperspb.Bool(true) //nolint:staticcheck // the one form that ImmediateResponse honours
	answer := wire.Answer{Status: 200, Details: "weir_hit", Header: httpcache.Fields{
		{Name: "x", Value: "1"}, {Name: "x", Value: "2"}, {Name: "content-type", Value: "t"},
	}}
	long := make([]byte, 70_000)
	prepared, body := wire.PrepareImmediate(answer, long)
	if len(body) != len(long) || &body[0] != &prepared[len(prepared)-len(long)] {
		t.Error("PrepareImmediate's body part is not part of the message")
	}
	metadata, err := structpb.NewStruct(map[string]any{"weir": map[string]any{"outcome": "hit", "policy": "a/b"}})
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		got  *wire.Reply
		want *extprocv3.ProcessingResponse
	}{
		"continue request": {wire.ContinueRequest(mutation), &extprocv3.ProcessingResponse{
			Response: &extprocv3.ProcessingResponse_RequestHeaders{RequestHeaders: &extprocv3.HeadersResponse{
				Response: &extprocv3.CommonResponse{HeaderMutation: wantMutation}}}}},
		"continue request unchanged": {wire.ContinueRequest(wire.Mutation{}), &extprocv3.ProcessingResponse{
			Response: &extprocv3.ProcessingResponse_RequestHeaders{RequestHeaders: &extprocv3.HeadersResponse{}}}},
		"copy response": {wire.ContinueResponse(mutation, true), &extprocv3.ProcessingResponse{
			Response: &extprocv3.ProcessingResponse_ResponseHeaders{ResponseHeaders: &extprocv3.HeadersResponse{
				Response: &extprocv3.CommonResponse{HeaderMutation: wantMutation}}},
			ModeOverride: &filterv3.ProcessingMode{
				ResponseHeaderMode:  filterv3.ProcessingMode_SEND,
				ResponseBodyMode:    filterv3.ProcessingMode_STREAMED,
				ResponseTrailerMode: filterv3.ProcessingMode_SEND,
			}}},
		"replace response": {
			wire.ReplaceResponse(200, wire.Mutation{Remove: []string{"etag"}}, []byte("b")),
			&extprocv3.ProcessingResponse{
				Response: &extprocv3.ProcessingResponse_ResponseHeaders{ResponseHeaders: &extprocv3.HeadersResponse{
					Response: &extprocv3.CommonResponse{
						Status: extprocv3.CommonResponse_CONTINUE_AND_REPLACE,
						HeaderMutation: &extprocv3.HeaderMutation{
							SetHeaders: []*corev3.HeaderValueOption{status}, RemoveHeaders: []string{"etag"}},
						BodyMutation: &extprocv3.BodyMutation{Mutation: &extprocv3.BodyMutation_Body{Body: []byte("b")}},
					}}}}},
		"replace response, one field on two lines": {
			wire.ReplaceResponse(200, wire.Mutation{Set: httpcache.Fields{
				{Name: "link", Value: "</a>"}, {Name: "vary", Value: "x"}, {Name: "link", Value: "</b>"}}}, nil),
			&extprocv3.ProcessingResponse{
				Response: &extprocv3.ProcessingResponse_ResponseHeaders{ResponseHeaders: &extprocv3.HeadersResponse{
					Response: &extprocv3.CommonResponse{
						Status: extprocv3.CommonResponse_CONTINUE_AND_REPLACE,
						HeaderMutation: &extprocv3.HeaderMutation{SetHeaders: []*corev3.HeaderValueOption{
							status, overwriting("link", "</a>, </b>"), overwriting("vary", "x")}},
						BodyMutation: &extprocv3.BodyMutation{Mutation: &extprocv3.BodyMutation_Body{}},
					}}}}},
		"ack body": {wire.AckBody(), &extprocv3.ProcessingResponse{
			Response: &extprocv3.ProcessingResponse_ResponseBody{ResponseBody: &extprocv3.BodyResponse{}}}},
		"ack trailers": {wire.AckTrailers(), &extprocv3.ProcessingResponse{
			Response: &extprocv3.ProcessingResponse_ResponseTrailers{ResponseTrailers: &extprocv3.TrailersResponse{}}}},
		"extend timeout": {wire.ExtendTimeout(3500 * time.Millisecond), &extprocv3.ProcessingResponse{
			OverrideMessageTimeout: durationpb.New(3500 * time.Millisecond)}},
		"prepared immediate": {
			wire.Prepared(prepared, wire.AppendPerHit(nil, wire.PerHit{
				Age: []byte("3"), CacheStatus: []byte("weir; hit"), Outcome: "hit", Policy: "a/b"})),
			&extprocv3.ProcessingResponse{DynamicMetadata: metadata, Response: &extprocv3.ProcessingResponse_ImmediateResponse{
				ImmediateResponse: &extprocv3.ImmediateResponse{
					Status: &typev3.HttpStatus{Code: typev3.StatusCode_OK}, Body: long, Details: "weir_hit",
					Headers: &extprocv3.HeaderMutation{SetHeaders: []*corev3.HeaderValueOption{
						setHeader("x", "1"), again, setHeader("content-type", "t"),
						setHeader("age", "3"), setHeader("cache-status", "weir; hit")}},
				}}}},
		"stream head": {wire.StreamHead(answer, true), &extprocv3.ProcessingResponse{
			Response: &extprocv3.ProcessingResponse_StreamedImmediateResponse{
				StreamedImmediateResponse: &extprocv3.StreamedImmediateResponse{
					Response: &extprocv3.StreamedImmediateResponse_HeadersResponse{HeadersResponse: &extprocv3.HttpHeaders{
						Headers: &corev3.HeaderMap{Headers: []*corev3.HeaderValue{
							rawHeader(":status", "200"), rawHeader("x", "1, 2"), rawHeader("content-type", "t")}},
						EndOfStream: true}}}}}},
		"stream chunk": {wire.StreamChunk(long, false), streamed(long, false)},
		"stream end":   {wire.StreamChunk(nil, true), streamed(nil, true)},
		"last chunk":   {wire.StreamChunk([]byte("x"), true), streamed([]byte("x"), true)},
		"metadata": {wire.AckBody().With(wire.AppendMetadata(nil, "outcome", "hit", "policy", "a/b")),
			&extprocv3.ProcessingResponse{DynamicMetadata: metadata,
				Response: &extprocv3.ProcessingResponse_ResponseBody{ResponseBody: &extprocv3.BodyResponse{}}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, reply(t, tt.got), protocmp.Transform()); diff != "" {
				t.Errorf("reply (-want +got):\n%s", diff)
			}
		})
	}
}

func streamed(body []byte, end bool) *extprocv3.ProcessingResponse {
	return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_StreamedImmediateResponse{
		StreamedImmediateResponse: &extprocv3.StreamedImmediateResponse{
			Response: &extprocv3.StreamedImmediateResponse_BodyResponse{
				BodyResponse: &extprocv3.StreamedBodyResponse{Body: body, EndOfStream: end}}}}}
}

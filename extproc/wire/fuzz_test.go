package wire_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/wire"
)

// FuzzMessage feeds arbitrary bytes to Unmarshal. It never panics; and where the
// generated type takes the same bytes, both read the same message.
func FuzzMessage(f *testing.F) {
	for _, seed := range seeds(f) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m := new(wire.Message)
		err := m.Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)})
		defer m.Reset()
		if err != nil {
			if m.Kind != wire.KindNone || m.Header != nil || m.Body != nil {
				t.Errorf("something is left of a message that was refused: %+v", m)
			}
			return
		}
		var p extprocv3.ProcessingRequest
		if proto.Unmarshal(b, &p) != nil {
			return // text that is no UTF-8, mostly: HTTP fields may hold any bytes
		}
		if diff := cmp.Diff(expected(&p), summarize(m)); diff != "" {
			t.Errorf("message (-generated type +wire):\n%s", diff)
		}
	})
}

// summary is what matters of a message, but for the attributes: of those Envoy
// sends one struct, and what several would mean is nobody's concern.
type summary struct {
	Kind                                         wire.Kind
	Header                                       httpcache.Fields
	Method, Scheme, Authority, Path, Status      string
	EndOfStream                                  bool
	Body                                         string
	Observability, HasConfig, BodyWithoutWaiting bool
	RequestBody, ResponseBody                    wire.BodyMode
}

func summarize(m *wire.Message) summary {
	s := summary{
		Kind: m.Kind, Header: m.Header, Method: m.Method, Scheme: m.Scheme, Authority: m.Authority, Path: m.Path,
		EndOfStream: m.EndOfStream, Body: string(m.Body),
		Observability: m.Observability, HasConfig: m.HasConfig, BodyWithoutWaiting: m.Config.BodyWithoutWaiting,
		RequestBody: m.Config.RequestBody, ResponseBody: m.Config.ResponseBody,
	}
	if m.Status != 0 {
		s.Status = strconv.Itoa(m.Status)
	}
	if len(s.Header) == 0 {
		s.Header = nil
	}
	return s
}

// expected is what summarize gives for a message that the generated type read.
func expected(p *extprocv3.ProcessingRequest) summary {
	s := summary{Observability: p.GetObservabilityMode(), HasConfig: p.GetProtocolConfig() != nil}
	if c := p.GetProtocolConfig(); c != nil {
		s.BodyWithoutWaiting = c.GetSendBodyWithoutWaitingForHeaderResponse()
		s.RequestBody = bodyMode(int32(c.GetRequestBodyMode()))
		s.ResponseBody = bodyMode(int32(c.GetResponseBodyMode()))
	}
	switch r := p.Request.(type) {
	case *extprocv3.ProcessingRequest_RequestHeaders:
		s.Kind, s.EndOfStream = wire.KindRequestHeaders, r.RequestHeaders.GetEndOfStream()
		s.fields(r.RequestHeaders.GetHeaders())
	case *extprocv3.ProcessingRequest_ResponseHeaders:
		s.Kind, s.EndOfStream = wire.KindResponseHeaders, r.ResponseHeaders.GetEndOfStream()
		s.fields(r.ResponseHeaders.GetHeaders())
	case *extprocv3.ProcessingRequest_RequestBody:
		s.Kind = wire.KindRequestBody
		s.body(r.RequestBody)
	case *extprocv3.ProcessingRequest_ResponseBody:
		s.Kind = wire.KindResponseBody
		s.body(r.ResponseBody)
	case *extprocv3.ProcessingRequest_RequestTrailers:
		s.Kind = wire.KindRequestTrailers
		s.fields(r.RequestTrailers.GetTrailers())
	case *extprocv3.ProcessingRequest_ResponseTrailers:
		s.Kind = wire.KindResponseTrailers
		s.fields(r.ResponseTrailers.GetTrailers())
	}
	return s
}

func bodyMode(v int32) wire.BodyMode { return wire.BodyMode(min(uint32(v), 255)) }

func (s *summary) body(b *extprocv3.HttpBody) {
	s.Body = string(b.GetBody())
	s.EndOfStream = b.GetEndOfStream() || b.GetEndOfStreamWithoutMessage()
}

func (s *summary) fields(m *corev3.HeaderMap) {
	for _, h := range m.GetHeaders() {
		value := string(h.GetRawValue())
		if value == "" {
			value = h.GetValue()
		}
		switch name := h.GetKey(); {
		case name == "":
		case name == ":method":
			s.Method = value
		case name == ":scheme":
			s.Scheme = value
		case name == ":authority":
			s.Authority = value
		case name == ":path":
			s.Path = value
		case name == ":status":
			n, _ := strconv.Atoi(value) // wire refused it if it is none
			s.Status = strconv.Itoa(n)
		case name[0] != ':':
			s.Header = append(s.Header, httpcache.Field{Name: name, Value: value})
		}
	}
}

// seeds are messages as Envoy sends them, and as it does not.
func seeds(f *testing.F) [][]byte {
	f.Helper()
	headers := func(fields ...*corev3.HeaderValue) *extprocv3.HttpHeaders {
		return &extprocv3.HttpHeaders{Headers: &corev3.HeaderMap{Headers: fields}, EndOfStream: true}
	}
	attributes, err := structpb.NewStruct(map[string]any{"xds.route_name": "products", "response.code_details": "UF"})
	if err != nil {
		f.Fatal(err)
	}
	request := []*corev3.HeaderValue{
		rawHeader(":method", "GET"), rawHeader(":scheme", "https"), rawHeader(":authority", "shop.test"),
		rawHeader(":path", "/page?x=1"), rawHeader("accept", "*/*"),
	}
	var many []*corev3.HeaderValue
	for i := range 1000 {
		many = append(many, rawHeader(fmt.Sprintf("x-header-%d", i), strings.Repeat("v", 90)))
	}
	var out [][]byte
	for _, p := range []*extprocv3.ProcessingRequest{
		{Request: &extprocv3.ProcessingRequest_RequestHeaders{RequestHeaders: headers(request...)},
			ProtocolConfig: &extprocv3.ProtocolConfiguration{SendBodyWithoutWaitingForHeaderResponse: true},
			Attributes:     map[string]*structpb.Struct{"envoy.filters.http.ext_proc": attributes}, ObservabilityMode: true},
		{Request: &extprocv3.ProcessingRequest_RequestHeaders{RequestHeaders: headers(many...)}},
		{Request: &extprocv3.ProcessingRequest_RequestHeaders{RequestHeaders: headers(
			rawHeader(":path", "/"+strings.Repeat("p", 60_000)))}},
		{Request: &extprocv3.ProcessingRequest_ResponseHeaders{ResponseHeaders: headers(
			rawHeader(":status", "200"), rawHeader("x-control", "a\x00b\r\nc\x7f"), rawHeader("x-text", "\xff\xfe"))}},
		{Request: &extprocv3.ProcessingRequest_ResponseBody{ResponseBody: &extprocv3.HttpBody{
			Body: []byte("chunk"), EndOfStream: true}}},
		{Request: &extprocv3.ProcessingRequest_RequestBody{RequestBody: &extprocv3.HttpBody{
			EndOfStreamWithoutMessage: true}}},
		{Request: &extprocv3.ProcessingRequest_ResponseTrailers{ResponseTrailers: &extprocv3.HttpTrailers{
			Trailers: &corev3.HeaderMap{Headers: []*corev3.HeaderValue{rawHeader("grpc-status", "0")}}}}},
		{},
	} {
		b, err := proto.Marshal(p)
		if err != nil {
			f.Fatal(err)
		}
		out = append(out, b, b[:len(b)/2], slices.Concat(b, b))
	}
	// Two kinds in one message, scalars of other wire types than the fields have,
	// and bytes that are no protobuf.
	return append(out, slices.Concat(out[0], out[12]),
		protowire.AppendFixed32(protowire.AppendTag(nil, 10, protowire.Fixed32Type), 1), []byte("\xff\xff"))
}

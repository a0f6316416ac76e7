package extproc

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	"github.com/weirproxy/weir/extproc/fleet"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/metrics"
	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/store/memory"
	"github.com/weirproxy/weir/extproc/wire"
)

// oneMessage is a stream on which Envoy sends one message and takes one answer.
type oneMessage struct {
	grpc.ServerStream
	ctx   context.Context //nolint:containedctx // a stream has one
	codec wire.Codec
	in    []byte
	sent  int
}

func (s *oneMessage) Context() context.Context { return s.ctx }

func (s *oneMessage) RecvMsg(m any) error {
	if s.in == nil {
		return io.EOF
	}
	in := s.in
	s.in = nil
	return s.codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(in)}, m)
}

func (s *oneMessage) SendMsg(m any) error {
	out, err := s.codec.Marshal(m)
	s.sent += out.Len()
	return err
}

// hitRequest is what Envoy sends for a browser's request.
func hitRequest(tb testing.TB) []byte {
	tb.Helper()
	request := httpcache.Fields{
		{Name: ":authority", Value: "shop.example"}, {Name: ":path", Value: "/products/42?page=1"},
		{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"},
		{Name: "user-agent", Value: "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko)"},
		{Name: "accept", Value: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"},
		{Name: "accept-encoding", Value: "gzip, deflate, br"}, {Name: "accept-language", Value: "en-GB,en;q=0.5"},
		{Name: "x-forwarded-for", Value: "192.0.2.7"}, {Name: "x-forwarded-proto", Value: "https"},
		{Name: "x-request-id", Value: "3f8e1f5e-5a33-4f5b-9d6c-6b2c1a1f0f1d"},
	}
	fields := make([]*corev3.HeaderValue, 0, len(request))
	for _, f := range request {
		fields = append(fields, &corev3.HeaderValue{Key: f.Name, RawValue: []byte(f.Value)})
	}
	attributes, err := structpb.NewStruct(map[string]any{"xds.route_name": "products"})
	if err != nil {
		tb.Fatal(err)
	}
	b, err := proto.Marshal(&extprocv3.ProcessingRequest{
		Request: &extprocv3.ProcessingRequest_RequestHeaders{RequestHeaders: &extprocv3.HttpHeaders{
			Headers: &corev3.HeaderMap{Headers: fields}, EndOfStream: true,
		}},
		Attributes:     map[string]*structpb.Struct{"envoy.filters.http.ext_proc": attributes},
		ProtocolConfig: &extprocv3.ProtocolConfiguration{},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// hitService is a service that has the answer to hitRequest, of 1 KiB.
func hitService(tb testing.TB) *Service {
	tb.Helper()
	policy, err := cachepolicy.Compile("shop", "catalog", &v1alpha1.CachePolicySpec{})
	if err != nil {
		tb.Fatal(err)
	}
	binding := cachepolicy.Binding{Policy: policy, Scope: "shop/route/products", Route: "products"}
	set, err := cachepolicy.NewSet(binding)
	if err != nil {
		tb.Fatal(err)
	}
	entries := memory.New(memory.Options{Limit: 64 << 20})
	s := New(Options{
		Policies: func() *cachepolicy.Set { return set }, Store: entries, Stamps: fleet.NewStamps(0),
		Metrics: metrics.New(prometheus.NewRegistry(), metrics.Build{}), Logger: slog.New(slog.DiscardHandler),
		MessageTimeout: time.Second, MaxMessageTimeout: time.Minute,
	})
	tb.Cleanup(s.Close)
	req := httpcache.Request{Method: "GET", Scheme: "https", Authority: "shop.example", Path: "/products/42?page=1"}
	key := cachepolicy.BuildKey(&policy.Key, cachepolicy.KeyInput{
		Scope: binding.Scope, Scheme: req.Scheme, Authority: req.Authority, Path: req.Path, Header: req.Header.Joined,
	})
	now := time.Now()
	e := &store.Entry{
		Key: key, URI: ResourceOf(&policy.Key, &req), Status: 200, Policy: policy.String(),
		ResponseTime: now, Lifetime: 24 * time.Hour, Body: store.WholeBody(make([]byte, 1024)),
		Header: httpcache.Fields{
			{Name: "content-type", Value: "text/html; charset=utf-8"}, {Name: "cache-control", Value: "max-age=86400"},
			{Name: "etag", Value: `"a1b2c3"`}, {Name: "date", Value: "Mon, 30 Nov 2026 12:00:00 GMT"},
		},
	}
	if err := entries.Put(tb.Context(), prepare(e), 16, now); err != nil {
		tb.Fatal(err)
	}
	return s
}

// maxHitAllocs guards the hit path, from the bytes of Envoy's message to those of
// the answer; gRPC's own come on top.
const maxHitAllocs = 9

func TestHitAllocations(t *testing.T) {
	s, in := hitService(t), hitRequest(t)
	stream := &oneMessage{ctx: t.Context(), codec: wire.NewCodec()}
	got := testing.AllocsPerRun(200, func() {
		stream.in, stream.sent = in, 0
		if err := s.process(stream); err != nil || stream.sent < 1024 {
			t.Fatalf("%d bytes sent, error %v", stream.sent, err)
		}
	})
	if got > maxHitAllocs {
		t.Errorf("a hit allocates %v times, want at most %d", got, maxHitAllocs)
	}
}

func BenchmarkHit(b *testing.B) {
	s, in := hitService(b), hitRequest(b)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		stream := &oneMessage{ctx: b.Context(), codec: wire.NewCodec()}
		for pb.Next() {
			stream.in = in
			if err := s.process(stream); err != nil {
				b.Fatal(err)
			}
		}
	})
}

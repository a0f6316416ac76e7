package wire_test

import (
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/weirproxy/weir/extproc/wire"
)

// typicalRequest is a request_headers of a browser behind Envoy, as on the wire.
func typicalRequest(tb testing.TB) []byte {
	tb.Helper()
	b, err := proto.Marshal(&extprocv3.ProcessingRequest{
		ProtocolConfig: &extprocv3.ProtocolConfiguration{},
		Request: &extprocv3.ProcessingRequest_RequestHeaders{RequestHeaders: &extprocv3.HttpHeaders{
			EndOfStream: true,
			Headers: &corev3.HeaderMap{Headers: []*corev3.HeaderValue{
				rawHeader(":method", "GET"), rawHeader(":scheme", "https"), rawHeader(":authority", "shop.test"),
				rawHeader(":path", "/catalog/7?page=2"), rawHeader("accept", "text/html"), rawHeader("accept-encoding", "gzip, br"),
				rawHeader("accept-language", "en"), rawHeader("user-agent", "Mozilla/5.0 (X11; Linux x86_64)"),
				rawHeader("x-forwarded-for", "192.0.2.7"), rawHeader("x-forwarded-proto", "https"),
				rawHeader("x-request-id", "0c2f1f1e-7d1b-4d41-b1f5-5c3a0d2b1f6a"),
			}},
		}},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// TestUnmarshalAllocates: one allocation for all text and one for the fields,
// beside what the transport's buffers take.
func TestUnmarshalAllocates(t *testing.T) {
	data := mem.BufferSlice{mem.SliceBuffer(typicalRequest(t))}
	m := new(wire.Message)
	got := testing.AllocsPerRun(1000, func() {
		if err := m.Unmarshal(data); err != nil {
			t.Fatal(err)
		}
	})
	if got > 2 {
		t.Errorf("%v allocations, want at most 2", got)
	}
}

func BenchmarkUnmarshal(b *testing.B) {
	data := mem.BufferSlice{mem.SliceBuffer(typicalRequest(b))}
	m := new(wire.Message)
	b.ReportAllocs()
	for b.Loop() {
		if err := m.Unmarshal(data); err != nil {
			b.Fatal(err)
		}
	}
}

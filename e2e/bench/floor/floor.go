// Package floor is what weir is measured against: ext_proc servers that decide nothing. They answer every request with
// the same bytes that weir would send for a hit, or close every stream with OK.
package floor

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/weirproxy/weir/e2e/harness"
	"github.com/weirproxy/weir/extproc"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/wire"
)

// Kind says what kind of server it is.
type Kind string

// The kinds. Stock and Raw are grpc-go with its default options.
const (
	Stock Kind = "stock" // generated code, answers a constant that is marshalled each time
	Raw   Kind = "raw"   // a codec that passes bytes on: the answer is marshalled once, requests are not read
	Close Kind = "close" // generated code, closes each stream with OK after its first message
)

// Serve answers with bodies of size bytes on addresses (host:port, unix:///path) until a listener fails. ready is
// called when all listen.
func Serve(kind Kind, size int, addresses []string, ready func()) error {
	var server *grpc.Server
	switch kind {
	case Stock, Close:
		server = grpc.NewServer()
		extprocv3.RegisterExternalProcessorServer(server, newStock(kind, size))
	case Raw:
		server = grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{}))
		registerRaw(server, Answer(size))
	default:
		return fmt.Errorf("floor: no kind %q of server", kind)
	}
	failed := make(chan error)
	for _, address := range addresses {
		network := "tcp"
		if path, ok := strings.CutPrefix(address, "unix://"); ok {
			network, address = "unix", path
		}
		l, err := net.Listen(network, address)
		if err != nil {
			return fmt.Errorf("floor: %w", err)
		}
		go func() { failed <- server.Serve(l) }()
	}
	ready()
	return <-failed
}

// Header is that of the response which all are measured with: what a usual origin sends.
func Header() httpcache.Fields {
	return httpcache.Fields{
		{Name: "content-type", Value: "application/octet-stream"},
		{Name: "cache-control", Value: "max-age=86400"},
		{Name: "etag", Value: `"a1b2c3"`},
		{Name: "date", Value: "Mon, 30 Nov 2026 12:00:00 GMT"},
	}
}

// Answer is what weir sends for a hit of size bytes, frozen: the messages of one stream, marshalled.
func Answer(size int) [][]byte {
	body := harness.GeneratedBody(size)
	head := wire.Answer{Status: 200, Header: Header(), Details: "weir_hit"}
	age, status := "3", "weir; hit; ttl=86397"
	if size <= wire.MaxImmediateBody {
		message, _ := wire.PrepareImmediate(head, body)
		perHit := wire.AppendPerHit(nil, wire.PerHit{
			Age: []byte(age), CacheStatus: []byte(status), Outcome: "hit", Policy: "bench/bench",
		})
		return [][]byte{wire.Prepared(message, perHit).Bytes()}
	}
	head.Header = append(head.Header, httpcache.Fields{
		{Name: "age", Value: age}, {Name: "cache-status", Value: status},
		{Name: "content-length", Value: strconv.Itoa(size)},
	}...)
	messages := [][]byte{wire.StreamHead(head, false).
		With(wire.AppendMetadata(nil, "outcome", "hit", "policy", "bench/bench")).Bytes()}
	for len(body) > 0 {
		n := min(len(body), wire.ChunkSize)
		messages = append(messages, wire.StreamChunk(body[:n], n == len(body)).Bytes())
		body = body[n:]
	}
	return messages
}

// stock is a server over the generated code.
type stock struct {
	extprocv3.UnimplementedExternalProcessorServer
	answer []*extprocv3.ProcessingResponse
}

func newStock(kind Kind, size int) *stock {
	s := &stock{}
	if kind == Close {
		return s
	}
	for _, b := range Answer(size) {
		m := &extprocv3.ProcessingResponse{}
		if err := proto.Unmarshal(b, m); err != nil {
			panic(fmt.Sprintf("floor: an answer of wire's is no ProcessingResponse: %v", err))
		}
		s.answer = append(s.answer, m)
	}
	return s
}

// Process implements the service.
func (s *stock) Process(stream grpc.BidiStreamingServer[extprocv3.ProcessingRequest, extprocv3.ProcessingResponse],
) error {
	if _, err := stream.Recv(); err != nil {
		return ignoreEOF(err)
	}
	for _, m := range s.answer {
		if err := stream.Send(m); err != nil {
			return err
		}
	}
	return nil
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// rawCodec passes bytes on: messages are of type *[]byte.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (rawCodec) Unmarshal(mem.BufferSlice, any) error { return nil }

func registerRaw(server *grpc.Server, answer [][]byte) {
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: extproc.ServiceName, HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{
			StreamName: "Process", ServerStreams: true, ClientStreams: true,
			Handler: func(_ any, stream grpc.ServerStream) error {
				var in []byte
				if err := stream.RecvMsg(&in); err != nil {
					return ignoreEOF(err)
				}
				for i := range answer {
					if err := stream.SendMsg(&answer[i]); err != nil {
						return err
					}
				}
				return nil
			},
		}},
	}, struct{}{})
}

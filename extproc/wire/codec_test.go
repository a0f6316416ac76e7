package wire_test

import (
	"errors"
	"testing"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/weirproxy/weir/extproc/wire"
)

// TestCodecSendsRepliesAsTheyLie: no byte of a stored answer is copied.
func TestCodecSendsRepliesAsTheyLie(t *testing.T) {
	t.Parallel()
	body := []byte("body")
	out, err := wire.NewCodec().Marshal(wire.StreamChunk(body, true))
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, part := range out {
		b := part.ReadOnlyData()
		found = found || len(b) == len(body) && &b[0] == &body[0]
	}
	if !found {
		t.Error("the body is not among the pieces")
	}
}

func TestCodecReadsMessages(t *testing.T) {
	t.Parallel()
	b, err := proto.Marshal(&extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_ResponseBody{
		ResponseBody: &extprocv3.HttpBody{Body: []byte("chunk")}}})
	if err != nil {
		t.Fatal(err)
	}
	// In two pieces, as the transport may give them.
	m := new(wire.Message)
	if err := wire.NewCodec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(b[:3]), mem.SliceBuffer(b[3:])}, m); err != nil {
		t.Fatal(err)
	}
	if m.Kind != wire.KindResponseBody || string(m.Body) != "chunk" {
		t.Errorf("got %s %q", m.Kind, m.Body)
	}
	m.Reset()
	if m.Body != nil || m.Kind != wire.KindNone {
		t.Errorf("left after Reset: %+v", m)
	}
	if err := wire.NewCodec().Unmarshal(mem.BufferSlice{mem.SliceBuffer("\xff")}, m); err == nil {
		t.Error("no error for what is no protobuf")
	}
}

// TestCodecLeavesOtherMessagesAlone: health checks share the server.
func TestCodecLeavesOtherMessagesAlone(t *testing.T) {
	t.Parallel()
	c := wire.NewCodec()
	if c.Name() != "proto" {
		t.Errorf("name %q: the content-subtype that Envoy sends is proto", c.Name())
	}
	in := &grpc_health_v1.HealthCheckRequest{Service: "weir"}
	b, err := c.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	out := new(grpc_health_v1.HealthCheckRequest)
	if err := c.Unmarshal(b, out); err != nil || !proto.Equal(in, out) {
		t.Errorf("got %v, %v", out, err)
	}
	if _, err := c.Marshal(errors.New("no message")); err == nil {
		t.Error("no error for what is no message")
	}
	if err := c.Unmarshal(b, "no message"); err == nil {
		t.Error("no error for what takes no message")
	}
}

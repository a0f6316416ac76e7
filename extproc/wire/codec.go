package wire

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
)

// Codec is the gRPC codec of the ext_proc service: it knows Message and Reply,
// and leaves everything else on the same server (health, reflection) to the
// standard protobuf codec. Safe for concurrent use.
type Codec struct {
	fallback encoding.CodecV2
}

// NewCodec returns a Codec over the registered protobuf codec.
func NewCodec() Codec { return Codec{fallback: encoding.GetCodecV2("proto")} }

// Marshal returns a Reply's pieces without copying them.
func (c Codec) Marshal(v any) (mem.BufferSlice, error) {
	if r, ok := v.(*Reply); ok {
		return r.parts, nil
	}
	out, err := c.fallback.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("wire codec: %w", err)
	}
	return out, nil
}

// Unmarshal parses a Message.
func (c Codec) Unmarshal(data mem.BufferSlice, v any) error {
	if m, ok := v.(*Message); ok {
		return m.Unmarshal(data)
	}
	if err := c.fallback.Unmarshal(data, v); err != nil {
		return fmt.Errorf("wire codec: %w", err)
	}
	return nil
}

// Name is the content-subtype, "proto": on the wire this is protobuf.
func (c Codec) Name() string { return "proto" }

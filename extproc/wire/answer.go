package wire

import (
	"strconv"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weirproxy/weir/extproc/httpcache"
)

// MaxImmediateBody is the largest body that is kept as one ImmediateResponse.
// Above it a hit is a StreamedImmediateResponse, which starts sooner and needs
// no second buffer of the whole in Envoy (docs/design/0002-wire-form.md).
const MaxImmediateBody = 128 << 10

// ChunkSize is how much body one message of a streamed answer carries.
const ChunkSize = 64 << 10

// Answer is the head of an answer that weir itself gives.
type Answer struct {
	Status int
	Header httpcache.Fields
	// Details is the access log's RESPONSE_CODE_DETAILS (ImmediateResponse only).
	Details string
}

// PrepareImmediate returns the bytes of an ImmediateResponse with the whole
// body, to be kept and sent by [Prepared]. It is only right for an answer with
// a content type and a body: Envoy would invent the one and mis-state the other.
// The returned slice's last part is the body.
func PrepareImmediate(a Answer, body []byte) (message, bodyPart []byte) {
	size := immediateHeadSize(a) + 1 + protowire.SizeBytes(len(body))
	b := make([]byte, 0, 1+protowire.SizeBytes(size))
	b = protowire.AppendTag(b, replyImmediate, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(size))
	b = appendImmediateHead(b, a)
	b = appendBytes(b, 3, body)
	return b, b[len(b)-len(body):]
}

// Prepared is a stored ImmediateResponse with the fields of this one hit.
func Prepared(message []byte, perHit []byte) *Reply { return NewReply(message, perHit) }

// PerHit is what of a stored ImmediateResponse is made for one hit. The byte
// slices are not kept.
type PerHit struct {
	Age, CacheStatus []byte
	Outcome, Policy  string // for access logs
}

// AppendPerHit appends the part of an ImmediateResponse that carries p.
func AppendPerHit(b []byte, p PerHit) []byte {
	b = appendImmediateFields(b, httpcache.Field{Name: "age", Value: bytesString(p.Age)},
		httpcache.Field{Name: "cache-status", Value: bytesString(p.CacheStatus)})
	return AppendMetadata(b, "outcome", p.Outcome, "policy", p.Policy)
}

func appendImmediateFields(b []byte, fields ...httpcache.Field) []byte {
	size := 0
	for _, f := range fields {
		size += headerOptionSize(f)
	}
	inner := protowire.SizeTag(2) + protowire.SizeBytes(size)
	b = protowire.AppendTag(b, replyImmediate, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(inner))
	b = protowire.AppendTag(b, 2, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(size))
	for _, f := range fields {
		b = appendHeaderOption(b, f, plain)
	}
	return b
}

// Immediate is an ImmediateResponse built on demand.
func Immediate(a Answer, body []byte) *Reply {
	b, _ := PrepareImmediate(a, body)
	return NewReply(b)
}

func immediateHeadSize(a Answer) int {
	return len(appendImmediateHead(nil, a))
}

func appendImmediateHead(b []byte, a Answer) []byte {
	b = appendMessage(b, 1, func(b []byte) []byte { return appendVarint(b, 1, uint64(a.Status)) })
	b = appendMessage(b, 2, func(b []byte) []byte {
		for i, f := range a.Header {
			action := plain
			if a.Header[:i].Has(f.Name) {
				action = appendOld
			}
			b = appendHeaderOption(b, f, action)
		}
		return b
	})
	if a.Details != "" {
		b = appendString(b, 5, a.Details)
	}
	return b
}

func headerOptionSize(f httpcache.Field) int {
	opt := protowire.SizeTag(1) + protowire.SizeBytes(headerValueSize(f))
	return protowire.SizeTag(1) + protowire.SizeBytes(opt)
}

// StreamHead is the first message of a StreamedImmediateResponse; with end the
// answer has no body. Lines of one field are joined, since Envoy keeps only the
// last of a repeated key there.
func StreamHead(a Answer, end bool) *Reply {
	return NewReply(appendMessage(nil, replyStreamed, func(b []byte) []byte {
		return appendMessage(b, 1, func(b []byte) []byte {
			b = appendMessage(b, 1, func(b []byte) []byte {
				b = appendHeaderMapField(b, httpcache.Field{Name: ":status", Value: statusText(a.Status)})
				for f := range joined(a.Header) {
					b = appendHeaderMapField(b, f)
				}
				return b
			})
			if end {
				b = appendVarint(b, 3, 1)
			}
			return b
		})
	}))
}

func appendHeaderMapField(b []byte, f httpcache.Field) []byte {
	b = protowire.AppendTag(b, 1, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(headerValueSize(f)))
	return appendHeaderValue(b, f)
}

// StreamChunk is one body message of a StreamedImmediateResponse. The body is
// sent from where it lies.
func StreamChunk(body []byte, end bool) *Reply {
	var tail []byte
	if end {
		tail = []byte{2 << 3, 1}
	}
	inner := len(tail)
	if len(body) > 0 {
		inner += 1 + protowire.SizeBytes(len(body))
	}
	outer := 1 + protowire.SizeBytes(inner)
	head := make([]byte, 0, 24)
	head = protowire.AppendTag(head, replyStreamed, protowire.BytesType)
	head = protowire.AppendVarint(head, uint64(outer))
	head = protowire.AppendTag(head, 2, protowire.BytesType)
	head = protowire.AppendVarint(head, uint64(inner))
	if len(body) > 0 {
		head = protowire.AppendTag(head, 1, protowire.BytesType)
		head = protowire.AppendVarint(head, uint64(len(body)))
	}
	return NewReply(head, body, tail)
}

// AppendMetadata appends dynamic_metadata with one string per pair in the
// namespace "weir", for access logs.
func AppendMetadata(b []byte, pairs ...string) []byte {
	return appendMessage(b, replyMetadata, func(b []byte) []byte {
		return appendStructField(b, "weir", func(b []byte) []byte {
			return appendMessage(b, 5, func(b []byte) []byte { // Value.struct_value
				for i := 0; i+1 < len(pairs); i += 2 {
					b = appendStructField(b, pairs[i], func(b []byte) []byte {
						return appendString(b, 3, pairs[i+1]) // Value.string_value
					})
				}
				return b
			})
		})
	})
}

// appendStructField appends one entry of Struct.fields, whose Value f appends.
func appendStructField(b []byte, name string, f func([]byte) []byte) []byte {
	return appendMessage(b, 1, func(b []byte) []byte {
		b = appendString(b, 1, name)
		return appendMessage(b, 2, f)
	})
}

// With returns r with one more piece, such as AppendMetadata made.
func (r *Reply) With(part []byte) *Reply {
	if len(part) > 0 {
		r.parts = append(r.parts, mem.SliceBuffer(part))
	}
	return r
}

func statusText(status int) string { return strconv.Itoa(status) }

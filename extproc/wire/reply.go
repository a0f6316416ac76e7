package wire

import (
	"iter"
	"time"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weirproxy/weir/extproc/httpcache"
)

// Reply is one ProcessingResponse as pieces of protobuf that are sent one after
// the other. The pieces are not written to once the Reply was sent.
type Reply struct {
	parts mem.BufferSlice
	room  [4]mem.Buffer // backs parts
}

// NewReply returns a Reply of the given pieces, which it does not copy.
func NewReply(parts ...[]byte) *Reply {
	r := &Reply{}
	r.parts = r.room[:0]
	for _, p := range parts {
		if len(p) > 0 {
			r.parts = append(r.parts, mem.SliceBuffer(p))
		}
	}
	return r
}

// Bytes returns the reply in one piece, for tests and traces.
func (r *Reply) Bytes() []byte { return r.parts.Materialize() }

// Mutation changes header fields of a request or response that goes on.
type Mutation struct {
	Set    httpcache.Fields // replaces what is there; lines of one field are joined
	Remove []string
}

// ContinueRequest lets a request go on to the origin.
func ContinueRequest(m Mutation) *Reply {
	return NewReply(appendHeadersReply(nil, replyRequestHeaders, common{mutation: m}))
}

// ContinueResponse lets a response go on to the client; with copyBody Envoy
// sends its body and trailers here too, chunk by chunk (mode_override STREAMED).
func ContinueResponse(m Mutation, copyBody bool) *Reply {
	b := appendHeadersReply(nil, replyResponseHeaders, common{mutation: m})
	if copyBody {
		b = appendMessage(b, replyModeOverride, func(b []byte) []byte {
			b = appendVarint(b, 2, 1) // response_header_mode SEND
			b = appendVarint(b, 4, 1) // response_body_mode STREAMED
			return appendVarint(b, 6, 1)
		})
	}
	return NewReply(b)
}

// ReplaceResponse answers response_headers with a whole answer of our own by
// CONTINUE_AND_REPLACE, so that the filters behind us still run. The fields of
// the origin's response stay unless m removes them.
func ReplaceResponse(status int, m Mutation, body []byte) *Reply {
	set := append(httpcache.Fields{{Name: ":status", Value: statusText(status)}}, m.Set...)
	c := common{replace: true, mutation: Mutation{Set: set, Remove: m.Remove}, body: body, hasBody: true}
	return NewReply(appendHeadersReply(nil, replyResponseHeaders, c))
}

// AckBody and AckTrailers let a copied chunk, or the trailers, go on unchanged.
func AckBody() *Reply { return NewReply(appendMessage(nil, replyResponseBody, nil)) }

// AckTrailers lets the response's trailers go on unchanged.
func AckTrailers() *Reply { return NewReply(appendMessage(nil, replyResponseTrailers, nil)) }

// Ack lets a message of any kind go on unchanged.
func Ack(k Kind) *Reply {
	num := map[Kind]protowire.Number{
		KindRequestHeaders: replyRequestHeaders, KindResponseHeaders: replyResponseHeaders,
		KindRequestBody: replyRequestBody, KindResponseBody: replyResponseBody,
		KindRequestTrailers: replyRequestTrailers, KindResponseTrailers: replyResponseTrailers,
	}[k]
	if num == 0 {
		return NewReply()
	}
	return NewReply(appendMessage(nil, num, nil))
}

// ExtendTimeout is a message that carries only override_message_timeout: Envoy
// restarts the timer of the message it waits for, once per phase.
func ExtendTimeout(d time.Duration) *Reply {
	return NewReply(appendMessage(nil, replyMessageTimeout, func(b []byte) []byte {
		b = appendVarint(b, 1, uint64(max(0, d/time.Second)))
		return appendVarint(b, 2, uint64(max(0, d%time.Second)))
	}))
}

// common is a CommonResponse.
type common struct {
	replace  bool
	mutation Mutation
	body     []byte
	hasBody  bool
}

func appendHeadersReply(b []byte, num protowire.Number, c common) []byte {
	return appendMessage(b, num, func(b []byte) []byte {
		if !c.replace && len(c.mutation.Set) == 0 && len(c.mutation.Remove) == 0 {
			return b
		}
		return appendMessage(b, 1, func(b []byte) []byte {
			if c.replace {
				b = appendVarint(b, 1, 1)
			}
			b = appendMessage(b, 2, func(b []byte) []byte {
				for f := range joined(c.mutation.Set) {
					b = appendHeaderOption(b, f, overwrite)
				}
				for _, name := range c.mutation.Remove {
					b = appendString(b, 2, name)
				}
				return b
			})
			if c.hasBody {
				b = appendMessage(b, 3, func(b []byte) []byte { return appendBytes(b, 1, c.body) })
			}
			return b
		})
	})
}

// joined yields each field once, its lines joined (RFC 9110 §5.3), for where Envoy
// keeps only the last of a repeated name.
func joined(fields httpcache.Fields) iter.Seq[httpcache.Field] {
	return func(yield func(httpcache.Field) bool) {
		for i, f := range fields {
			if fields[:i].Has(f.Name) {
				continue
			}
			f.Value, _ = fields.Joined(f.Name)
			if !yield(f) {
				return
			}
		}
	}
}

// headerAction is how a HeaderValueOption treats a field that exists.
type headerAction uint8

const (
	plain     headerAction = iota // an ImmediateResponse ignores append_action
	overwrite                     // append_action OVERWRITE_IF_EXISTS_OR_ADD
	appendOld                     // the deprecated append: true, which an ImmediateResponse does honour
)

// appendHeaderOption appends a HeaderValueOption as field 1 (set_headers).
func appendHeaderOption(b []byte, f httpcache.Field, a headerAction) []byte {
	header := headerValueSize(f)
	size := protowire.SizeTag(1) + protowire.SizeBytes(header)
	switch a {
	case overwrite:
		size += 2
	case appendOld:
		size += 4
	case plain:
	}
	b = protowire.AppendTag(b, 1, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(size))
	b = protowire.AppendTag(b, 1, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(header))
	b = appendHeaderValue(b, f)
	switch a {
	case overwrite:
		b = appendVarint(b, 3, 2)
	case appendOld:
		b = append(b, 2<<3|2, 2, 1<<3, 1)
	case plain:
	}
	return b
}

// headerValueSize is the size of a HeaderValue with key and raw_value.
func headerValueSize(f httpcache.Field) int {
	return 2 + protowire.SizeBytes(len(f.Name)) + protowire.SizeBytes(len(f.Value))
}

func appendHeaderValue(b []byte, f httpcache.Field) []byte {
	b = appendString(b, 1, f.Name)
	return appendString(b, 3, f.Value)
}

func appendString(b []byte, num protowire.Number, s string) []byte {
	b = protowire.AppendTag(b, num, protowire.BytesType)
	return protowire.AppendString(b, s)
}

func appendBytes(b []byte, num protowire.Number, v []byte) []byte {
	b = protowire.AppendTag(b, num, protowire.BytesType)
	return protowire.AppendBytes(b, v)
}

func appendVarint(b []byte, num protowire.Number, v uint64) []byte {
	b = protowire.AppendTag(b, num, protowire.VarintType)
	return protowire.AppendVarint(b, v)
}

// appendMessage appends a length-delimited field whose content f appends; nil is
// an empty message.
func appendMessage(b []byte, num protowire.Number, f func([]byte) []byte) []byte {
	b = protowire.AppendTag(b, num, protowire.BytesType)
	if f == nil {
		return append(b, 0)
	}
	// One byte is kept for the length; a longer one moves the content.
	start := len(b) + 1
	b = f(append(b, 0))
	n := len(b) - start
	if need := protowire.SizeVarint(uint64(n)); need > 1 {
		b = append(b, make([]byte, need-1)...)
		copy(b[start+need-1:], b[start:start+n])
	}
	protowire.AppendVarint(b[:start-1], uint64(n))
	return b
}

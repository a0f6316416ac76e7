package wire

import (
	"errors"
	"fmt"
	"strconv"
	"unsafe"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weirproxy/weir/extproc/httpcache"
)

// Kind says which phase a message is about.
type Kind uint8

// The kinds of message that Envoy sends.
const (
	KindNone Kind = iota // a message of no known kind
	KindRequestHeaders
	KindResponseHeaders
	KindRequestBody
	KindResponseBody
	KindRequestTrailers
	KindResponseTrailers
)

// String names the kind as the protobuf field does.
func (k Kind) String() string {
	switch k {
	case KindRequestHeaders:
		return "request_headers"
	case KindResponseHeaders:
		return "response_headers"
	case KindRequestBody:
		return "request_body"
	case KindResponseBody:
		return "response_body"
	case KindRequestTrailers:
		return "request_trailers"
	case KindResponseTrailers:
		return "response_trailers"
	default:
		return "none"
	}
}

// BodyMode is ProcessingMode.BodySendMode.
type BodyMode uint8

// The body modes of the ext_proc filter.
const (
	BodyNone BodyMode = iota
	BodyStreamed
	BodyBuffered
	BodyBufferedPartial
	BodyFullDuplex
	BodyGRPC
)

// Config is what Envoy announces of the filter in a stream's first message.
type Config struct {
	RequestBody, ResponseBody BodyMode
	// BodyWithoutWaiting is send_body_without_waiting_for_header_response,
	// which disables mode_override.
	BodyWithoutWaiting bool
}

// Message is one ProcessingRequest. Its strings stay valid for good; Body only
// until the next call of Reset or Unmarshal.
type Message struct {
	Kind Kind
	// Header holds the fields of a headers or trailers message without the
	// pseudo-headers, which have fields of their own.
	Header                          httpcache.Fields
	Method, Scheme, Authority, Path string
	Status                          int
	EndOfStream                     bool
	Body                            []byte
	// RouteName and CodeDetails are the attributes xds.route_name and
	// response.code_details.
	RouteName, CodeDetails string
	// Observability is observability_mode: Envoy reads no reply.
	Observability bool
	// Config is set in the first message of a stream by Envoy 1.34 and later.
	Config    Config
	HasConfig bool

	buf  mem.Buffer
	room httpcache.Fields // see Back
}

// maxHeaderFields bounds what is kept of one message; Envoy's own default is 100.
const maxHeaderFields = 4096

// errMalformed reports bytes that are not a ProcessingRequest.
var errMalformed = errors.New("malformed ProcessingRequest")

// Reset clears m and frees what it holds of the transport's memory.
func (m *Message) Reset() {
	if m.buf != nil {
		m.buf.Free()
	}
	*m = Message{}
}

// Back gives the memory in which the next headers lie, if they fit; those after it get their own. Without it each
// message allocates.
func (m *Message) Back(room httpcache.Fields) { m.room = room[:0:len(room)] }

// Unmarshal parses one ProcessingRequest. It keeps data's memory until Reset
// if the message carries a body.
func (m *Message) Unmarshal(data mem.BufferSlice) error {
	room := m.room
	m.Reset()
	m.room = room
	buf := data.MaterializeToBuffer(mem.DefaultBufferPool())
	if err := m.parse(buf.ReadOnlyData()); err != nil {
		buf.Free()
		*m = Message{}
		return err
	}
	if m.Body != nil {
		m.buf = buf
		return nil
	}
	buf.Free()
	return nil
}

// parse reads the top level: the oneof and what stands beside it.
func (m *Message) parse(b []byte) error {
	err := eachField(b, func(num protowire.Number, v uint64, b []byte) error {
		if b == nil {
			if num == fieldObservability {
				m.Observability = v != 0
			}
			return nil
		}
		if err := m.parsePart(num, b); err != nil {
			return fmt.Errorf("field %d: %w", num, err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", errMalformed, err)
	}
	return nil
}

func (m *Message) parsePart(num protowire.Number, v []byte) error {
	if kind := kindOf(num); kind != KindNone {
		if m.Kind != KindNone { // a oneof: what two of them would mean is not worth knowing
			return fmt.Errorf("%s in a message of %s", kind, m.Kind)
		}
		m.Kind = kind
	}
	switch num {
	case fieldRequestHeaders, fieldResponseHeaders, fieldRequestTrailers, fieldResponseTrailers:
		return m.parseHeaders(string(v))
	case fieldRequestBody, fieldResponseBody:
		return m.parseBody(v)
	case fieldAttributes:
		return m.parseAttributes(v)
	case fieldProtocolConfig:
		return m.parseConfig(v)
	default:
		return nil
	}
}

func kindOf(num protowire.Number) Kind {
	switch num {
	case fieldRequestHeaders:
		return KindRequestHeaders
	case fieldResponseHeaders:
		return KindResponseHeaders
	case fieldRequestBody:
		return KindRequestBody
	case fieldResponseBody:
		return KindResponseBody
	case fieldRequestTrailers:
		return KindRequestTrailers
	case fieldResponseTrailers:
		return KindResponseTrailers
	default:
		return KindNone
	}
}

// parseHeaders reads HttpHeaders or HttpTrailers, which have no end_of_stream. s
// is a copy of the message's bytes that all names and values are parts of: one
// allocation for them all.
func (m *Message) parseHeaders(s string) error {
	return eachField(stringBytes(s), func(num protowire.Number, v uint64, b []byte) error {
		switch {
		case num == 1 && b != nil:
			return m.parseHeaderMap(b)
		case num == 3 && b == nil && (m.Kind == KindRequestHeaders || m.Kind == KindResponseHeaders):
			m.EndOfStream = v != 0
		}
		return nil
	})
}

func (m *Message) parseHeaderMap(b []byte) error {
	if m.Header == nil {
		m.Header, m.room = m.room, nil
	}
	if m.Header == nil {
		m.Header = make(httpcache.Fields, 0, 24)
	}
	return eachField(b, func(num protowire.Number, _ uint64, b []byte) error {
		if num != 1 || b == nil {
			return nil
		}
		var name, value, raw []byte
		err := eachField(b, func(num protowire.Number, _ uint64, b []byte) error {
			switch {
			case b == nil:
			case num == 1:
				name = b
			case num == 2:
				value = b
			case num == 3:
				raw = b
			}
			return nil
		})
		if err != nil {
			return err
		}
		if len(raw) > 0 { // Envoy fills exactly one of them
			value = raw
		}
		return m.addField(httpcache.Field{Name: bytesString(name), Value: bytesString(value)})
	})
}

func (m *Message) addField(f httpcache.Field) error {
	if f.Name == "" {
		return nil
	}
	if f.Name[0] != ':' {
		if len(m.Header) >= maxHeaderFields {
			return fmt.Errorf("more than %d header fields", maxHeaderFields)
		}
		m.Header = append(m.Header, f)
		return nil
	}
	switch f.Name {
	case ":method":
		m.Method = f.Value
	case ":scheme":
		m.Scheme = f.Value
	case ":authority":
		m.Authority = f.Value
	case ":path":
		m.Path = f.Value
	case ":status":
		n, err := strconv.Atoi(f.Value)
		if err != nil || n < 100 || n > 999 {
			return fmt.Errorf("status %q", f.Value)
		}
		m.Status = n
	}
	return nil
}

func (m *Message) parseBody(b []byte) error {
	m.Body = []byte{}
	var end, endWithoutMessage bool
	err := eachField(b, func(num protowire.Number, v uint64, b []byte) error {
		switch {
		case num == 1 && b != nil:
			m.Body = b
		case num == 2 && b == nil:
			end = v != 0
		case num == 3 && b == nil:
			endWithoutMessage = v != 0
		}
		return nil
	})
	m.EndOfStream = end || endWithoutMessage
	return err
}

func (m *Message) parseConfig(b []byte) error {
	m.HasConfig = true
	return eachField(b, func(num protowire.Number, v uint64, b []byte) error {
		if b != nil {
			return nil
		}
		switch num {
		case 1:
			m.Config.RequestBody = BodyMode(min(uint32(v), 255))
		case 2:
			m.Config.ResponseBody = BodyMode(min(uint32(v), 255))
		case 3:
			m.Config.BodyWithoutWaiting = v != 0
		}
		return nil
	})
}

// parseAttributes reads one entry of map<string, Struct>. All attributes come in
// one Struct under the filter's name, with dotted names as field names.
func (m *Message) parseAttributes(b []byte) error {
	return eachField(b, func(num protowire.Number, _ uint64, b []byte) error {
		if num != 2 || b == nil {
			return nil
		}
		return eachField(b, func(num protowire.Number, _ uint64, b []byte) error {
			if num != 1 || b == nil {
				return nil
			}
			return m.parseAttribute(b)
		})
	})
}

// parseAttribute reads one Struct field: key 1, Value 2 {string_value 3}.
func (m *Message) parseAttribute(b []byte) error {
	var name, value []byte
	err := eachField(b, func(num protowire.Number, _ uint64, b []byte) error {
		switch num {
		case 1:
			name = b
		case 2:
			return eachField(b, func(num protowire.Number, _ uint64, b []byte) error {
				if num == 3 {
					value = b
				}
				return nil
			})
		}
		return nil
	})
	switch string(name) {
	case "xds.route_name":
		m.RouteName = string(value)
	case "response.code_details":
		m.CodeDetails = string(value)
	}
	return err
}

// eachField calls f for every field of a message that is a varint (with nil
// bytes) or length-delimited (never nil). No field that is read here is of
// another type, so those are unknown ones.
func eachField(b []byte, f func(protowire.Number, uint64, []byte) error) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		if typ == protowire.BytesType {
			v, n := protowire.ConsumeBytes(b)
			if n < 0 {
				return protowire.ParseError(n)
			}
			if err := f(num, 0, v); err != nil {
				return err
			}
			b = b[n:]
			continue
		}
		if typ != protowire.VarintType {
			n := protowire.ConsumeFieldValue(num, typ, b)
			if n < 0 {
				return protowire.ParseError(n)
			}
			b = b[n:]
			continue
		}
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		if err := f(num, v, nil); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// stringBytes and bytesString view the same memory; the bytes are never written.
func stringBytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

func bytesString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

package wire_test

import (
	"maps"
	"slices"
	"testing"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/weirproxy/weir/extproc/wire"
)

// TestUnmarshalReadsWhatTheGeneratedTypeReads compares on protobuf of a shape
// that random bytes hardly ever have: fields of the right numbers, doubled, out
// of order, of another wire type than they should be.
func TestUnmarshalReadsWhatTheGeneratedTypeReads(t *testing.T) {
	t.Parallel()
	both := 0
	rapid.Check(t, func(t *rapid.T) {
		b := looseProtobuf(t, requestShape())
		m := new(wire.Message)
		defer m.Reset()
		var p extprocv3.ProcessingRequest
		if m.Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}) != nil || proto.Unmarshal(b, &p) != nil {
			return
		}
		both++
		if diff := cmp.Diff(expected(&p), summarize(m)); diff != "" {
			t.Fatalf("%x: message (-generated type +wire):\n%s", b, diff)
		}
	})
	if both == 0 {
		t.Error("no message was read by both")
	}
}

// shape says what the fields of a message hold: a message, or a scalar (nil).
type shape map[protowire.Number]shape

func requestShape() shape {
	text := shape{}
	headerMap := shape{1: {1: text, 2: text, 3: text}}
	headers, body, trailers := shape{1: headerMap, 3: nil}, shape{1: text, 2: nil, 3: nil}, shape{1: headerMap}
	return shape{
		2: headers, 3: headers, 4: body, 5: body, 6: trailers, 7: trailers, 10: nil, 11: {1: nil, 2: nil, 3: nil},
	}
}

// looseProtobuf draws a message of a shape: any number of each field in any
// order, now and then with another wire type, or a field that is not known.
func looseProtobuf(t *rapid.T, s shape) []byte {
	if len(s) == 0 {
		return []byte(rapid.SampledFrom([]string{
			"", ":method", ":path", ":status", ":authority", ":unknown", "200", "99", "x", "accept", "a\x00b", "\xff",
		}).Draw(t, "text"))
	}
	numbers := slices.Sorted(maps.Keys(s))
	var b []byte
	for range rapid.IntRange(1, 4).Draw(t, "fields") {
		num := rapid.SampledFrom(numbers).Draw(t, "number")
		typ := protowire.BytesType
		if s[num] == nil {
			typ = protowire.VarintType
		}
		if rapid.IntRange(0, 5).Draw(t, "odd") == 0 {
			num = protowire.Number(rapid.IntRange(1, 12).Draw(t, "any number"))
			typ = protowire.Type(rapid.SampledFrom([]int{0, 1, 2, 3, 5}).Draw(t, "any type"))
		}
		b = appendLoose(t, protowire.AppendTag(b, num, typ), num, typ, s[num])
	}
	return b
}

func appendLoose(t *rapid.T, b []byte, num protowire.Number, typ protowire.Type, s shape) []byte {
	switch typ {
	case protowire.VarintType:
		return protowire.AppendVarint(b, rapid.Uint64().Draw(t, "varint")>>rapid.IntRange(0, 63).Draw(t, "shift"))
	case protowire.Fixed32Type:
		return protowire.AppendFixed32(b, 1)
	case protowire.Fixed64Type:
		return protowire.AppendFixed64(b, 1)
	case protowire.StartGroupType:
		return protowire.AppendTag(b, num, protowire.EndGroupType)
	default:
		return protowire.AppendBytes(b, looseProtobuf(t, s))
	}
}

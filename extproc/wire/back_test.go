package wire_test

import (
	"testing"

	"google.golang.org/grpc/mem"

	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/wire"
)

// TestBackIsForOneMessage: the fields of the first message lie in what was given, and stay there when more come.
func TestBackIsForOneMessage(t *testing.T) {
	t.Parallel()
	data := mem.BufferSlice{mem.SliceBuffer(typicalRequest(t))}
	room := make(httpcache.Fields, 24)
	m := new(wire.Message)
	m.Back(room)
	for i := range 2 {
		if err := m.Unmarshal(data); err != nil {
			t.Fatal(err)
		}
		if inRoom := &m.Header[0] == &room[0]; inRoom != (i == 0) {
			t.Errorf("message %d: header in the room given: %v", i, inRoom)
		}
		room[1].Value = "of the first"
	}
	if m.Header[1].Value == "of the first" {
		t.Error("the second message shares memory with the first")
	}
}

// TestBackThatIsTooSmall: headers that do not fit are as whole as others.
func TestBackThatIsTooSmall(t *testing.T) {
	t.Parallel()
	data := mem.BufferSlice{mem.SliceBuffer(typicalRequest(t))}
	want, got := new(wire.Message), new(wire.Message)
	got.Back(make(httpcache.Fields, 2))
	for _, m := range []*wire.Message{want, got} {
		if err := m.Unmarshal(data); err != nil {
			t.Fatal(err)
		}
	}
	if len(got.Header) != len(want.Header) || got.Header.Get("x-request-id") != want.Header.Get("x-request-id") {
		t.Errorf("header %v, want %v", got.Header, want.Header)
	}
}

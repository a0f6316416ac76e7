package extproc

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	"github.com/weirproxy/weir/extproc/flight"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/wire"
)

// FuzzMachine feeds the machine arbitrary bytes as what Envoy sends. It never
// panics, and every stream keeps the rules of rules_test.go.
//
// The input is a list of messages: a byte that says what the world answers when
// the machine asks it, the length, and the message's protobuf.
func FuzzMachine(f *testing.F) {
	for _, seed := range machineSeeds(f) {
		f.Add(seed)
	}
	policies := drawnPolicies(f)
	f.Fuzz(func(t *testing.T, input []byte) {
		w := newFuzzWorld(t, policies, input)
		w.play(input)
		for _, breach := range w.c.rules.breaches {
			t.Error(breach)
		}
	})
}

// fuzzWorld is a world that one byte at a time decides.
type fuzzWorld struct {
	c       *conversation
	binding *cachepolicy.Binding
	begun   bool
}

func newFuzzWorld(t *testing.T, policies []*v1alpha1.CachePolicySpec, input []byte) *fuzzWorld {
	t.Helper()
	choice := 0
	if len(input) > 0 {
		choice = int(input[0])
	}
	p, err := cachepolicy.Compile("shop", "catalog", policies[choice%len(policies)])
	if err != nil {
		t.Fatal(err)
	}
	seen := newSight(choice >> 3 & 7)
	return &fuzzWorld{
		binding: &cachepolicy.Binding{Policy: p},
		c: newConversation(&facts{
			messageTimeout: time.Second, maxMessageTimeout: time.Minute,
			refill: func(*cachepolicy.Binding, *httpcache.Request) bool { return choice&64 != 0 }, draw: func() float64 { return 0.5 },
			position: func() uint64 { return 0 }, sight: func(*cachepolicy.Policy) *sight { return seen },
		}, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
	}
}

// play gives the machine one message after the other, as the gRPC loop does.
func (w *fuzzWorld) play(input []byte) {
	const most = 64 // a dialogue that is longer shows nothing new
	for n := 0; len(input) > 0 && n < most && !w.over(); n++ {
		choice := int(input[0])
		size, used := binary.Uvarint(input[1:])
		if used <= 0 {
			break
		}
		input = input[1+used:]
		payload := input[:min(size, uint64(len(input)))]
		input = input[len(payload):]
		var msg wire.Message
		if msg.Unmarshal(mem.BufferSlice{mem.SliceBuffer(payload)}) != nil {
			break
		}
		w.say(&msg, choice)
		msg.Reset()
		for range 8 { // what it asks, and asks because of the answer
			if !w.answer(choice) {
				break
			}
			choice = choice*5 + 1
		}
	}
	if !w.over() {
		w.c.end(len(input) == 0)
	}
}

func (w *fuzzWorld) over() bool { return w.begun && w.c.over() }

func (w *fuzzWorld) say(msg *wire.Message, choice int) {
	if !w.begun {
		w.begun = true
		w.c.begin(w.binding, msg, choice == 255 && msg.Kind == wire.KindRequestHeaders)
		return
	}
	w.c.message(msg)
}

// answer answers what the machine asked last, or ends a wait; false if it waits
// for Envoy.
func (w *fuzzWorld) answer(choice int) bool {
	if len(w.c.done) == 0 || w.c.over() {
		return false
	}
	switch w.c.done[len(w.c.done)-1].op {
	case opLookup:
		w.c.found(w.found(choice))
	case opJoin, opJoinRefill:
		w.c.joined(flight.Role(choice & 3))
	case opTryLead:
		w.c.triedLead(choice&1 == 0)
	case opAdmit:
		w.c.admitted([]turn{turnNow, turnQueued, turnFull}[choice%3])
	default:
		switch {
		case w.c.m.state == stateHold && choice&8 == 0:
			w.c.news(flight.NewsKind(choice%5), w.entry(choice))
		case w.c.m.waits() && choice&1 == 0:
			w.c.timeUp()
		default:
			return false
		}
	}
	return true
}

func (w *fuzzWorld) found(choice int) found {
	f := found{soft: choice&32 != 0, failing: choice&64 != 0, beta: float64(choice & 1)}
	if choice&2 != 0 {
		f.Entry = w.entry(choice)
		f.Vary, f.Known = f.Entry.Vary, true
	}
	return f
}

func (w *fuzzWorld) entry(choice int) *store.Entry {
	e := &store.Entry{
		Status: 200, ResponseTime: w.c.now, InitialAge: time.Duration(choice%4) * 40 * time.Second,
		Lifetime: time.Minute, WhileRevalidate: 30 * time.Second, IfError: time.Minute, Body: store.NewBody(-1),
		Header: httpcache.Fields{
			{Name: "content-type", Value: "text/plain"}, {Name: "etag", Value: `"v1"`},
			{Name: "last-modified", Value: "Thu, 01 Jan 2026 00:00:00 GMT"}, {Name: "vary", Value: "accept-encoding"},
		},
	}
	e.Vary = httpcache.ParseVary(e.Header)
	_ = e.Body.Append([]byte("hello")) // an open body takes it
	e.Body.End()
	return prepare(e)
}

// machineSeeds are dialogues to start from.
func machineSeeds(f *testing.F) [][]byte {
	f.Helper()
	field := func(name, value string) *corev3.HeaderValue {
		return &corev3.HeaderValue{Key: name, RawValue: []byte(value)}
	}
	request := func(path string, more ...*corev3.HeaderValue) *extprocv3.ProcessingRequest {
		fields := append([]*corev3.HeaderValue{
			field(":method", "GET"), field(":scheme", "https"), field(":authority", "shop.test"), field(":path", path),
		}, more...)
		return &extprocv3.ProcessingRequest{
			ProtocolConfig: &extprocv3.ProtocolConfiguration{},
			Request: &extprocv3.ProcessingRequest_RequestHeaders{RequestHeaders: &extprocv3.HttpHeaders{
				Headers: &corev3.HeaderMap{Headers: fields}, EndOfStream: true}},
		}
	}
	response := func(more ...*corev3.HeaderValue) *extprocv3.ProcessingRequest {
		fields := append([]*corev3.HeaderValue{
			field(":status", "200"), field("cache-control", "max-age=60"), field("content-type", "text/plain"),
		}, more...)
		return &extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_ResponseHeaders{
			ResponseHeaders: &extprocv3.HttpHeaders{Headers: &corev3.HeaderMap{Headers: fields}}}}
	}
	body := &extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_ResponseBody{
		ResponseBody: &extprocv3.HttpBody{Body: []byte("hello"), EndOfStream: true}}}
	var many []*corev3.HeaderValue
	for range 1000 {
		many = append(many, field("x-many", strings.Repeat("v", 90)))
	}
	seed := func(choice byte, messages ...*extprocv3.ProcessingRequest) []byte {
		var out []byte
		for _, m := range messages {
			b, err := proto.Marshal(m)
			if err != nil {
				f.Fatal(err)
			}
			out = append(binary.AppendUvarint(append(out, choice), uint64(len(b))), b...)
		}
		return out
	}
	malformed := seed(0, request("/page"))
	return [][]byte{
		seed(0, request("/page"), response(), body),
		seed(2, request("/page", field("if-none-match", `"v1"`), field("range", "bytes=0-1"))),
		seed(3, request("/page"), response()),
		seed(8, request("/page", field("authorization", "Bearer a")), response(field("cache-control", "public")), body),
		seed(0, body), // a stream that starts with a body
		seed(0, request("/"+strings.Repeat("p", 60_000)), response(), body),
		seed(0, request("/page", many...), response(many...), body), // 100 kB of fields
		seed(0, request("/page", field("x-text", "\xff\xfe")), response(field("x-text", "\xff\xfe")), body),
		seed(0, request("/page"), response(field("x-odd", "a\x00\r\nb\x7f"), field("cache-status", "a\x01")), body),
		seed(0, request("/\x00\xff"), response(field("etag", "\"\n\"")), body),
		append(malformed[:len(malformed)-3], 0xff, 0xff, 0xff),
		{0, 3, 0xff, 0xff, 0xff},
		{},
	}
}

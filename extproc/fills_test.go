package extproc

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/fleet"
	"github.com/weirproxy/weir/extproc/flight"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/metrics"
	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/store/memory"
	"github.com/weirproxy/weir/extproc/wire"
)

// fetch is a conversation that got as far as its request going on to the origin, with what else was to be done on the
// way.
type fetch struct {
	*conversation
	t *testing.T
}

func newFetch(t *testing.T, spec, method string, stored *store.Entry, joined flight.Role) *fetch {
	t.Helper()
	seen := newSight(0)
	f := &facts{
		messageTimeout: time.Minute, maxMessageTimeout: time.Minute, refill: func(*cachepolicy.Binding, *httpcache.Request) bool { return false },
		draw: func() float64 { return 1 }, position: func() uint64 { return 0 },
		sight: func(*cachepolicy.Policy) *sight { return seen },
	}
	c := &fetch{newConversation(f, time.Unix(1_700_000_000, 0)), t}
	c.turns = true
	c.begin(explained(t, spec), &wire.Message{
		Kind: wire.KindRequestHeaders, EndOfStream: true, Method: method, Scheme: "http", Authority: "a", Path: "/",
	}, false)
	if c.m.state == stateLookup {
		found := found{}
		found.Entry = stored
		c.found(found)
	}
	if c.m.state == stateJoin {
		c.joined(joined)
	}
	if c.m.state != stateOrigin {
		t.Fatalf("state %d, want the request at the origin", c.m.state)
	}
	return c
}

// fills are the results counted, by the machine, for fetches of which no body was copied.
func (c *fetch) fills() []string {
	var out []string
	for i := range c.done {
		if e := &c.done[i]; e.op == opFill {
			out = append(out, e.fill.String())
		}
	}
	return out
}

func (c *fetch) answer(status int, details string, end bool, fields ...string) {
	c.message(&wire.Message{Kind: wire.KindResponseHeaders, Status: status, CodeDetails: details, EndOfStream: end,
		Header: fieldsOf(fields...)})
}

// TestFetchesAreCounted: each fetch that may be stored is counted once; by the machine where no body is copied.
func TestFetchesAreCounted(t *testing.T) {
	t.Parallel()
	const up = "via_upstream"
	kept := func(validator ...string) *store.Entry {
		body := store.NewBody(0)
		body.End()
		return &store.Entry{Status: 200, Header: fieldsOf(validator...), Body: body, Policy: "shop/catalog",
			ResponseTime: time.Unix(1_699_999_900, 0), Lifetime: time.Minute, IfError: time.Hour}
	}
	const standIn = "stale: {ifError: 1h}"
	tests := []struct {
		name, spec, method string
		stored             *store.Entry
		role               flight.Role
		then               func(*fetch)
		want               []string
	}{
		{"private", "", "GET", nil, flight.RoleLead,
			func(c *fetch) { c.answer(200, up, false, "cache-control", "private") }, []string{"uncacheable"}},
		{"private, alone", "", "GET", nil, flight.RoleSolo,
			func(c *fetch) { c.answer(200, up, false, "cache-control", "private") }, []string{"uncacheable"}},
		{"the origin fails", "", "GET", nil, flight.RoleLead,
			func(c *fetch) { c.answer(503, up, false) }, []string{"failed"}},
		{"stale for a failure", standIn, "GET", kept("etag", `"a"`), flight.RoleLead,
			func(c *fetch) { c.answer(503, up, false) }, []string{"failed"}},
		{"no origin", "", "GET", nil, flight.RoleLead,
			func(c *fetch) { c.answer(503, "no_healthy_upstream", false) }, []string{"failed"}},
		{"refused by a filter", "", "GET", nil, flight.RoleLead,
			func(c *fetch) { c.answer(401, "jwt_authn_access_denied", false) }, []string{"failed"}},
		{"not modified", standIn, "GET", kept("etag", `"a"`), flight.RoleLead, func(c *fetch) {
			c.answer(304, up, true, "etag", `"a"`, "cache-control", "max-age=9")
		}, []string{"not_modified"}},
		{"not modified, and private now", standIn, "GET", kept("etag", `"a"`), flight.RoleLead, func(c *fetch) {
			c.answer(304, up, true, "etag", `"a"`, "cache-control", "private")
		}, []string{"uncacheable"}},
		{"a foreign 304", standIn, "GET", kept("last-modified", "Mon, 01 Jan 2024 00:00:00 GMT"), flight.RoleLead,
			func(c *fetch) { c.answer(304, up, true, "etag", `"b"`) }, []string{"failed"}},
		{"stored by another", "", "GET", nil, flight.RoleSolo, func(c *fetch) {
			c.answer(200, up, false, "cache-control", "max-age=9")
			c.triedLead(false)
		}, []string{"redundant"}},
		{"the client leaves", "", "GET", nil, flight.RoleLead, func(c *fetch) { c.end(false) }, []string{"incomplete"}},
		{"nonsense from Envoy", "", "GET", nil, flight.RoleLead,
			func(c *fetch) { c.message(&wire.Message{Kind: wire.KindResponseBody}) }, []string{"failed"}},
		{"a copy begins", "", "GET", nil, flight.RoleLead,
			func(c *fetch) { c.answer(200, up, false, "cache-control", "max-age=9") }, nil},
		{"a copy ends", "", "GET", nil, flight.RoleLead, func(c *fetch) {
			c.answer(200, up, false, "cache-control", "max-age=9")
			c.end(false)
		}, nil},
		{"HEAD is not stored", "", "HEAD", nil, flight.RoleLead,
			func(c *fetch) { c.answer(200, up, true, "cache-control", "max-age=9") }, nil},
		{"POST is not stored", "", "POST", nil, flight.RoleLead, func(c *fetch) { c.answer(200, up, true) }, nil},
	}
	for _, tt := range tests {
		c := newFetch(t, tt.spec, tt.method, tt.stored, tt.role)
		tt.then(c)
		if diff := cmp.Diff(tt.want, c.fills()); diff != "" {
			t.Errorf("%s: counted (-want +got):\n%s", tt.name, diff)
		}
		if len(c.rules.breaches) > 0 {
			t.Errorf("%s: %q", tt.name, c.rules.breaches)
		}
	}
}

// brokenStream is a stream whose client may leave when weir speaks.
type brokenStream struct {
	grpc.ServerStream
	ctx   context.Context
	says  []wire.Message // what Envoy says, one after the other
	fails int            // this SendMsg, from 1; 0: none
	sent  int
}

var errBroken = errors.New("the client left")

func (s *brokenStream) Context() context.Context { return s.ctx }

func (s *brokenStream) RecvMsg(m any) error {
	if len(s.says) == 0 {
		return io.EOF
	}
	*m.(*wire.Message) = s.says[0]
	s.says = s.says[1:]
	return nil
}

func (s *brokenStream) SendMsg(any) error {
	if s.sent++; s.sent == s.fails {
		return errBroken
	}
	return nil
}

// TestStreamsAreCounted: whatever comes of a stream, its request and its fetch are counted once, and nothing is left
// behind; also if the client leaves while weir speaks.
func TestStreamsAreCounted(t *testing.T) {
	t.Parallel()
	get := aGet()
	answer := func(cacheControl string) wire.Message {
		return wire.Message{Kind: wire.KindResponseHeaders, Status: 200, CodeDetails: "via_upstream",
			Header: fieldsOf("cache-control", cacheControl)}
	}
	body := wire.Message{Kind: wire.KindResponseBody, Body: []byte("x")}
	last := wire.Message{Kind: wire.KindResponseBody, Body: []byte("x"), EndOfStream: true}
	large := wire.Message{Kind: wire.KindResponseBody, Body: []byte("more than ten"), EndOfStream: true}
	tests := []struct {
		name         string
		says         []wire.Message
		fails        int
		want, filled string
	}{
		{"before the origin", []wire.Message{get}, 1, "canceled", "incomplete"},
		{"at the answer", []wire.Message{get, answer("private")}, 2, "miss_uncacheable", "uncacheable"},
		{"when the copy begins", []wire.Message{get, answer("max-age=9")}, 2, "miss", "incomplete"},
		{"in the copy", []wire.Message{get, answer("max-age=9"), body}, 3, "miss", "incomplete"},
		{"at the last chunk", []wire.Message{get, answer("max-age=9"), body, last}, 4, "miss", "stored"},
		{"whole", []wire.Message{get, answer("max-age=9"), body, last}, 0, "miss", "stored"},
		{"cut off", []wire.Message{get, answer("max-age=9"), body}, 0, "miss", "incomplete"},
		{"nonsense in the copy", []wire.Message{get, answer("max-age=9"), body, get}, 0, "miss", "incomplete"},
		{"too large", []wire.Message{get, answer("max-age=9"), large, last}, 0, "miss", "too_large"},
		{"too large at the end", []wire.Message{get, answer("max-age=9"), body, large}, 0, "miss", "too_large"},
	}
	for _, tt := range tests {
		s, registry := newService(t, memory.New(memory.Options{Limit: 1 << 20}))
		err := s.process(&brokenStream{ctx: t.Context(), says: tt.says, fails: tt.fails})
		if errors.Is(err, errBroken) != (tt.fails > 0) {
			t.Errorf("%s: error %v", tt.name, err)
		}
		got := counted(t, registry)
		if diff := cmp.Diff(map[string]int{tt.want: 1, "fill " + tt.filled: 1}, got); diff != "" {
			t.Errorf("%s: counted (-want +got):\n%s", tt.name, diff)
		}
		if stats := s.Stats(); stats.Flights != 0 || stats.Waiters != 0 {
			t.Errorf("%s: left behind %+v", tt.name, stats)
		}
		s.Close()
	}
}

// silentStream is a stream on which Envoy says no more after a while, as it does if it waits for its client, or if a
// filter's trailers hid the end of the body.
type silentStream struct{ brokenStream }

func (s *silentStream) RecvMsg(m any) error {
	if len(s.says) == 0 {
		<-s.ctx.Done()
		return s.ctx.Err()
	}
	return s.brokenStream.RecvMsg(m)
}

// TestSilenceOfACopiedResponse: weir leaves a response whose end may never come, but waits for one of which something is
// known to be missing.
func TestSilenceOfACopiedResponse(t *testing.T) {
	t.Parallel()
	const patience = time.Hour
	for _, tt := range []struct {
		length string
		want   time.Duration
	}{{"", silentAfter}, {"10", patience}} {
		synctest.Test(t, func(t *testing.T) {
			header := fieldsOf("cache-control", "max-age=9")
			if tt.length != "" {
				header = append(header, fieldsOf("content-length", tt.length)...)
			}
			s, registry := newService(t, memory.New(memory.Options{Limit: 1 << 20}))
			defer s.Close()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			start := time.Now()
			err := s.process(&silentStream{brokenStream{ctx: ctx, says: []wire.Message{
				aGet(), {Kind: wire.KindResponseHeaders, Status: 200, CodeDetails: "via_upstream", Header: header},
				{Kind: wire.KindResponseBody, Body: []byte("x")},
			}}})
			if took := time.Since(start); took != tt.want || err != nil {
				t.Errorf("length %q: weir left after %v with error %v, want %v", tt.length, took, err, tt.want)
			}
			cancel() // as gRPC does when the handler has returned
			if diff := cmp.Diff(map[string]int{"miss": 1, "fill incomplete": 1}, counted(t, registry)); diff != "" {
				t.Errorf("length %q: counted (-want +got):\n%s", tt.length, diff)
			}
		})
	}
}

// TestPanicIsCounted: a request that weir fails is counted too.
func TestPanicIsCounted(t *testing.T) {
	t.Parallel()
	s, registry := newService(t, panics{})
	defer s.Close()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		_ = s.process(&brokenStream{ctx: t.Context(), says: []wire.Message{aGet()}})
	}()
	if diff := cmp.Diff(map[string]int{"error": 1}, counted(t, registry)); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
}

// panics is a store with a bug.
type panics struct{ store.Store }

func aGet() wire.Message {
	return wire.Message{Kind: wire.KindRequestHeaders, EndOfStream: true, Method: "GET", Scheme: "http", Authority: "a",
		Path: "/", RouteName: "r"}
}

// newService makes a service with one policy, which stores no more than ten bytes.
func newService(t *testing.T, entries store.Store) (*Service, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	set, err := cachepolicy.NewSet(*explained(t, `storage: {maxObjectSize: "10"}`))
	if err != nil {
		t.Fatal(err)
	}
	return New(Options{
		Policies: func() *cachepolicy.Set { return set }, Store: entries, Stamps: fleet.NewStamps(0),
		Metrics: metrics.New(registry, metrics.Build{}), Logger: slog.New(slog.DiscardHandler), MessageTimeout: time.Second,
	}), registry
}

// counted are the requests by outcome, and the fills by result.
func counted(t *testing.T, registry prometheus.Gatherer) map[string]int {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]int)
	for _, f := range families {
		prefix, ok := map[string]string{"weir_requests_total": "", "weir_fills_total": "fill "}[f.GetName()]
		for _, m := range f.GetMetric() {
			if n := int(m.GetCounter().GetValue()); ok && n > 0 {
				out[prefix+m.GetLabel()[0].GetValue()] = n
			}
		}
	}
	return out
}

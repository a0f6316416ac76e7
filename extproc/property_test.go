package extproc

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/metrics"
	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/wire"
)

// TestEveryStreamKeepsTheRules lets chance say what happens on a stream: any
// policy, request, stored answer, word of the flight and message of Envoy, in any
// order that can occur and some that cannot. The rules of rules_test.go hold.
func TestEveryStreamKeepsTheRules(t *testing.T) {
	t.Parallel()
	policies := drawnPolicies(t)
	outcomes := map[metrics.Outcome]bool{}
	rapid.Check(t, func(t *rapid.T) {
		for range streamsPerCheck {
			w := &chanceWorld{t: t, policies: policies, outcomes: outcomes}
			if c := w.play(); len(c.rules.breaches) > 0 {
				t.Fatalf("%s\n\nBREACHES:\n%s", strings.Join(w.log, "\n"), strings.Join(c.rules.breaches, "\n"))
			}
		}
	})
	if len(outcomes) < 18 {
		t.Errorf("only these outcomes came about: %v", outcomes)
	}
}

// streamsPerCheck makes the default of 100 checks a few thousand streams.
const streamsPerCheck = 20

// drawnPolicies are policies that differ in one thing each.
func drawnPolicies(tb testing.TB) []*v1alpha1.CachePolicySpec {
	tb.Helper()
	var out []*v1alpha1.CachePolicySpec
	for _, text := range []string{
		``, ``, ``, ``, `mode: Shadow`, `requestDirectives: Honor`, `ttl: {default: 30s}`, `coalescing: {scope: "Off"}`,
		`negativeTTL: [{status: 5xx, ttl: 1s}, {status: "404", ttl: 5s}, {status: Unreachable, ttl: 2s}]`,
		`coalescing: {onTimeout: Stale, maxWait: 20s}`, `coalescing: {onTimeout: Unavailable}`,
		`stale: {whileRevalidate: 0s, ifError: 0s, softTimeout: 0s}`, `stale: {softTimeout: 0s}`,
		`storage: {maxObjectSize: "10"}`, `storage: {setCookie: Strip, requestCookies: Ignore}`,
		`originLimits: {onOverflow: Unavailable}`, `mode: Disabled`,
	} {
		spec := new(v1alpha1.CachePolicySpec)
		if err := yaml.UnmarshalStrict([]byte(text), spec); err != nil {
			tb.Fatal(err)
		}
		out = append(out, spec)
	}
	return out
}

// chanceWorld draws what happens.
type chanceWorld struct {
	t        *rapid.T
	policies []*v1alpha1.CachePolicySpec
	outcomes map[metrics.Outcome]bool // those that came about, in all streams
	c        *conversation
	log      []string
}

// What fields are drawn from: the usual ones, and now and then an odd one.
var (
	requestFields = []string{
		`if-none-match: "v1"`, `if-none-match: "v2"`, `if-modified-since: Thu, 01 Jan 2026 00:00:00 GMT`, `range: bytes=0-1`,
		`authorization: Bearer a`, `cookie: sid=1`, `cache-control: no-cache`, `cache-control: only-if-cached`,
		`cache-control: max-stale=60`, `cache-control: max-age=5`, `accept-encoding: gzip`,
	}
	oddRequestFields = []string{
		`range: bytes=0-1, 3-4`, `range: bytes=99-`, `if-range: "v1"`, `cache-control: no-store`, `pragma: no-cache`,
		`upgrade: websocket`, `x-weir-refill: x`, `content-length: 5`, `x-http-method-override: DELETE`, `if-match: "v1"`,
	}
	responseFields = []string{
		`content-type: text/plain`, `content-length: 5`, `cache-control: max-age=60`, `cache-control: max-age=60`,
		`cache-control: max-age=0`, `cache-control: no-cache`, `cache-control: no-store`, `cache-control: public, max-age=60`,
		`cache-control: max-age=1, must-revalidate`, `etag: "v1"`, `etag: "v1"`, `etag: "v2"`,
		`last-modified: Thu, 01 Jan 2026 00:00:00 GMT`, `last-modified: Fri, 02 Jan 2026 00:00:00 GMT`,
		`vary: accept-encoding`,
	}
	oddResponseFields = []string{
		`content-type: text/event-stream`, `content-length: 0`, `content-length: x`, `cache-control: private`,
		`cache-control: s-maxage=60`, `etag: W/"v1"`, `vary: *`, `set-cookie: sid=1`, `age: 30`, `cache-status: inner; hit`,
		`cache-status: ((`, `link: </a>`, `link: </b>`, "x-odd: a\x01b", "x-nul: a\x00", "x odd: 1", "x-latin: \xe9",
		`connection: x-hop`, `x-hop: 1`, `location: /elsewhere`, `content-range: bytes 0-1/5`,
	}
	storedFields = []string{
		`content-type: text/plain`, `etag: "v1"`, `last-modified: Thu, 01 Jan 2026 00:00:00 GMT`, `cache-control: public`,
		`cache-control: max-age=60`,
	}
	oddStoredFields = []string{
		`cache-control: must-revalidate`, `vary: accept-encoding`, `link: </a>`, `link: </b>`, `cache-status: inner; hit`,
		`date: Thu, 01 Jan 2026 00:00:00 GMT`,
	}
)

func (w *chanceWorld) fields(label string, usual, odd []string) httpcache.Fields {
	var out httpcache.Fields
	for range w.uniform(label, 6) {
		from := usual
		if w.chance("odd field", 15) {
			from = odd
		}
		name, value, _ := strings.Cut(choose(w, label, from...), ": ")
		out = append(out, httpcache.Field{Name: name, Value: value})
	}
	return out
}

// uniform draws a number below n, about evenly: rapid's own ranges prefer small
// numbers. What it shrinks to is still 0.
func (w *chanceWorld) uniform(label string, n int) int {
	drawn := uint32(rapid.Uint16().Draw(w.t, label)) * 40503 & 0xffff // Knuth's multiplier
	return int(drawn * uint32(n) >> 16)
}

func (w *chanceWorld) chance(label string, percent int) bool {
	return w.uniform(label, 100) >= 100-percent
}

func choose[T any](w *chanceWorld, label string, from ...T) T {
	return from[w.uniform(label, len(from))]
}

// play runs one stream to its end.
func (w *chanceWorld) play() *conversation {
	draw := rapid.Float64Range(1e-9, 1)
	refill := w.chance("refill", 50)
	seen := newSight(choose(w, "responses that were not shown", 0, 1, maxMissed))
	f := &facts{
		messageTimeout:    choose(w, "message timeout", 200*time.Millisecond, time.Second, 10*time.Second),
		maxMessageTimeout: choose(w, "max message timeout", 0, time.Second, time.Minute),
		refill:            func(*cachepolicy.Binding, *httpcache.Request) bool { return refill },
		draw:              func() float64 { return draw.Draw(w.t, "draw") },
		position:          func() uint64 { return 0 },
		sight:             func(*cachepolicy.Policy) *sight { return seen },
	}
	w.c = newConversation(f, time.Date(2026, 1, 1, 0, 10, 0, 0, time.UTC))
	w.c.turns = w.chance("turns are granted", 70)
	if w.chance("odd start", 5) {
		w.c.begin(w.binding(), w.odd(), false)
	} else {
		w.c.begin(w.binding(), w.request(), w.chance("own refill", 3))
	}
	w.note("begin")
	for range 40 {
		if w.c.over() {
			return w.c
		}
		w.c.now = w.c.now.Add(choose(w, "time passes", 0, 0, 50*time.Millisecond, time.Second, 5*time.Second))
		w.step()
	}
	w.c.end(w.chance("reset", 50))
	w.note("end")
	return w.c
}

// note keeps what the last event led to, for the report of a breach.
func (w *chanceWorld) note(event string, args ...any) {
	for i := range w.c.done {
		if w.c.done[i].op == opOutcome {
			w.outcomes[w.c.done[i].outcome] = true
		}
	}
	if len(w.log) < 100 {
		w.log = append(w.log, "> "+fmt.Sprintf(event, args...), strings.TrimSpace(w.c.describe()))
	}
}

func (w *chanceWorld) binding() *cachepolicy.Binding {
	if w.chance("no policy", 3) {
		return nil
	}
	spec := cachepolicy.Merge(choose(w, "policy", w.policies...), choose(w, "policy", w.policies...))
	p, err := cachepolicy.Compile("shop", "catalog", spec)
	if err != nil {
		w.t.Fatal(err)
	}
	return &cachepolicy.Binding{Policy: p, Scope: "shop/route/products"}
}

func (w *chanceWorld) request() *wire.Message {
	mode := func(label string) wire.BodyMode {
		if w.chance(label+" is not NONE", 20) {
			return wire.BodyMode(rapid.IntRange(0, 6).Draw(w.t, label))
		}
		return wire.BodyNone
	}
	return &wire.Message{
		Kind: wire.KindRequestHeaders, Scheme: "https", Authority: "shop.test", Path: "/page",
		Method:      choose(w, "method", "GET", "GET", "GET", "GET", "GET", "HEAD", "POST", "OPTIONS", "QUERY"),
		Header:      w.fields("request fields", requestFields, oddRequestFields),
		EndOfStream: !w.chance("a body follows", 5), HasConfig: w.chance("announced", 90),
		Observability: w.chance("observability", 2),
		Config: wire.Config{
			RequestBody: mode("request body mode"), ResponseBody: mode("response body mode"),
			BodyWithoutWaiting: w.chance("without waiting", 2),
		},
	}
}

// odd is a message that has no place anywhere, or not here.
func (w *chanceWorld) odd() *wire.Message {
	return &wire.Message{
		Kind: wire.Kind(rapid.IntRange(0, 6).Draw(w.t, "kind")), Method: "GET", Status: 200,
		EndOfStream: w.chance("ends", 50), Body: []byte("odd"),
		Header: w.fields("odd fields", responseFields, oddResponseFields),
	}
}

func (w *chanceWorld) response() *wire.Message {
	return &wire.Message{
		Kind:   wire.KindResponseHeaders,
		Status: choose(w, "status", 200, 200, 200, 304, 304, 404, 503, 500, 206, 401, 204, 301, 101, 999),
		Header: w.fields("response fields", responseFields, oddResponseFields), EndOfStream: w.chance("ends", 40),
		CodeDetails: choose(w, "details", "via_upstream", "via_upstream", "", "no_healthy_upstream", "ext_authz_denied"),
	}
}

// entry is an answer as the store or a flight may have it.
func (w *chanceWorld) entry(whole bool) *store.Entry {
	header := w.fields("stored fields", storedFields, oddStoredFields)
	seconds := func(label string, values ...int) time.Duration {
		return time.Duration(choose(w, label, values...)) * time.Second
	}
	e := &store.Entry{
		Status: choose(w, "stored status", 200, 200, 200, 404, 301, 204, 503), Header: header,
		Vary: httpcache.ParseVary(header), ResponseTime: w.c.now, Policy: "shop/catalog",
		InitialAge: seconds("age", 0, 30, 61, 90, 300), Lifetime: seconds("lifetime", 0, 60),
		WhileRevalidate: seconds("swr", 0, 30), IfError: seconds("sie", 0, 120),
		Cost: seconds("cost", 0, 1), ValidateAlways: w.chance("always validate", 10), Body: store.NewBody(-1),
	}
	e.Negative = e.Status >= 400
	if w.chance("has a body", 80) {
		_ = e.Body.Append([]byte("hello")) // an open body takes it
	}
	switch {
	case whole || w.chance("whole", 40):
		e.Body.End()
		return prepare(e)
	case w.chance("broken", 20):
		e.Body.Break(errors.New("cut off"))
	}
	return e
}

package extproc

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"sigs.k8s.io/yaml"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/wire"
)

// TestScenarios replays the dialogues in testdata/*.txt, which testdata/README.md
// explains. To record them anew: go test ./extproc -run TestScenarios -rewrite.
func TestScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			s := newScenario()
			datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
				out, err := s.run(d)
				if err != nil {
					d.Fatalf(t, "%v", err)
				}
				if strings.Contains(out, "BREACH") {
					t.Errorf("%s: a rule that every stream keeps is broken:\n%s", d.Pos, out)
				}
				return out
			})
		})
	}
}

// scenario is the world of one file: a clock, a policy, what the store may be
// said to have, and the stream that is open.
type scenario struct {
	facts   facts
	sight   *sight
	binding *cachepolicy.Binding
	now     time.Time
	draw    float64
	refill  bool
	turns   bool // there is always room at the origin
	entries map[string]*store.Entry
	stream  *conversation
}

func newScenario() *scenario {
	s := &scenario{
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), draw: 1, turns: true,
		entries: map[string]*store.Entry{},
	}
	s.sight = newSight(0)
	s.facts = facts{
		messageTimeout: time.Second, maxMessageTimeout: time.Minute,
		draw: func() float64 { return s.draw }, position: func() uint64 { return 0 },
		refill: func(*cachepolicy.Binding, *httpcache.Request) bool { return s.refill },
		sight:  func(*cachepolicy.Policy) *sight { return s.sight },
	}
	_ = s.bind(&v1alpha1.CachePolicySpec{}) // the defaults are valid
	return s
}

func (s *scenario) bind(spec *v1alpha1.CachePolicySpec) error {
	p, err := cachepolicy.Compile("shop", "catalog", spec)
	if err != nil {
		return err
	}
	s.binding = &cachepolicy.Binding{Policy: p, Scope: "shop/route/products", Route: "products"}
	return nil
}

// run carries out one command and says what weir does about it.
func (s *scenario) run(d *datadriven.TestData) (string, error) {
	a := arguments{d.CmdArgs}
	switch d.Cmd {
	case "policy":
		spec := new(v1alpha1.CachePolicySpec)
		if err := yaml.UnmarshalStrict([]byte(d.Input), spec); err != nil {
			return "", err
		}
		return "", s.bind(spec)
	case "facts":
		return "", s.setFacts(a)
	case "entry":
		return "", s.addEntry(a, d.Input)
	case "advance":
		by, err := time.ParseDuration(a.word(0))
		s.now = s.now.Add(by)
		return "", err
	case "request", "first":
		return s.open(d.Cmd, a, d.Input)
	}
	if s.stream == nil {
		return "", errors.New("no stream is open")
	}
	if s.stream.over() {
		return "", errors.New("the stream is over")
	}
	s.stream.now = s.now
	if err := s.event(d.Cmd, a, d.Input); err != nil {
		return "", err
	}
	return s.report(), nil
}

// report ends an event: the clock may have moved on, and something been stored.
func (s *scenario) report() string {
	s.now = s.stream.now
	if e := s.stream.stored; e != nil {
		s.entries["stored"] = e
	}
	return s.stream.describe()
}

func (s *scenario) setFacts(a arguments) (err error) {
	s.facts.messageTimeout = a.duration("message-timeout", s.facts.messageTimeout, &err)
	s.facts.maxMessageTimeout = a.duration("max-message-timeout", s.facts.maxMessageTimeout, &err)
	if v, ok := a.value("refill"); ok {
		s.facts.refill = func(*cachepolicy.Binding, *httpcache.Request) bool { return v == "true" }
	}
	if v, ok := a.value("turns"); ok {
		s.turns = v == "granted"
	}
	if v, ok := a.value("responses"); ok {
		s.sight = newSight(map[string]int{"shown": 0, "unproven": 1, "headless": 2, "unseen": maxMissed}[v])
	}
	if v, ok := a.value("draw"); ok {
		s.draw, err = strconv.ParseFloat(v, 64)
	}
	return err
}

// addEntry puts an answer on the shelf, from which "found" and "news" take it.
func (s *scenario) addEntry(a arguments, input string) error {
	header, body, err := parseMessage(input)
	if err != nil {
		return err
	}
	e := &store.Entry{
		Status: 200, Header: header, Body: store.NewBody(-1), Policy: s.binding.Policy.String(),
		URI: "https://shop.test/page", Vary: httpcache.ParseVary(header), ResponseTime: s.now,
		InitialAge:      a.duration("age", 0, &err),
		Lifetime:        a.duration("lifetime", time.Minute, &err),
		WhileRevalidate: a.duration("swr", 0, &err),
		IfError:         a.duration("sie", 0, &err),
		Cost:            a.duration("cost", 0, &err),
		ValidateAlways:  a.has("validate-always"),
		Negative:        a.has("negative"),
	}
	if v, ok := a.value("status"); ok {
		e.Status, err = strconv.Atoi(v)
	}
	if err != nil {
		return err
	}
	if v, ok := a.value("size"); ok {
		n, err := strconv.Atoi(v)
		if err != nil {
			return err
		}
		body = strings.Repeat("x", n)
	}
	if err := e.Body.Append([]byte(body)); err != nil {
		return err
	}
	switch {
	case a.has("arriving"):
	case a.has("broken"):
		e.Body.Break(errors.New("cut off"))
	default:
		e.Body.End()
		e = prepare(e)
	}
	s.entries[a.word(0)] = e
	return nil
}

// open opens a stream: "request" with request_headers, "first" with what
// follows. found=, join= and try-lead= go on at once with those events.
func (s *scenario) open(cmd string, a arguments, input string) (string, error) {
	if s.stream != nil && !s.stream.over() {
		return "", errors.New("the stream before is still open")
	}
	var msg *wire.Message
	var err error
	if cmd == "request" {
		msg, err = requestMessage(a, input)
	} else {
		msg, err = envoySays(a.word(0), arguments{a.list[1:]}, input)
	}
	if err != nil {
		return "", err
	}
	s.stream = newConversation(&s.facts, s.now)
	s.stream.turns = s.turns
	binding := s.binding
	if a.has("no-policy") {
		binding = nil
	}
	s.stream.begin(binding, msg, a.has("refill"))
	out := s.report()
	for _, next := range []string{"found", "join", "try-lead"} {
		v, ok := a.value(next)
		if !ok {
			continue
		}
		if err := s.event(next, arguments{append([]datadriven.CmdArg{{Key: v}}, a.list...)}, ""); err != nil {
			return "", err
		}
		out += s.report()
	}
	return out, nil
}

func requestMessage(a arguments, input string) (*wire.Message, error) {
	header, _, err := parseMessage(input)
	msg := &wire.Message{
		Kind: wire.KindRequestHeaders, Method: a.word(0), Path: a.word(1), Scheme: "https", Authority: "shop.test",
		Header: header, EndOfStream: !a.has("body"), HasConfig: !a.has("old-envoy"), Observability: a.has("observability"),
	}
	msg.Config.BodyWithoutWaiting = a.has("without-waiting")
	for name, mode := range map[string]*wire.BodyMode{
		"request-body-mode": &msg.Config.RequestBody, "response-body-mode": &msg.Config.ResponseBody,
	} {
		if v, ok := a.value(name); ok {
			*mode, ok = map[string]wire.BodyMode{
				"NONE": wire.BodyNone, "STREAMED": wire.BodyStreamed, "BUFFERED": wire.BodyBuffered,
				"BUFFERED_PARTIAL": wire.BodyBufferedPartial, "FULL_DUPLEX_STREAMED": wire.BodyFullDuplex, "GRPC": wire.BodyGRPC,
			}[v]
			if !ok {
				return nil, fmt.Errorf("unknown mode %q", v)
			}
		}
	}
	return msg, err
}

// parseMessage reads header lines and, after an empty line, a body. In values
// \x and the like stand for bytes that a text file does not hold.
func parseMessage(input string) (httpcache.Fields, string, error) {
	head, body, _ := strings.Cut(input, "\n\n")
	var fields httpcache.Fields
	for line := range strings.Lines(head) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			return nil, "", fmt.Errorf("no header line: %q", line)
		}
		value = strings.TrimSpace(value)
		if strings.Contains(value, `\`) {
			unquoted, err := strconv.Unquote(`"` + value + `"`)
			if err != nil {
				return nil, "", fmt.Errorf("%s: %w", line, err)
			}
			value = unquoted
		}
		fields = append(fields, httpcache.Field{Name: name, Value: value})
	}
	return fields, body, nil
}

// arguments are those of a command, with and without values.
type arguments struct{ list []datadriven.CmdArg }

func (a arguments) word(i int) string {
	if i >= len(a.list) {
		return ""
	}
	w := a.list[i].Key
	if len(a.list[i].Vals) > 0 {
		w += "=" + strings.Join(a.list[i].Vals, ",")
	}
	return w
}

func (a arguments) has(name string) bool {
	for i := range a.list {
		if a.list[i].Key == name {
			return true
		}
	}
	return false
}

func (a arguments) value(name string) (string, bool) {
	for i := range a.list {
		if a.list[i].Key == name && len(a.list[i].Vals) > 0 {
			return strings.Join(a.list[i].Vals, ","), true
		}
	}
	return "", false
}

func (a arguments) duration(name string, fallback time.Duration, err *error) time.Duration {
	v, ok := a.value(name)
	if !ok || *err != nil {
		return fallback
	}
	d, e := time.ParseDuration(v)
	*err = e
	return d
}

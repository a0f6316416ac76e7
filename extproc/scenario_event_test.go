package extproc

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weirproxy/weir/extproc/flight"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/wire"
)

// event tells the open stream what happened next.
func (s *scenario) event(cmd string, a arguments, input string) error {
	c := s.stream
	if want, ok := map[string]state{
		"found": stateLookup, "join": stateJoin, "news": stateHold, "turn": stateQueue,
	}[cmd]; ok && c.m.state != want {
		return fmt.Errorf("%s: nobody asked for it (state %d)", cmd, c.m.state)
	}
	switch cmd {
	case "found":
		return s.lookedUp(a)
	case "join":
		role, ok := map[string]flight.Role{
			"lead": flight.RoleLead, "follow": flight.RoleFollow, "solo": flight.RoleSolo, "full": flight.RoleFull,
		}[a.word(0)]
		if !ok {
			return fmt.Errorf("unknown role %q", a.word(0))
		}
		if a.has("started") {
			c.m.onRefill(refillStarted)
		}
		c.joined(role)
	case "turn":
		t, ok := map[string]turn{"now": turnNow, "queued": turnQueued, "full": turnFull}[a.word(0)]
		if !ok {
			return fmt.Errorf("unknown turn %q", a.word(0))
		}
		c.admitted(t)
	case "try-lead":
		c.triedLead(a.word(0) == "won")
	case "news":
		return s.news(a)
	case "timer":
		if c.timer.IsZero() {
			return fmt.Errorf("no timer runs")
		}
		c.timeUp()
	case "end":
		c.end(a.has("reset"))
	default:
		msg, err := envoySays(cmd, a, input)
		if err != nil {
			return err
		}
		c.message(msg)
	}
	return nil
}

// envoySays is a message that Envoy sends on a stream, other than request_headers.
func envoySays(cmd string, a arguments, input string) (*wire.Message, error) {
	msg := &wire.Message{EndOfStream: a.has("end")}
	switch cmd {
	case "response":
		status, err := strconv.Atoi(a.word(0))
		if err != nil {
			return nil, err
		}
		msg.Kind, msg.Status = wire.KindResponseHeaders, status
		if msg.Header, _, err = parseMessage(input); err != nil {
			return nil, err
		}
		msg.CodeDetails = "via_upstream"
		if v, ok := a.value("details"); ok {
			msg.CodeDetails = v
		}
	case "body":
		msg.Kind, msg.Body = wire.KindResponseBody, []byte(input)
		if v, ok := a.value("size"); ok {
			n, err := strconv.Atoi(v)
			if err != nil {
				return nil, err
			}
			msg.Body = []byte(strings.Repeat("x", n))
		}
	case "trailers":
		msg.Kind = wire.KindResponseTrailers
	case "request-body":
		msg.Kind, msg.Body = wire.KindRequestBody, []byte(input)
	case "request-trailers":
		msg.Kind = wire.KindRequestTrailers
	case "request-headers":
		msg.Kind, msg.Method = wire.KindRequestHeaders, "GET"
	case "nonsense":
		msg.Kind = wire.KindNone
	default:
		return nil, fmt.Errorf("unknown command %q", cmd)
	}
	return msg, nil
}

func (s *scenario) lookedUp(a arguments) error {
	f := found{soft: a.has("soft"), failing: a.has("failing")}
	if v, ok := a.value("beta"); ok {
		var err error
		if f.beta, err = strconv.ParseFloat(v, 64); err != nil {
			return err
		}
	}
	if name := a.word(0); name != "nothing" {
		e, err := s.named(name)
		if err != nil {
			return err
		}
		f.Entry, f.Vary, f.Known = e, e.Vary, true
	}
	if v, ok := a.value("vary"); ok {
		f.Vary, f.Known = httpcache.ParseVary(httpcache.Fields{{Name: "vary", Value: v}}), true
	}
	s.stream.found(f)
	return nil
}

func (s *scenario) news(a arguments) error {
	kind, ok := map[string]flight.NewsKind{
		"answer": flight.NewsAnswer, "rejoin": flight.NewsRejoin, "fetch": flight.NewsFetch,
		"lead": flight.NewsLead, "failed": flight.NewsFailed,
	}[a.word(0)]
	if !ok {
		return fmt.Errorf("unknown news %q", a.word(0))
	}
	var e *store.Entry
	if name := a.word(1); name != "" {
		var err error
		if e, err = s.named(name); err != nil {
			return err
		}
	}
	if a.has("validated") {
		s.stream.m.onRefill(refillValidated)
	}
	s.stream.news(kind, e)
	return nil
}

func (s *scenario) named(name string) (*store.Entry, error) {
	e, ok := s.entries[name]
	if !ok {
		return nil, fmt.Errorf("no entry %q", name)
	}
	return e, nil
}

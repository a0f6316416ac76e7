package extproc

import (
	"fmt"
	"strings"
	"time"

	"github.com/weirproxy/weir/extproc/store"
)

// describe says what the last event had carried out, one effect a line, wrapped.
func (c *conversation) describe() string {
	var b strings.Builder
	for i := range c.done {
		if c.done[i].op == opFill { // fills_test.go
			continue
		}
		writeWrapped(&b, chance(c.describeEffect(&c.done[i])))
	}
	for _, breach := range c.rules.breaches {
		writeWrapped(&b, "BREACH: "+breach)
	}
	if b.Len() == 0 {
		return "(nothing)\n"
	}
	return b.String()
}

func (c *conversation) describeEffect(e *effect) string {
	switch e.op {
	case opSend:
		return describeReply(e.reply)
	case opTail:
		return describeReply(e.reply) + ", then its body as it comes"
	case opStream:
		var body []byte
		for part := range e.parts {
			body = append(body, part...)
		}
		return describeReply(e.reply) + ", then " + describeBody(body)
	case opClose:
		return "close OK"
	case opOutcome:
		return "count " + e.outcome.String()
	case opNote:
		return "note: " + noteName(e.note)
	case opLookup:
		return "look up " + uriOf(&c.m.req)
	case opTimer:
		if e.at.IsZero() {
			return "timer off"
		}
		return "timer in " + shortDuration(e.at.Sub(c.now))
	case opInvalidate:
		var uris []string
		for _, t := range e.targets {
			uris = append(uris, t.String())
		}
		return "invalidate " + strings.Join(uris, ", ")
	}
	return c.describeFlight(e)
}

// describeFlight says what is asked of the flight.
func (c *conversation) describeFlight(e *effect) string {
	switch e.op {
	case opJoin:
		return "join the flight" + c.variant() + ", for at most " + c.until(e.at)
	case opJoinRefill:
		return "see that a detached refill runs and follow it" + c.variant() + ", for at most " + c.until(e.at)
	case opRefresh:
		return "start a detached refill behind the answer, unless one runs" + c.variant()
	case opTryLead:
		return "ask for the right to fetch and store" + c.variant()
	case opAdmit:
		return "take a turn at the origin"
	case opLeave:
		return "leave the flight"
	case opHeadShown:
		return "heads of responses are shown"
	case opShown:
		return "responses are shown"
	case opUnseen:
		return "the response was not shown"
	}
	return describeFill(e)
}

// describeFill says what becomes of the answer being fetched, and of what is stored.
func describeFill(e *effect) string {
	switch e.op {
	case opPublish:
		if e.share {
			return "publish: the followers get this answer, its body as it comes"
		}
		return "begin to store; not shared: the followers go to the origin"
	case opAppend:
		s := fmt.Sprintf("copy %d bytes", len(e.body))
		if e.reason != "" {
			s += ": " + string(e.reason)
		}
		return s
	case opCommit:
		if e.reason != "" {
			return "store nothing: " + string(e.reason)
		}
		return "store " + describeEntry(e.entry)
	case opFreshen:
		return "freshen what is stored: " + describeEntry(e.entry)
	case opBreak:
		return "give the copy up: " + string(e.reason)
	case opAbandon:
		return "hand the flight over"
	case opRelease:
		s := "release the followers to the origin: " + string(e.reason)
		if e.mark {
			s += "; mark: the next burst does not wait"
		}
		return s
	case opFail:
		return "tell the followers that the fetch failed: " + string(e.reason)
	case opDelete:
		return "drop what is stored"
	}
	return fmt.Sprintf("unknown effect %d", e.op)
}

func (c *conversation) until(t time.Time) string { return shortDuration(t.Sub(c.now)) }

// variant names the variant that a flight is of, once Vary is known.
func (c *conversation) variant() string {
	names := c.m.vary.Names
	if len(names) == 0 {
		return ""
	}
	var parts []string
	for i, v := range c.m.vary.Select(c.m.req.Header) {
		if v == "\x00" {
			v = "(absent)"
		}
		parts = append(parts, names[i]+"="+v)
	}
	return " of the variant " + strings.Join(parts, ", ")
}

func describeEntry(e *store.Entry) string {
	parts := []string{fmt.Sprint(e.Status), "fresh for " + shortDuration(e.Lifetime)}
	for _, window := range []struct {
		name string
		d    time.Duration
	}{{"age", e.InitialAge}, {"stale-while-revalidate", e.WhileRevalidate}, {"stale-if-error", e.IfError}} {
		if window.d > 0 {
			parts = append(parts, window.name+" "+shortDuration(window.d))
		}
	}
	for _, flag := range []struct {
		set  bool
		name string
	}{{e.ValidateAlways, "always validated"}, {e.Negative, "negative"}, {e.Unreachable, "made by Envoy"}} {
		if flag.set {
			parts = append(parts, flag.name)
		}
	}
	if len(e.Vary.Names) > 0 {
		parts = append(parts, "vary "+strings.Join(e.Vary.Names, ", "))
	}
	if len(e.Tags) > 0 {
		parts = append(parts, "tags "+strings.Join(e.Tags, ", "))
	}
	if e.Body.Len() > 0 {
		parts = append(parts, fmt.Sprintf("%d bytes", e.Body.Len()))
	}
	return strings.Join(parts, ", ") + "; " + describeFields(e.Header)
}

func noteName(n note) string {
	switch n {
	case noteModeUnusable:
		return "Envoy's processing mode is unusable"
	case noteHoldCapped:
		return "the hold is shorter than coalescing.maxWait"
	case noteResponseUnseen:
		return "Envoy does not show the response"
	case noteSoftTimeoutInactive:
		return "softTimeout is inactive: no detached refill is possible"
	case noteSilence:
		return "the end of the copied response did not come"
	}
	return fmt.Sprintf("unknown note %d", n)
}

// writeWrapped writes a line; what is longer than a screen goes on, indented. It
// breaks between words, but not between quotation marks unless it must.
func writeWrapped(b *strings.Builder, line string) {
	const width = 112
	indent := ""
	for len(indent)+len(line) > width {
		cut, fallback, quoted := 0, 0, false
		for i := 0; i < width-len(indent); i++ {
			switch line[i] {
			case '"':
				quoted = !quoted
			case ' ':
				fallback = i
				if !quoted {
					cut = i
				}
			}
		}
		if cut < width/3 {
			cut = fallback
		}
		if cut == 0 {
			break
		}
		b.WriteString(indent + line[:cut] + "\n")
		line, indent = line[cut+1:], "    "
	}
	b.WriteString(indent + line + "\n")
}

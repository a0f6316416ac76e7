package extproc

import (
	"time"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/flight"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/metrics"
	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/wire"
)

// conversation is one stream without its I/O: the machine, and around it what
// session does with its effects. Whatever happens in it is held against the
// rules that every stream keeps (rules_test.go); a breach goes to breaches.
type conversation struct {
	m     machine
	now   time.Time
	rules rules

	// turns answers opAdmit at once with turnNow; else the test does.
	turns  bool
	timer  time.Time       // when onTimer is due; zero: never
	tried  metrics.Outcome // what opTryLead carries to onTryLead
	filled *store.Entry    // what is being copied
	stored *store.Entry    // what was committed or freshened last, as it is kept
	done   []effect        // what the last event had carried out
}

func newConversation(f *facts, now time.Time) *conversation {
	return &conversation{m: machine{facts: f}, now: now}
}

// newSight returns the experience of a response that was shown, and of some since
// that were not, of which not even the head was, if there are more than one.
func newSight(missed int) *sight {
	var s sight
	s.show()
	if missed <= 1 {
		s.showHead()
	}
	for range missed {
		s.miss(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	}
	return &s
}

// begin is the first message of the stream, with what the gRPC loop found out.
func (c *conversation) begin(b *cachepolicy.Binding, msg *wire.Message, refilled bool) {
	c.m.binding = b
	c.rules.received(c, msg)
	if refilled {
		c.rules.noClient = true
		c.m.refilled()
	} else {
		c.m.onMessage(msg, c.now)
	}
	c.perform()
}

func (c *conversation) message(msg *wire.Message) {
	c.rules.received(c, msg)
	c.m.onMessage(msg, c.now)
	c.perform()
}

func (c *conversation) end(reset bool) {
	c.m.onEnd(reset)
	c.perform()
}

func (c *conversation) found(f found) {
	c.m.onLookup(f, c.now)
	c.perform()
}

func (c *conversation) joined(r flight.Role) {
	c.rules.joined(r)
	c.m.onJoin(r, c.now)
	c.perform()
}

func (c *conversation) triedLead(won bool) {
	if won {
		c.rules.leads = true
	}
	c.m.onTryLead(won, c.tried, c.now)
	c.perform()
}

func (c *conversation) admitted(t turn) {
	c.m.onAdmit(t, c.now)
	c.perform()
}

func (c *conversation) news(k flight.NewsKind, e *store.Entry) {
	c.rules.follows, c.rules.news = false, e
	if k == flight.NewsLead {
		c.rules.leads = true
	}
	c.m.onNews(flight.News{Kind: k, Entry: e}, c.now)
	c.perform()
}

// timeUp is the timer, at the instant that was asked for.
func (c *conversation) timeUp() {
	if c.timer.After(c.now) {
		c.now = c.timer
	}
	c.timer = time.Time{}
	c.m.onTimer(c.now)
	c.perform()
}

// perform carries the effects out as session does, as far as they reach back
// into the machine.
func (c *conversation) perform() {
	c.done = nil
	for i := 0; i < len(c.m.out); i++ {
		e := c.m.out[i]
		c.rules.effect(c, &e)
		switch e.op {
		case opTimer:
			idle := e.at.IsZero() && c.timer.IsZero()
			c.timer = e.at
			if idle {
				continue
			}
		case opAdmit:
			if c.turns {
				c.m.onAdmit(turnNow, c.now)
			}
		case opTryLead:
			c.tried = e.outcome
		case opPublish:
			c.filled = e.entry
		case opAppend:
			e.reason = c.append(e.body)
		case opBreak, opAbandon:
			c.filled = nil
		case opCommit:
			e.reason = c.commit()
		case opFreshen:
			c.stored = prepare(e.entry)
		case opDelete:
			c.stored = nil
			if e.entry == nil {
				c.rules.breach("nothing is named that is to be dropped")
			}
		}
		c.done = append(c.done, e)
	}
	clear(c.m.out)
	c.m.out = c.m.out[:0]
	c.rules.settled(c)
}

// append copies a chunk; the reason is why nothing more is copied.
func (c *conversation) append(p []byte) httpcache.Reason {
	if c.filled == nil {
		return "nothing is copied any more"
	}
	if c.filled.Body.Len()+int64(len(p)) > c.m.policy.Storage.MaxObjectSize {
		c.filled.Body.Break(errTooLarge)
		c.filled, c.rules.leads = nil, false
		c.m.onCopyOver()
		return "more than storage.maxObjectSize, given up"
	}
	_ = c.filled.Body.Append(p) // fails only once the body has ended
	return ""
}

// commit ends the body and stores it; the reason is why it is not stored.
func (c *conversation) commit() httpcache.Reason {
	e := c.filled
	c.filled = nil
	if e == nil {
		return "given up before"
	}
	e.Body.End()
	if !e.Body.Whole() {
		return "incomplete"
	}
	c.stored = prepare(e)
	return ""
}

// over reports whether nothing more will come of the stream.
func (c *conversation) over() bool { return c.m.state == stateDone }

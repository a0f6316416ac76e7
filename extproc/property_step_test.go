package extproc

import (
	"github.com/weirproxy/weir/extproc/flight"
	"github.com/weirproxy/weir/extproc/wire"
)

// step draws the next event: the answer to what the machine asked for, if it
// did, else something that may happen in its state.
func (w *chanceWorld) step() {
	if len(w.c.done) > 0 && w.answers(w.c.done[len(w.c.done)-1].op) {
		return
	}
	if w.chance("something odd", 3) {
		msg := w.odd()
		w.c.message(msg)
		w.note("odd %s", msg.Kind)
		return
	}
	if w.chance("the stream ends", 5) {
		w.c.end(w.chance("reset", 50))
		w.note("end")
		return
	}
	switch w.c.m.state {
	case stateHold:
		w.held()
	case stateQueue:
		w.queued()
	case stateCopy:
		w.copied()
	default:
		msg := w.response()
		w.c.message(msg)
		w.note("response %d %q end=%t %v", msg.Status, msg.CodeDetails, msg.EndOfStream, msg.Header)
	}
}

// answers gives the machine what it asked for.
func (w *chanceWorld) answers(asked op) bool {
	switch asked {
	case opLookup:
		w.lookedUp()
	case opJoin, opJoinRefill:
		if asked == opJoinRefill && w.chance("starts the refill", 50) {
			w.c.m.onRefill(refillStarted)
		}
		role := choose(w, "role", flight.RoleLead, flight.RoleLead, flight.RoleFollow, flight.RoleFollow,
			flight.RoleSolo, flight.RoleFull)
		w.c.joined(role)
		w.note("join %s", role)
	case opTryLead:
		won := w.chance("won", 50)
		w.c.triedLead(won)
		w.note("try-lead won=%t", won)
	case opAdmit:
		if w.c.turns {
			return false
		}
		t := choose(w, "turn", turnNow, turnQueued, turnQueued, turnFull)
		w.c.admitted(t)
		w.note("turn %d", t)
	default:
		return false
	}
	return true
}

func (w *chanceWorld) lookedUp() {
	f := found{
		soft: w.chance("soft", 10), failing: w.chance("failing", 10),
		beta: choose(w, "beta", 0.0, 1.0),
	}
	if w.chance("stored", 60) {
		e := w.entry(true)
		f.Entry, f.Vary, f.Known = e, e.Vary, true
	}
	w.c.found(f)
	w.note("found %v soft=%t failing=%t beta=%v", f.Entry != nil, f.soft, f.failing, f.beta)
}

func (w *chanceWorld) held() {
	switch {
	case w.chance("time is up", 25):
		w.c.timeUp()
		w.note("timer")
	case w.chance("Envoy replies", 5):
		w.c.message(&wire.Message{Kind: wire.KindResponseHeaders, Status: 504, CodeDetails: "stream_idle_timeout"})
		w.note("Envoy's own 504")
	default:
		kind := choose(w, "news", flight.NewsAnswer, flight.NewsAnswer, flight.NewsRejoin, flight.NewsFetch,
			flight.NewsLead, flight.NewsFailed)
		e := w.entry(false)
		if w.c.m.refill == refillStarted && w.chance("validated", 50) {
			w.c.m.onRefill(refillValidated)
		}
		w.c.news(kind, e)
		w.note("news %s %s", kind, describeEntry(e))
	}
}

func (w *chanceWorld) queued() {
	if w.chance("time is up", 30) {
		w.c.timeUp()
		w.note("timer")
		return
	}
	w.c.admitted(turnNow)
	w.note("turn")
}

func (w *chanceWorld) copied() {
	if w.chance("trailers", 15) {
		w.c.message(&wire.Message{Kind: wire.KindResponseTrailers})
		w.note("trailers")
		return
	}
	msg := &wire.Message{Kind: wire.KindResponseBody, EndOfStream: w.chance("ends", 40)}
	msg.Body = []byte(choose(w, "chunk", "", "hello", "hello, world, this is more than ten bytes"))
	w.c.message(msg)
	w.note("body %q end=%t", msg.Body, msg.EndOfStream)
}

package extproc

import (
	"iter"
	"time"

	"github.com/weirproxy/weir/extproc/flight"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/metrics"
	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/wire"
)

// op names what an effect does.
type op uint8

const (
	// opSend sends reply to Envoy.
	opSend op = iota
	// opClose ends the stream with OK: Envoy carries on without us.
	opClose
	// opLookup asks the store for the key; the answer is onLookup.
	opLookup
	// opJoin joins the flight id as leader or follower; the answer is onJoin.
	opJoin
	// opJoinRefill sees that a detached refill leads flight id, and follows it;
	// the answer is onJoin.
	opJoinRefill
	// opRefresh starts a detached refill of the key unless somebody fetches it.
	opRefresh
	// opTryLead leads the flight id unless somebody does; the answer is onTryLead.
	opTryLead
	// opAdmit asks for a turn at the origin; the answer is onAdmit.
	opAdmit
	// opLeave leaves the flight that is followed.
	opLeave
	// opTimer asks for onTimer at the given instant; a zero instant cancels.
	opTimer
	// opPublish begins to fill entry; with share its head goes to the followers,
	// without they are released.
	opPublish
	// opHeadShown, opShown and opUnseen note whether Envoy shows a response: its
	// head, some of its body, not as it was asked to.
	opHeadShown
	opShown
	opUnseen
	// opAppend adds a chunk of the response being copied.
	opAppend
	// opCommit stores entry, whose body is whole, and ends the flight well.
	opCommit
	// opBreak gives up the response being copied: it will never be whole.
	opBreak
	// opRelease sends all followers to the origin; mark keeps the next burst
	// from waiting.
	opRelease
	// opFail tells the followers that the fetch failed.
	opFail
	// opAbandon hands the flight over: its leader's client went away.
	opAbandon
	// opFreshen puts an answer freshened by a 304 or a HEAD in the place of what is stored.
	opFreshen
	// opDelete drops the stored variant entry.
	opDelete
	// opInvalidate stamps the targets invalid.
	opInvalidate
	// opTail answers with the head in reply, then entry's body as it comes, and
	// ends the stream.
	opTail
	// opStream answers with the head in reply, then with parts, and ends the stream.
	opStream
	// opFill counts a fetch that ended without a body to store, once.
	opFill
	// opOutcome counts the request, once.
	opOutcome
	// opNote counts a remarkable event.
	opNote
)

// effect is one thing the machine wants done. Which fields count depends on op.
type effect struct {
	op      op
	reply   *wire.Reply
	entry   *store.Entry
	fresh   *freshening // opFreshen
	id      flight.ID
	at      time.Time
	body    []byte
	mark    bool // opRelease: keep the next burst from waiting
	share   bool // opPublish: followers may have the answer
	reason  httpcache.Reason
	targets []httpcache.Target
	parts   iter.Seq[[]byte]
	fill    metrics.FillResult
	outcome metrics.Outcome
	note    note
}

// speaks reports whether the effect is something to be said on the stream.
func (e *effect) speaks() bool {
	return e.op == opSend || e.op == opTail || e.op == opStream || e.op == opClose
}

// note is a remarkable event that is no outcome.
type note uint8

const (
	// noteModeUnusable: the filter's processing mode is one that weir cannot work in.
	noteModeUnusable note = iota
	// noteHoldCapped: a hold is shorter than the policy asks, for Envoy's timeout.
	noteHoldCapped
	// noteResponseUnseen: Envoy did not show a response, or no copy of it although asked to.
	noteResponseUnseen
	// noteSoftTimeoutInactive: no detached refill is possible on this route.
	noteSoftTimeoutInactive
	// noteSilence: the end of a response that is copied did not come.
	noteSilence
)

// numNotes is the number of notes.
const numNotes = int(noteSilence) + 1

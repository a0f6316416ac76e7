package flight

import (
	"errors"
	"fmt"

	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store"
)

// Errors that break the body of an answer, as its readers see them in Body.Err.
var (
	// ErrAbandoned: the leader went away in the middle of the body.
	ErrAbandoned = errors.New("flight: the leader went away")
	// ErrUnfinished: the leader ended before the body did.
	ErrUnfinished = errors.New("flight: the leader ended before the body was whole")
)

// Lead is the duty to end a flight. Before the answer exactly one of Publish,
// Release, Fail and Abandon ends the waiting; after Publish one of Finish, Break
// and Abandon ends the flight. Once the flight is out of the lead's hands every
// method does nothing, so that a late or second end is harmless. The owner defers
// Close. A Lead is safe for concurrent use.
type Lead struct {
	flight   *Flight
	party    party
	unwanted chan struct{} // of a lead that works for waiters alone
}

// ID returns the ID the flight began under.
func (l *Lead) ID() ID { return l.flight.id }

// Unwanted is closed when a detached fetch that took a flight over works for
// nobody any more: all waiters left before it had an answer, and the flight has
// ended. For every other lead it is nil.
func (l *Lead) Unwanted() <-chan struct{} { return l.unwanted }

// Publish makes e the answer of the flight, as soon as its head is known and if
// it may be shared. Waiters whose fields match its Vary are told NewsAnswer, the
// others NewsRejoin; whoever joins later is told at once, under the ID of the
// variant too. e.Body is appended to from then on, by Append for preference. It
// returns false if the lead had no say any more, or Vary is *, which is released.
func (l *Lead) Publish(e *store.Entry) bool {
	if e.Vary.Any {
		l.Release(true, ReasonVaryAny)
		return false
	}
	f := l.flight
	f.shard.mu.Lock()
	if f.lead != l || f.entry != nil {
		f.shard.mu.Unlock()
		return false
	}
	replaced := f.source
	from := newSplice(e.Body, e.ResponseTime)
	f.source = from.open()
	waiting := f.publish(e)
	f.shard.mu.Unlock()
	f.group.tellAnswer(waiting, e, from)
	if replaced != nil {
		replaced.drop(ErrAbandoned)
	}
	return true
}

// publish sets the answer and returns who waited for it; the caller holds
// shard.mu.
func (f *Flight) publish(e *store.Entry) []*Waiter {
	f.entry = e
	f.alias = f.id.variant(e.Vary.Names, e.VaryValues)
	if f.registered() && f.shard.flights[f.alias] == nil {
		f.shard.flights[f.alias] = f
	}
	f.group.marks.clear(f.id)
	f.group.marks.clear(f.alias)
	return f.takeWaiters()
}

// Serve ends the flight with an answer that was stored already, whole: there is
// nothing to fetch.
func (l *Lead) Serve(e *store.Entry) {
	l.Publish(e)
	l.Finish()
}

// Release sends all waiters to the origin at once: the answer cannot be shared.
// With mark, a do-not-coalesce mark keeps the next burst from queueing. After
// Publish it is Break.
func (l *Lead) Release(mark bool, reason httpcache.Reason) {
	l.settle(reason, func(f *Flight) News {
		if mark {
			f.group.marks.set(f.id, f.group.opts.Now().Add(f.group.opts.MarkTTL))
		}
		return News{Kind: NewsFetch, Reason: reason}
	})
}

// Fail tells all waiters that the fetch failed. After Publish it is Break.
func (l *Lead) Fail(reason httpcache.Reason) {
	l.settle(reason, func(f *Flight) News {
		if p := f.prior; p != nil && p.serves() {
			p.register()
			return News{Kind: NewsAnswer, Entry: p.entry}
		}
		return News{Kind: NewsFailed, Reason: reason}
	})
}

// settle ends the flight without an answer; verdict, called under the lock, says
// what the waiters are told.
func (l *Lead) settle(reason httpcache.Reason, verdict func(*Flight) News) {
	f := l.flight
	f.shard.mu.Lock()
	if f.lead != l {
		f.shard.mu.Unlock()
		return
	}
	if f.entry != nil {
		f.shard.mu.Unlock()
		l.Break(fmt.Errorf("%w: %s", ErrUnfinished, reason))
		return
	}
	waiting := f.takeWaiters()
	f.end()
	n := verdict(f)
	f.shard.mu.Unlock()
	if n.Kind == NewsAnswer {
		f.group.tellAnswer(waiting, n.Entry, f.source.splice)
	} else {
		f.group.tellAll(waiting, n)
	}
	if f.source != nil {
		f.source.drop(ErrAbandoned)
	}
}

// Finish ends the flight: the body is whole and the entry was committed (or is
// not to be), so that who comes next finds it in the store. If the body is not
// whole it is Break(ErrUnfinished).
func (l *Lead) Finish() { l.close(ErrUnfinished) }

// Break ends the flight: the body will never be whole. Its readers get err, those
// who join later a new flight. If a successor continues the body (Resume) it is
// not broken. Before Publish it is Fail.
func (l *Lead) Break(err error) { l.close(err) }

// Close ends whatever is left of the lead when its owner returns, by a panic too:
// before Publish as Fail, after it as Finish.
func (l *Lead) Close() { l.close(ErrUnfinished) }

func (l *Lead) close(err error) {
	f := l.flight
	f.shard.mu.Lock()
	if f.lead != l {
		f.shard.mu.Unlock()
		return
	}
	if f.entry == nil {
		f.shard.mu.Unlock()
		l.Fail(ReasonLeaderAborted)
		return
	}
	f.end()
	f.shard.mu.Unlock()
	f.source.drop(err)
}

package flight

import (
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store"
)

// party is one request at a flight: what tells its variant, and its limits.
type party struct {
	req httpcache.Fields
	lim Limits
}

// Flight is one fetch and those who wait for it. Its methods are for TakeOver.
type Flight struct {
	group *Group
	shard *shard
	id    ID
	birth uint64

	// Guarded by shard.mu:
	alias   ID           // the ID of the variant of entry; shard.flights has it under both
	lead    *Lead        // nil once the flight ended
	offered *Lead        // the last lead that TakeOver was asked about
	waiters waiters      // empty once entry is set
	entry   *store.Entry // once published
	prior   *Flight      // whose place this one took because it made no progress
	// source is what the lead writes the body of entry through; before a successor
	// has an entry it holds its place at the body of prior.
	source    *source
	succeeded bool // a successor took its place once
	attached  any  // see Lead.Attach
}

// ID returns the ID the flight began under.
func (f *Flight) ID() ID { return f.id }

// Lead returns the lead that TakeOver is asked to find an owner for. If all
// waiters have left by then it is over, and its Unwanted closed.
func (f *Flight) Lead() *Lead {
	f.shard.mu.Lock()
	defer f.shard.mu.Unlock()
	return f.offered
}

// Request returns the header fields of the request on whose behalf the take-over
// fetches: the waiter's with the most time left, or, if the body was arriving
// already, the leader's that is gone. Nil if that was a refresh.
func (f *Flight) Request() httpcache.Fields { return f.Lead().party.req }

// Owner returns Limits.Owner of that request. Nil if that was a refresh.
func (f *Flight) Owner() any { return f.Lead().party.lim.Owner }

// Entry returns the answer whose body broke off, for Lead.Resume, or nil if the
// flight has no answer yet.
func (f *Flight) Entry() *store.Entry {
	f.shard.mu.Lock()
	defer f.shard.mu.Unlock()
	if f.prior == nil {
		return nil
	}
	return f.prior.entry
}

// takeWaiters takes all waiters out of the flight, to be told without the lock;
// the caller holds shard.mu.
func (f *Flight) takeWaiters() []*Waiter {
	all := f.waiters
	f.waiters = nil
	f.group.waiters.Add(-int64(len(all)))
	return all
}

// end takes the flight out of the group; the caller holds shard.mu, and has
// taken care of the waiters and the body.
func (f *Flight) end() {
	f.shard.forget(f)
	f.lead = nil
	f.group.flights.Add(-1)
	f.group.drop(f.attached)
	f.attached = nil
}

// newsOf returns what e means for a request with the fields req.
func newsOf(e *store.Entry, req httpcache.Fields) News {
	switch {
	case e.Vary.Any:
		return News{Kind: NewsFetch, Reason: ReasonVaryAny}
	case httpcache.SameVariant(e.Vary.Names, e.VaryValues, req):
		return News{Kind: NewsAnswer, Entry: e}
	default:
		return News{Kind: NewsRejoin, Entry: e}
	}
}

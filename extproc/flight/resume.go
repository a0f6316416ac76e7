package flight

import (
	"strings"
	"time"

	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store"
)

// Append adds p to the body of the published entry. It does what Body.Append
// does, and lets a successor write the same body: bytes that readers have already
// are compared, the rest is appended. ErrEnded means that there is nothing more to
// do: somebody else made the body whole, or it broke. ErrDiverged means that this
// lead fetched something else than readers have: it must Break.
func (l *Lead) Append(p []byte, now time.Time) error {
	src := l.writes()
	if src == nil {
		return ErrEnded
	}
	return src.append(p, now)
}

// End makes the body of the published entry whole. Nil means that this lead did
// so, and commits the entry before it calls Finish; for the errors see Append.
func (l *Lead) End() error {
	src := l.writes()
	if src == nil {
		return ErrEnded
	}
	return src.end()
}

func (l *Lead) writes() *source {
	f := l.flight
	f.shard.mu.Lock()
	defer f.shard.mu.Unlock()
	if f.lead != l || f.entry == nil {
		return nil
	}
	return f.source
}

// Supersede gives a flight a successor if its body has not grown since before
// now − after: the leader's client may read slowly, and others must not wait for
// it. Called by who was told NewsAnswer. The caller owns the returned lead and
// starts a detached fetch for it, which tries Resume and else publishes its own
// answer; those who join from now on wait for that. The slow leader goes on
// beside it, and if the successor fails new followers are given to it again. Once
// per body, and only if the leader writes with Append.
func (w *Waiter) Supersede(now time.Time, after time.Duration) (*Lead, bool) {
	f := w.flight
	g := f.group
	f.shard.mu.Lock()
	if f.lead == nil || !f.mayBeSucceeded() || g.full() || !f.source.idle(now, after) {
		f.shard.mu.Unlock()
		return nil, false
	}
	next := f.succeed(w.party)
	f.shard.mu.Unlock()
	if g.opts.Observer.Stalled != nil {
		g.opts.Observer.Stalled()
	}
	return next.lead, true
}

// Resume makes the answer of a successor the one that the flight before it
// published, if status and fields prove that it is the same representation: equal
// status and content coding, and an equal strong ETag (RFC 9110 §8.8.1). Its bytes,
// from the first on, are then given to Append. False: publish an answer of its own.
func (l *Lead) Resume(status int, fields httpcache.Fields) bool {
	f := l.flight
	f.shard.mu.Lock()
	if f.lead != l || f.entry != nil || f.prior == nil {
		f.shard.mu.Unlock()
		return false
	}
	e := f.prior.entry
	if e.Body.Err() != nil || !sameRepresentation(e, status, fields) {
		f.shard.mu.Unlock()
		return false
	}
	waiting, from := f.publish(e), f.source.splice
	f.shard.mu.Unlock()
	f.group.tellAnswer(waiting, e, from)
	return true
}

// sameRepresentation reports whether an answer is byte for byte the one of e.
func sameRepresentation(e *store.Entry, status int, fields httpcache.Fields) bool {
	tag := e.Header.Get("etag")
	if status != e.Status || !strings.HasPrefix(tag, `"`) || fields.Get("etag") != tag {
		return false
	}
	for _, name := range [...]string{"content-encoding", "content-length"} {
		was, had := e.Header.Joined(name)
		is, has := fields.Joined(name)
		if had && has && was != is || name == "content-encoding" && had != has {
			return false
		}
	}
	return true
}

// mayBeSucceeded reports whether the body of f may be continued by another fetch;
// the caller holds shard.mu.
func (f *Flight) mayBeSucceeded() bool {
	return f.entry != nil && f.prior == nil && !f.succeeded && f.registered()
}

// registered reports whether f can be found; the caller holds shard.mu.
func (f *Flight) registered() bool { return f.shard.flights[f.id] == f }

// succeedAbandoned returns a flight that continues the one whose leader went away
// in the middle of the body, if anybody reads it; the caller holds shard.mu.
func (f *Flight) succeedAbandoned() *Flight {
	if f.group.opts.TakeOver == nil || !f.mayBeSucceeded() || f.group.full() ||
		f.entry.Body.Whole() || f.source.splice.tailers.Load() == 0 {
		return nil
	}
	next := f.succeed(f.lead.party)
	next.offered = next.lead
	next.attached, f.attached = f.attached, nil
	f.end()
	return next
}

// succeed puts a new flight in the place of f, on behalf of p; the caller holds
// shard.mu.
func (f *Flight) succeed(p party) *Flight {
	f.succeeded = true
	f.shard.forget(f)
	p.lim.Position = f.birth
	lead := f.group.begin(f.shard, f.id, p)
	next := lead.flight
	next.prior = f
	next.source = f.source.splice.reopen()
	return next
}

// serves reports whether the answer of a flight that was succeeded is still good;
// the caller holds shard.mu.
func (f *Flight) serves() bool {
	return f.lead != nil && f.entry.Body.Err() == nil || f.entry.Body.Whole()
}

// register makes a flight findable again that was succeeded and goes on; the
// caller holds shard.mu.
func (f *Flight) register() {
	if f.lead == nil {
		return
	}
	for _, id := range [...]ID{f.id, f.alias} {
		if f.shard.flights[id] == nil {
			f.shard.flights[id] = f
		}
	}
}

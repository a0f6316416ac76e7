// Package tiered is the store of a process in a fleet: its own memory over the
// Redis that all share.
//
// Memory answers first, and alone where it can: a hit takes no lock and asks
// nobody. What it does not have is looked for in Redis and kept. Writes go to
// both, Redis first, on the caller's time: an answer that others were told of is
// there, a Delete is not overtaken by a Put that was queued, and a circuit
// (redis.Guard) bounds what a Redis in trouble may cost. The answer of a fetch
// that had a lease does not come this way: fleet.Commit stores it under its token,
// and the caller keeps it in memory.
//
// Nothing that goes wrong with Redis is an error of this store: it is then the
// memory of one process.
package tiered

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/fleet"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/store/redis"
)

// Options are the parts of a [Tiered].
type Options struct {
	Local  store.Store  // the memory; required
	Shared *redis.Store // required
	// Fleet says whether what Redis has can be judged; required.
	Fleet *fleet.Fleet
	// Shares reports whether an entry may go into Redis: not under a policy with
	// storage.sharing Replica. Nil lets all.
	Shares func(*store.Entry) bool
	Logger *slog.Logger // required
}

// Tiered is a [store.Store] that looks into memory, and then into Redis.
type Tiered struct {
	opts                     Options
	local                    store.Store
	promoted, misses, errors atomic.Uint64
}

var _ store.Store = (*Tiered)(nil)

// New returns a store over the parts, which stay the caller's.
func New(o Options) *Tiered {
	if o.Shares == nil {
		o.Shares = func(*store.Entry) bool { return true }
	}
	return &Tiered{opts: o, local: o.Local}
}

// Get implements [store.Store]. What memory has is returned even if it is stale:
// whoever refreshes it asks the fleet, and hears of what is newer there.
func (t *Tiered) Get(
	ctx context.Context, key *cachepolicy.Key, req httpcache.Fields, now time.Time,
) (store.Result, error) {
	local, err := t.local.Get(ctx, key, req, now)
	if err != nil || local.Entry != nil {
		return local, err
	}
	epoch, ok := t.opts.Fleet.Reading()
	if !ok {
		return local, nil
	}
	shared, err := t.opts.Shared.Get(ctx, key, req, now)
	switch {
	case err != nil:
		t.failed("read", err)
		return local, nil
	case shared.Entry == nil || !t.opts.Fleet.Read(epoch, shared.Entry):
		t.misses.Add(1)
		shared.Entry = nil
		if !shared.Known {
			return local, nil
		}
		return shared, nil
	}
	t.promoted.Add(1)
	// Redis holds no more variants than the policy allows.
	if err := t.local.Put(ctx, shared.Entry, cachepolicy.MaxVariants, now); err != nil {
		t.opts.Logger.Debug("A shared answer was not kept in memory", "uri", shared.Entry.URI, "error", err)
	}
	return shared, nil
}

// Put implements [store.Store].
func (t *Tiered) Put(ctx context.Context, e *store.Entry, maxVariants int, now time.Time) error {
	if !e.Body.Whole() {
		return store.ErrNotWhole
	}
	kept := e
	if t.opts.Shares(e) {
		kept = t.share(ctx, e, maxVariants)
	}
	return t.local.Put(ctx, kept, maxVariants, now)
}

// share stores e for all, and returns it as it is to be kept in memory.
func (t *Tiered) share(ctx context.Context, e *store.Entry, maxVariants int) *store.Entry {
	shared := *e
	shared.Birth = fleet.Shared(e.Birth)
	_, stored, err := t.opts.Shared.Commit(ctx, &shared, nil, maxVariants)
	if err != nil {
		t.failed("write", err)
	}
	out := *e
	out.Shared = stored.Shared
	return &out
}

// Update implements [store.Store]. fn is called for what each of the two has.
func (t *Tiered) Update(
	ctx context.Context, key *cachepolicy.Key, now time.Time, fn func([]*store.Entry) []*store.Entry,
) error {
	if err := t.opts.Shared.Update(ctx, key, now, fn); err != nil {
		t.failed("update", err)
	}
	return t.local.Update(ctx, key, now, fn)
}

// Delete implements [store.Store].
func (t *Tiered) Delete(ctx context.Context, key *cachepolicy.Key) error {
	if err := t.opts.Shared.Delete(ctx, key); err != nil {
		t.failed("delete", err)
	}
	return t.local.Delete(ctx, key)
}

func (t *Tiered) failed(what string, err error) {
	t.errors.Add(1)
	t.opts.Logger.Debug("Redis did not take part", "what", what, "error", err)
}

// Stats counts what a [Tiered] did.
type Stats struct {
	Promoted uint64 // entries that memory did not have and Redis had
	Misses   uint64 // look-ups that Redis had no answer for either
	Errors   uint64 // calls that Redis did not take part in
}

// Stats returns the counts so far.
func (t *Tiered) Stats() Stats {
	return Stats{Promoted: t.promoted.Load(), Misses: t.misses.Load(), Errors: t.errors.Load()}
}

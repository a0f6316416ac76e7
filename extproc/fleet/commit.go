package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/store/redis"
)

// Errors of [Fleet.Commit].
var (
	// ErrFenced says that another process has the lease by now, or has stored.
	ErrFenced = errors.New("another process fetches this by now")
	// ErrOutlived says that an answer is stored whose fetch saw an invalidation that
	// this one did not.
	ErrOutlived = errors.New("a later invalidation has been answered already")
	// ErrOver says that the lease was ended before.
	ErrOver = errors.New("the lease has ended")
)

// commitLimit bounds the end of a lease: what ends it, does so whatever became of
// the request.
const commitLimit = 2 * time.Second

// Commit ends the lease with its answer: it stores e for all, if nobody was given
// a newer token, and wakes who waits. It returns the entry as the process should
// keep it. An answer that cannot be stored for all ends the lease as one that
// cannot be shared.
//
// After a 304, old is the entry that was validated: e has the same body, which is
// then not written again. It is nil otherwise. The context's end does not count.
func (f *Fleet) Commit(ctx context.Context, l *Lease, e, old *store.Entry) (*store.Entry, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitLimit)
	defer cancel()
	if !l.end() {
		return e, ErrOver
	}
	if !Shares(l.claim.Policy) || e.Vary.Any {
		return e, f.settled(ctx, l, redis.WakeUncacheable)
	}
	shared := *e
	shared.Birth = Shared(e.Birth)
	verdict, kept, err := f.store.Commit(ctx, &shared, &redis.Fence{
		Variant: l.variant, Owner: l.owner, Token: l.token, Clock: l.clock, Old: old,
	}, l.claim.Policy.Storage.MaxVariants)
	switch {
	case err != nil: // too large, or Redis is away, or full: it may still wake who waits
		return e, errors.Join(fmt.Errorf("fleet commit: %w", err), f.settled(ctx, l, redis.WakeUncacheable))
	}
	switch verdict {
	case redis.Fenced:
		return e, ErrFenced
	case redis.Outlived:
		return e, ErrOutlived
	case redis.Expired:
		return e, nil
	}
	out := *e
	out.Shared = kept.Shared
	return &out, nil
}

// Settlement is how a lease ends without an answer for all.
type Settlement uint8

// The settlements.
const (
	// Release: the fetch was given up; another may try.
	Release Settlement = iota
	// Uncacheable: the answer cannot be shared; those who wait go on all together,
	// and for a while nobody waits.
	Uncacheable
	// FetchFailed: the origin failed; those who wait are told.
	FetchFailed
)

// Settle ends the lease without an answer for all. The context's end does not
// count.
func (f *Fleet) Settle(ctx context.Context, l *Lease, how Settlement) error {
	if !l.end() {
		return ErrOver
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitLimit)
	defer cancel()
	return f.settled(ctx, l, [...]redis.Wake{redis.WakeFree, redis.WakeUncacheable, redis.WakeFailed}[how])
}

// Release gives the lease back: another may try.
func (l *Lease) Release(ctx context.Context) error { return l.fleet.Settle(ctx, l, Release) }

func (f *Fleet) settled(ctx context.Context, l *Lease, how redis.Wake) error {
	r, err := f.store.Run(ctx, f.settle, l.keys(), l.token, l.owner, string(how), f.opts.Mark.Microseconds(),
		l.name.Channel(), how.Message(l.name, l.variant, l.token))
	switch {
	case err != nil:
		return fmt.Errorf("fleet settle: %w", err)
	case r.Text(0) != "settled":
		return ErrFenced
	}
	return nil
}

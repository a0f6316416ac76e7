package fleet

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirproxy/weir/extproc/store/redis"
)

// Lease is the right to fetch one variant of a resource for the fleet. Exactly one
// of Fleet.Commit, Fleet.Settle and Release ends it; after the first of them the
// others do nothing. It is safe for concurrent use.
type Lease struct {
	fleet   *Fleet
	claim   Claim
	name    redis.Name
	variant string
	owner   string
	token   uint64
	clock   *redis.Clock
	began   time.Time // when the claim was sent

	progress atomic.Bool // since the last renewal
	started  atomic.Bool // the first byte came
	lost     chan struct{}

	mu    sync.Mutex
	timer *time.Timer // of the next renewal; nil once the lease is over
	until time.Time   // when the lease ends in Redis, at the earliest
}

// newLease returns a lease that was granted in answer to what was sent at sent.
func (f *Fleet) newLease(
	c *Claim, variant, owner string, token uint64, clock *redis.Clock, sent time.Time,
) *Lease {
	l := &Lease{
		fleet: f, claim: *c, name: redis.NameOf(c.Key), variant: variant, owner: owner, token: token, clock: clock,
		began: sent, until: sent.Add(f.opts.LeaseLife), lost: make(chan struct{}),
	}
	f.counts.leases.Add(1)
	f.counts.held.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = time.AfterFunc(f.opts.LeaseLife/3, l.tick)
	return l
}

// Token returns the fencing token.
func (l *Lease) Token() uint64 { return l.token }

// Progress says that the fetch made progress: the lease goes on living.
func (l *Lease) Progress() {
	l.started.Store(true)
	l.progress.Store(true)
}

// Lost is closed when the lease is no longer the caller's, or may not be: another
// fetches. What the caller fetches can still be served to those who wait for it
// here.
func (l *Lease) Lost() <-chan struct{} { return l.lost }

// tick renews the lease if its fetch is alive. It is called three times in the
// life of a lease.
func (l *Lease) tick() {
	sent := l.fleet.opts.Now()
	alive := l.progress.Swap(false) || !l.started.Load() && sent.Sub(l.began) < l.fleet.opts.FirstByte
	var err error
	if alive {
		err = l.renew()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer == nil {
		return
	}
	now := l.fleet.opts.Now()
	switch {
	case alive && err == nil:
		l.until = sent.Add(l.fleet.opts.LeaseLife)
	case alive && !errors.Is(err, errLost):
		l.progress.Store(true) // not told: try again
	}
	if errors.Is(err, errLost) || !now.Before(l.until) {
		l.timer = nil
		l.fleet.counts.held.Add(-1)
		l.fleet.counts.lost.Add(1)
		close(l.lost)
		return
	}
	l.timer = time.AfterFunc(min(l.fleet.opts.LeaseLife/3, l.until.Sub(now)), l.tick)
}

// errLost says that the lease in Redis is another's.
var errLost = errors.New("the lease is another's by now")

// renew makes the lease live on in Redis.
func (l *Lease) renew() error {
	ctx, cancel := context.WithTimeout(context.Background(), l.fleet.opts.Claim)
	defer cancel()
	r, err := l.fleet.store.Run(ctx, l.fleet.renew, l.keys(), l.token, l.owner, l.fleet.opts.LeaseLife.Microseconds())
	switch {
	case err != nil:
		return err
	case r.Text(0) != "kept":
		return errLost
	}
	l.fleet.counts.renewals.Add(1)
	return nil
}

func (l *Lease) keys() []string { return []string{l.name.Primary(), l.name.Lease(l.variant)} }

// end ends the renewals; false if they had ended before.
func (l *Lease) end() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer == nil {
		return false
	}
	l.timer.Stop()
	l.timer = nil
	l.fleet.counts.held.Add(-1)
	return true
}

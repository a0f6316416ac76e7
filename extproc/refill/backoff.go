package refill

import (
	"container/list"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Defaults of BackoffOptions and Budget.
const (
	DefaultBackoffBase    = time.Second
	DefaultBackoffMax     = time.Minute
	DefaultBackoffMaxKeys = 16384
)

// BackoffOptions configure a Backoff; the zero value is usable.
type BackoffOptions struct {
	Base    time.Duration // upper bound of the first wait
	Max     time.Duration // upper bound of all waits
	MaxKeys int           // bound on failing keys; the one that failed longest ago is forgotten
}

// Backoff remembers which keys failed to be fetched, and when each may be tried
// again, so that an origin that is down is not asked by every request that finds
// a stale copy. It is safe for concurrent use.
type Backoff struct {
	opts BackoffOptions

	mu    sync.Mutex
	byKey map[string]*list.Element
	order *list.List // of failing; the front failed last
}

type failing struct {
	key      string
	failures int
	next     time.Time
}

// NewBackoff returns a Backoff that knows of no failure.
func NewBackoff(o BackoffOptions) *Backoff {
	if o.Base <= 0 {
		o.Base = DefaultBackoffBase
	}
	if o.Max <= 0 {
		o.Max = DefaultBackoffMax
	}
	if o.MaxKeys <= 0 {
		o.MaxKeys = DefaultBackoffMaxKeys
	}
	return &Backoff{opts: o, byKey: make(map[string]*list.Element), order: list.New()}
}

// Waiting reports whether key failed and is not to be tried yet. It costs the
// budget nothing.
func (b *Backoff) Waiting(key string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.byKey[key]
	return ok && now.Before(e.Value.(*failing).next)
}

// Try reports whether key may be fetched now. The fetch of a key that failed
// before is a retry: it must be due, and is paid from budget. The caller then
// reports with Failed or Succeeded how it went; until it does, others are kept
// from retrying for as long as another wait would be.
func (b *Backoff) Try(key string, budget *Budget, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.byKey[key]
	if !ok {
		return true
	}
	f := e.Value.(*failing)
	if now.Before(f.next) || !budget.spend(now) {
		return false
	}
	f.next = now.Add(BackoffDelay(f.failures, b.opts.Base, b.opts.Max, 1))
	return true
}

// Failed notes that the fetch of key failed; u in [0,1) is the draw of the
// jitter. It returns how long to wait.
func (b *Backoff) Failed(key string, u float64, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.byKey[key]
	if ok {
		b.order.MoveToFront(e)
	} else {
		e = b.order.PushFront(&failing{key: key})
		b.byKey[key] = e
		if b.order.Len() > b.opts.MaxKeys {
			b.forget(b.order.Back())
		}
	}
	f := e.Value.(*failing)
	f.failures++
	wait := BackoffDelay(f.failures, b.opts.Base, b.opts.Max, u)
	f.next = now.Add(wait)
	return wait
}

// Succeeded forgets the failures of key.
func (b *Backoff) Succeeded(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, ok := b.byKey[key]; ok {
		b.forget(e)
	}
}

// Len returns the number of failing keys.
func (b *Backoff) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.byKey)
}

func (b *Backoff) forget(e *list.Element) {
	delete(b.byKey, b.order.Remove(e).(*failing).key)
}

// BackoffDelay returns how long to wait after so many failures in a row, from 1
// on: half of min(limit, base·2^(failures−1)), and a share u of the other half, so
// that keys which failed together are not tried together.
func BackoffDelay(failures int, base, limit time.Duration, u float64) time.Duration {
	d := float64(base) * math.Pow(2, float64(max(failures, 1)-1))
	d = min(d, float64(limit))
	return time.Duration(d/2 + d/2*u)
}

// Budget bounds the retries of one policy per second, however many of its keys
// fail. It is safe for concurrent use; nil is no bound.
type Budget struct{ limiter *rate.Limiter }

// NewBudget returns a Budget of so many retries per second, and at most that many
// (at least 1) at a time.
func NewBudget(perSecond float64) *Budget {
	return &Budget{rate.NewLimiter(rate.Limit(perSecond), max(int(perSecond), 1))}
}

func (b *Budget) spend(now time.Time) bool { return b == nil || b.limiter.AllowN(now, 1) }

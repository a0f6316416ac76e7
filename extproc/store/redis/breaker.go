package redis

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// ErrOpen is the error of commands for a node that is left alone.
var ErrOpen = errors.New("redis is left alone: it failed or was slow (circuit open)")

// breaker is the circuit of one node, as a hook of its client. It is closed until
// too many commands in a row failed or were slow; then open until a probe by Run
// succeeds in time.
type breaker struct {
	guard *Guard
	addr  string
	ping  atomic.Pointer[func(context.Context) error]

	isOpen                         atomic.Bool
	failing                        atomic.Int32 // failures in a row
	opens, refused, failures, slow atomic.Uint64

	mu     sync.Mutex
	due    time.Time     // of the next probe
	pause  time.Duration // until then, before chance
	closed time.Time     // when the circuit was closed last
}

// background marks contexts of commands that pass an open circuit.
type background struct{}

// Background returns a context whose commands are sent although the circuit is
// open: for the few goroutines of a process that nobody waits for.
func Background(ctx context.Context) context.Context {
	return context.WithValue(ctx, background{}, true)
}

func (b *breaker) setPing(node *goredis.Client) {
	ping := func(ctx context.Context) error {
		return node.Ping(Background(ctx)).Err()
	}
	b.ping.Store(&ping)
}

// DialHook implements [goredis.Hook].
func (b *breaker) DialHook(next goredis.DialHook) goredis.DialHook { return next }

// ProcessHook implements [goredis.Hook].
func (b *breaker) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		if b.refuses(ctx) {
			cmd.SetErr(ErrOpen)
			return ErrOpen
		}
		start := time.Now()
		err := next(ctx, cmd)
		took := time.Since(start)
		limit := b.guard.opts.Slow
		if cmd.Name() == "xread" {
			limit = 0
		}
		b.guard.opts.Observe(cmd.Name(), took, err)
		b.report(err, took, limit)
		return err
	}
}

// ProcessPipelineHook implements [goredis.Hook].
func (b *breaker) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		if b.refuses(ctx) {
			for _, cmd := range cmds {
				cmd.SetErr(ErrOpen)
			}
			return ErrOpen
		}
		start := time.Now()
		err := next(ctx, cmds)
		took := time.Since(start)
		b.guard.opts.Observe("pipeline", took, err)
		b.report(err, took, 0)
		return err
	}
}

func (b *breaker) refuses(ctx context.Context) bool {
	if !b.isOpen.Load() || ctx.Value(background{}) != nil {
		return false
	}
	b.refused.Add(1)
	return true
}

// report takes in how a command went; slow is how long it may take, 0 for any
// time.
func (b *breaker) report(err error, took, slow time.Duration) {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded) && took < b.guard.opts.Slow:
		return // the caller's impatience says nothing of Redis
	case unavailable(err):
		b.failures.Add(1)
	case slow > 0 && took > slow:
		b.slow.Add(1)
	default:
		b.failing.Store(0)
		return
	}
	if int(b.failing.Add(1)) >= b.guard.opts.Failures {
		b.open(time.Now())
	}
}

// unavailable reports whether an error says that the node does not serve. A reply
// to the point, such as that memory is full, says that it does.
func unavailable(err error) bool {
	var reply goredis.Error
	switch {
	case err == nil, errors.Is(err, goredis.Nil):
		return false
	case goredis.IsLoadingError(err), goredis.IsReadOnlyError(err), goredis.IsClusterDownError(err),
		goredis.IsMasterDownError(err), goredis.IsMaxClientsError(err):
		return true
	case errors.As(err, &reply):
		return false
	}
	return true
}

// backSoon is how long a circuit must have been closed for the pauses to start
// over.
const backSoon = 10 * time.Second

func (b *breaker) open(now time.Time) {
	if b.isOpen.Swap(true) {
		return
	}
	b.opens.Add(1)
	b.mu.Lock()
	if b.pause == 0 || now.Sub(b.closed) > backSoon {
		b.pause = b.guard.opts.MinPause
	}
	b.wait(now)
	b.mu.Unlock()
	select {
	case b.guard.opened <- struct{}{}:
	default:
	}
}

// wait sets the time of the next probe. The caller holds mu.
func (b *breaker) wait(now time.Time) {
	b.due = now.Add(b.pause/2 + rand.N(b.pause/2+1))
	b.pause = min(2*b.pause, b.guard.opts.MaxPause)
}

// probeIn returns how long it is until the next probe, if the circuit is open.
func (b *breaker) probeIn(now time.Time) (time.Duration, bool) {
	if !b.isOpen.Load() {
		return 0, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.due.Sub(now), true
}

// probe closes the circuit if the node answers in time. That is the half-open
// state: nothing but the probe passes.
func (b *breaker) probe(ctx context.Context) {
	start := time.Now()
	err := (*b.ping.Load())(ctx)
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil || now.Sub(start) > b.guard.opts.Slow {
		b.wait(now)
		return
	}
	b.closed = now
	b.failing.Store(0)
	b.isOpen.Store(false)
}

func (b *breaker) addTo(s *GuardStats) {
	if b.isOpen.Load() {
		s.Open++
	}
	s.Opened += b.opens.Load()
	s.Refused += b.refused.Load()
	s.Failures += b.failures.Load()
	s.Slow += b.slow.Load()
}

package extproc

import (
	"context"
	"sync"
)

// background is the work that outlives the stream that began it: detached fetches,
// and what is told to the fleet. Safe for concurrent use.
type background struct {
	ctx  context.Context //nolint:containedctx // the life of the work, not of a call
	stop context.CancelFunc

	mu      sync.Mutex
	idle    sync.Cond // running is 0
	closed  bool
	running int
}

func newBackground() *background {
	b := &background{}
	b.idle.L = &b.mu
	b.ctx, b.stop = context.WithCancel(context.Background())
	return b
}

// do runs f in a goroutine of its own; false if close has returned and f does not
// run.
func (b *background) do(f func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.running++
	go func() {
		defer b.done()
		f()
	}()
	return true
}

func (b *background) done() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running--; b.running == 0 {
		b.idle.Broadcast()
	}
}

// close cancels all work and waits for it, and for what it begins meanwhile: a
// fetch that is cancelled still gives its lease back.
func (b *background) close() {
	b.stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.running > 0 {
		b.idle.Wait()
	}
	b.closed = true
}

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
	closed  bool
	running sync.WaitGroup
}

func newBackground() *background {
	b := &background{}
	b.ctx, b.stop = context.WithCancel(context.Background())
	return b
}

// do runs f in a goroutine of its own; false if close has begun and f does not run.
func (b *background) do(f func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.running.Go(f)
	return true
}

// close cancels all work and waits for it.
func (b *background) close() {
	b.stop()
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.running.Wait()
}

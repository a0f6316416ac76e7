package fleet

import (
	"context"
	"sync"
	"sync/atomic"
)

// maxPending bounds what one process keeps to tell the fleet once Redis is back.
// Over it everything is invalidated instead: that costs fetches, no wrong answer.
const maxPending = 4096

// flushSize is how many of them one script takes.
const flushSize = 256

// pending are the stamps that this process has set while Redis was away.
type pending struct {
	epoch atomic.Uint64 // counts what was queued
	some  atomic.Bool   // there are some, or being told
	mu    sync.Mutex
	texts map[string]struct{}
}

// queue stamps in this process, and keeps the stamps for the fleet.
func (f *Fleet) queue(list []Invalidation) {
	now := f.opts.Now()
	f.pending.mu.Lock()
	defer f.pending.mu.Unlock()
	f.pending.epoch.Add(1) // before the stamps: see Fleet.Read
	f.pending.some.Store(true)
	if f.pending.texts == nil {
		f.pending.texts = map[string]struct{}{}
	}
	for i := range list {
		f.stamps.Add(list[i].Kind, list[i].Namespace, list[i].Value, list[i].Mode, now)
		f.pending.texts[list[i].name().text(list[i].Mode)] = struct{}{}
	}
	if len(f.pending.texts) > maxPending {
		clear(f.pending.texts)
		f.pending.texts[name{kind: ByAll}.text(Hard)] = struct{}{}
	}
	f.counts.queued.Add(uint64(len(list)))
}

// flush tells the fleet what is pending. What fails stays.
func (f *Fleet) flush(ctx context.Context) error {
	for {
		batch := f.pending.take(flushSize)
		if len(batch) == 0 {
			f.pending.settle()
			return nil
		}
		history, applied := f.knows()
		args := []any{applied, history, everything(), f.opts.MaxStamps, streamLength, 1, f.follower.others()}
		for _, text := range batch {
			args = append(args, text)
		}
		if _, err := f.store.Run(ctx, f.stamp, f.stampKeys(), args...); err != nil {
			f.pending.putBack(batch)
			return err
		}
	}
}

func (p *pending) take(n int) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var batch []string
	for text := range p.texts {
		if len(batch) == n {
			break
		}
		batch = append(batch, text)
		delete(p.texts, text)
	}
	return batch
}

func (p *pending) putBack(batch []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, text := range batch {
		p.texts[text] = struct{}{}
	}
}

// settle notes that all is told, if that is so.
func (p *pending) settle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.some.Store(len(p.texts) > 0)
}

func (p *pending) len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.texts)
}

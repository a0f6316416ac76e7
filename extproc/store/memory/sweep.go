package memory

import (
	"context"
	"math"
	"time"
)

const (
	// sweepPerWrite is how many slots each Put looks at for expired entries, so that
	// a busy store is swept even if nobody calls Sweep.
	sweepPerWrite = 16
	// sweepStep is how many slots Sweep looks at before it lets writers in.
	sweepStep = 4096
)

// Run sweeps every interval until ctx ends.
func (m *Memory) Run(ctx context.Context, interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			m.Sweep(now)
		case <-ctx.Done():
			return
		}
	}
}

// Sweep removes all entries that are past their last window at now. It looks at
// four bytes for each slot of the table, and at the nodes that are due.
func (m *Memory) Sweep(now time.Time) {
	for left := len(m.table.Load().slots); left > 0; left -= sweepStep {
		m.mu.Lock()
		m.sweep(sweepStep, now)
		m.mu.Unlock()
	}
}

// sweep looks at the next slots, at most the whole table. The caller holds mu.
func (m *Memory) sweep(slots int, now time.Time) {
	t := m.table.Load()
	second := m.second(now)
	for range min(slots, len(t.slots)) {
		i := m.swept
		m.swept = (m.swept + 1) & (len(t.slots) - 1)
		if at := t.expires[i]; at == 0 || at > second {
			continue
		}
		n := t.slots[i].Load()
		kept := usefulOf(n, now)
		m.stats.Evicted.Expired += uint64(len(n.variants()) - len(kept))
		m.replace(n.key(), n, kept)
	}
}

// second returns a time as the table counts it: seconds since a second before the
// store's first write, at least 1, and at most what 32 bits hold.
func (m *Memory) second(t time.Time) uint32 {
	if m.epoch.IsZero() {
		m.epoch = t
	}
	return uint32(min(max(t.Sub(m.epoch)/time.Second, 0)+1, math.MaxUint32))
}

// expirySecond returns the first second in which the node has an expired entry
// for certain.
func (m *Memory) expirySecond(n *node) uint32 {
	return m.second(n.expiresAt().Add(time.Second - 1))
}

package fleet

import (
	"sync/atomic"
	"time"
)

type counts struct {
	claims, waits                    [states]atomic.Uint64
	leases, renewals, lost           atomic.Uint64
	wakes, looks                     atomic.Uint64
	held                             atomic.Int64
	beats, losses, histories, queued atomic.Uint64
}

// Stats is the state of a [Fleet].
type Stats struct {
	Claims, Waits [states]uint64 // by State
	Leases        uint64         // granted
	Held          int            // of these, not ended yet
	Renewals      uint64
	Lost          uint64 // leases that ended before their fetch
	Waiting       int    // callers of Wait
	Wakes         uint64 // messages that came
	Looks         uint64 // times that a waiter looked without a message
	Beats         uint64 // round trips to say that we are alive
	InTouch       bool
	SilentFor     time.Duration // since Redis answered last; 0 before it did
	Losses        uint64        // times that Redis went away
	Histories     uint64        // times that Redis came back with another history
	Queued        uint64        // invalidations that Redis did not take at once
	Pending       int           // of these, not told yet
	Position      uint64        // up to which all stamps of the fleet are applied
}

// Stats returns the state of the membership.
func (f *Fleet) Stats() Stats {
	c := &f.counts
	_, applied := f.knows()
	s := Stats{
		Leases: c.leases.Load(), Held: int(c.held.Load()), Renewals: c.renewals.Load(),
		Lost: c.lost.Load(), Waiting: f.waiters.len(),
		Wakes: c.wakes.Load(), Looks: c.looks.Load(), InTouch: f.InTouch(), Losses: c.losses.Load(),
		Histories: c.histories.Load(), Beats: c.beats.Load(), Queued: c.queued.Load(),
		Pending: f.pending.len(), Position: applied,
	}
	for i := range s.Claims {
		s.Claims[i], s.Waits[i] = c.claims[i].Load(), c.waits[i].Load()
	}
	if heard := f.follower.heard.Load(); heard != 0 {
		s.SilentFor = f.opts.Now().Sub(f.started) - time.Duration(heard)
	}
	return s
}

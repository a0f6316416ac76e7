package flight

// Abandon hands the flight over: the leader's client went away, or a detached
// fetch was cancelled. If nobody wants the answer the flight ends. Else TakeOver
// may start a detached fetch, which leads the same flight on; failing that, or if
// it was such a fetch that is abandoned, the waiter with the most time left is
// promoted. In the middle of a body, which some
// are reading, the successor may continue it (see Resume); without one it breaks.
func (l *Lead) Abandon() {
	f := l.flight
	f.shard.mu.Lock()
	switch {
	case f.lead != l:
		f.shard.mu.Unlock()
	case f.entry != nil:
		next := f.succeedAbandoned()
		f.shard.mu.Unlock()
		if next == nil {
			l.close(ErrAbandoned)
			return
		}
		f.source.drop(ErrAbandoned)
		next.handOver()
	case len(f.waiters) == 0:
		f.end()
		f.shard.mu.Unlock()
		if f.source != nil {
			f.source.drop(ErrAbandoned)
		}
	case f.group.opts.TakeOver == nil || l.unwanted != nil:
		f.shard.mu.Unlock()
		l.promote()
	default:
		f.offered = &Lead{flight: f, party: f.waiters[0].party, unwanted: make(chan struct{})}
		f.lead = f.offered
		f.shard.mu.Unlock()
		f.handOver()
	}
}

// handOver finds an owner for the lead that f.offered is.
func (f *Flight) handOver() {
	lead, g := f.Lead(), f.group
	started := false
	// A panic in TakeOver must not leave a flight without an owner behind.
	defer func() {
		if !started {
			lead.promote()
		}
	}()
	started = g.opts.TakeOver(f)
	if g.opts.Observer.TookOver != nil {
		g.opts.Observer.TookOver(started)
	}
}

// promote makes the waiter with the most time left the leader in place of l, or
// ends the flight if nobody waits.
func (l *Lead) promote() {
	f := l.flight
	f.shard.mu.Lock()
	if f.lead != l || f.entry != nil {
		f.shard.mu.Unlock()
		return
	}
	if len(f.waiters) == 0 {
		f.end()
		f.shard.mu.Unlock()
		if f.source != nil {
			f.source.drop(ErrAbandoned)
		}
		return
	}
	w := f.waiters.pop()
	w.leftQueue()
	f.group.waiters.Add(-1)
	f.lead = &Lead{flight: f, party: w.party}
	// Under the lock, so that Leave knows: what w was to be told is in its channel.
	w.tell(News{Kind: NewsLead, Lead: f.lead}, nil)
	f.shard.mu.Unlock()
	f.group.told(NewsLead, 1)
}

// endIfUnwanted ends a flight that was taken over for waiters who all left, and
// returns the lead to tell; the caller holds shard.mu.
func (f *Flight) endIfUnwanted() *Lead {
	l := f.lead
	if l == nil || l.unwanted == nil || f.entry != nil || len(f.waiters) > 0 {
		return nil
	}
	f.end()
	return l
}

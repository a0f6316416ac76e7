package flight

// Attach gives the flight something that its fetch needs, whoever leads it: a
// lease of the fleet, for one. It replaces what was attached before and returns
// it. If the flight is over already, v goes to Options.Dropped.
func (l *Lead) Attach(v any) (before any) {
	f := l.flight
	f.shard.mu.Lock()
	over := f.lead != l
	if !over {
		before, f.attached = f.attached, v
	}
	f.shard.mu.Unlock()
	if over {
		f.group.drop(v)
	}
	return before
}

// Attached returns what is attached to the flight; nil if it is over.
func (l *Lead) Attached() any {
	f := l.flight
	f.shard.mu.Lock()
	defer f.shard.mu.Unlock()
	if f.lead != l {
		return nil
	}
	return f.attached
}

// Detach takes back what was attached: the caller sees to it.
func (l *Lead) Detach() any { return l.Attach(nil) }

// drop hands what a flight leaves behind to Options.Dropped. When the last lead is
// closed nothing is left to be handed over: whoever shuts down may rely on that.
func (g *Group) drop(v any) {
	if v != nil && g.opts.Dropped != nil {
		g.opts.Dropped(v)
	}
}

package flight

// Outgrown hides the flight from those who join later: its body is larger than
// what may be kept, so it is only passed along. It reports whether anybody reads
// it; if not, the rest need not come.
func (l *Lead) Outgrown() bool {
	f := l.flight
	f.shard.mu.Lock()
	defer f.shard.mu.Unlock()
	if f.lead != l || f.entry == nil {
		return false
	}
	f.shard.forget(f)
	return f.source.splice.tailers.Load() > 0
}

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

// Lags reports whether a waiter that reads the body has yet to take a byte that
// lies further than window before the body's end. Of an outgrown body nothing is
// kept beyond its window: the lead writes more when nobody lags.
func (l *Lead) Lags(window int64) bool {
	src := l.writes()
	return src != nil && src.splice.behind(src.splice.body.Len()-window)
}

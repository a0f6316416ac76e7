package flight

import (
	"container/heap"
	"slices"

	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store"
)

// ReleaseButOne is Release for the answer of a detached fetch that may serve one
// request only: one of the waiters that it fits is told NewsAnswer, with the
// reason, so that the origin is not asked twice on its behalf; the others are told
// NewsFetch. The returned function reports whether the one still reads; it is nil
// if there was none. The caller writes e.Body itself.
func (l *Lead) ReleaseButOne(
	e *store.Entry, mark bool, reason httpcache.Reason, fits func(req httpcache.Fields) bool,
) (wanted func() bool) {
	f := l.flight
	f.shard.mu.Lock()
	if f.lead != l || f.entry != nil {
		f.shard.mu.Unlock()
		l.Release(mark, reason)
		return nil
	}
	var one *Waiter
	if i := slices.IndexFunc(f.waiters, func(w *Waiter) bool { return fits(w.party.req) }); i >= 0 {
		one = heap.Remove(&f.waiters, i).(*Waiter)
		one.leftQueue()
		f.group.waiters.Add(-1)
	}
	f.shard.mu.Unlock()
	l.Release(mark, reason)
	if one == nil {
		return nil
	}
	from := newSplice(e.Body, e.ResponseTime)
	one.tell(News{Kind: NewsAnswer, Entry: e, Reason: reason}, from)
	f.group.told(NewsAnswer, 1)
	return func() bool { return from.tailers.Load() > 0 }
}

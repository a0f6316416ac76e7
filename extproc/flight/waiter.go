package flight

import (
	"container/heap"
	"sync/atomic"
	"time"

	"github.com/weirproxy/weir/extproc/store"
)

// notWaiting is the index of a waiter that is in no flight's queue.
const notWaiting = -1

// Waiter is one follower of a flight. C may be read by one goroutine; Leave is
// called when that one reads no more.
type Waiter struct {
	flight   *Flight
	party    party
	deadline time.Time
	c        chan News // holds the one News, so that telling never waits

	index int          // in flight.waiters, guarded by shard.mu
	stage atomic.Int32 // stageWaiting and so on
	tails *splice      // what it reads; set before stageTailing
	taken atomic.Int64 // bytes of that which it has taken
}

// The stages of a waiter.
const (
	stageWaiting int32 = iota
	stageTold          // it is in no queue, and what it was told is in its channel
	stageTailing       // it was told NewsAnswer, or is about to be
	stageLeft
)

// C brings the one News.
func (w *Waiter) C() <-chan News { return w.c }

// Birth returns the invalidation position at which the flight began
// (Limits.Position of the request that began it). A follower that came after an
// invalidation that covers its URL must not take that flight's answer: it calls
// Cut and joins again.
func (w *Waiter) Birth() uint64 { return w.flight.birth }

// Took says that n more bytes of the answer's body were taken, for Lead.Lags.
func (w *Waiter) Took(n int) { w.taken.Add(int64(n)) }

// Leave ends the wait, or the reading of the answer's body. It starts nothing.
// If the waiter was promoted and did not read the News, the lead is handed on.
// Leaving again does nothing.
func (w *Waiter) Leave() {
	switch w.stage.Swap(stageLeft) {
	case stageWaiting:
		w.quit()
	case stageTailing:
		w.tails.leave(w)
	}
	// A promotion is sent under the lock: it is in the channel by now, or was read.
	select {
	case n := <-w.c:
		if n.Lead != nil {
			n.Lead.Abandon()
		}
	default:
	}
}

// quit takes the waiter out of the queue, if it is still there.
func (w *Waiter) quit() {
	f := w.flight
	f.shard.mu.Lock()
	var unwanted *Lead
	if w.index != notWaiting && w.index < len(f.waiters) && f.waiters[w.index] == w {
		heap.Remove(&f.waiters, w.index)
		w.leftQueue()
		f.group.waiters.Add(-1)
		unwanted = f.endIfUnwanted()
	}
	f.shard.mu.Unlock()
	if unwanted != nil {
		close(unwanted.unwanted)
	}
}

// Cut leaves, and hides the flight from those who join later: its fetch began
// before an invalidation. Those who came before that still get its answer.
func (w *Waiter) Cut() {
	s := w.flight.shard
	s.mu.Lock()
	s.forget(w.flight)
	s.mu.Unlock()
	w.Leave()
}

// leftQueue counts the waiter out of its policy's bound.
func (w *Waiter) leftQueue() {
	if n := w.party.lim.Waiters; n != nil {
		n.Add(-1)
	}
}

// tell delivers the news, whose entry's body is written through from; the caller
// took w out of the queue, or never put it there.
func (w *Waiter) tell(n News, from *splice) {
	if n.Kind != NewsAnswer {
		w.c <- n // before the stage says so: see Leave
		w.stage.CompareAndSwap(stageWaiting, stageTold)
		return
	}
	w.tails = from
	from.enter(w)
	if !w.stage.CompareAndSwap(stageWaiting, stageTailing) {
		from.leave(w) // it left meanwhile
	}
	w.c <- n
}

// tellAll tells waiters that were taken out of their queue the same news.
func (g *Group) tellAll(all []*Waiter, n News) {
	for _, w := range all {
		w.leftQueue()
		w.tell(n, nil)
	}
	g.told(n.Kind, len(all))
}

// tellAnswer tells waiters that were taken out of their queue what e, whose body
// is written through from, means for each of them.
func (g *Group) tellAnswer(all []*Waiter, e *store.Entry, from *splice) {
	var counts [numNewsKinds]int
	for _, w := range all {
		n := newsOf(e, w.party.req)
		w.leftQueue()
		w.tell(n, from)
		counts[n.Kind]++
	}
	for k, n := range counts {
		g.told(NewsKind(k), n)
	}
}

func (g *Group) told(k NewsKind, n int) {
	if f := g.opts.Observer.Told; f != nil && n > 0 {
		f(k, n)
	}
}

// waiters is a heap with the waiter that has the most time left on top.
type waiters []*Waiter

func (q *waiters) push(w *Waiter) { heap.Push(q, w) }
func (q *waiters) pop() *Waiter   { return heap.Pop(q).(*Waiter) }

// Len, Less, Swap, Push and Pop are heap.Interface.
func (q waiters) Len() int           { return len(q) }
func (q waiters) Less(i, j int) bool { return q[i].deadline.After(q[j].deadline) }
func (q waiters) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func (q *waiters) Push(x any) {
	w := x.(*Waiter)
	w.index = len(*q)
	*q = append(*q, w)
}

func (q *waiters) Pop() any {
	last := len(*q) - 1
	w := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	w.index = notWaiting
	return w
}

package refill

import (
	"container/heap"
	"context"
	"errors"
	"sync"
	"time"
)

// ErrQueueFull says that as many fetches run and wait as a policy's originLimits
// allow.
var ErrQueueFull = errors.New("refill: originLimits are used up")

// Limiter admits fetches of one policy: so many at a time, while a ramp lasts so
// many a second, so many more in a queue, the most popular first. Leads, refills
// and followers that waited too long take their slots from the same one. It is
// safe for concurrent use.
type Limiter struct {
	mu         sync.Mutex
	ramp       *Ramp
	due        *time.Timer // grants what the ramp lets through next; nil: not needed yet
	maxRunning int
	maxQueue   int
	running    int
	queue      slotQueue
	sequence   uint64
	granted    uint64
	refused    uint64
}

// LimiterStats are the numbers of a Limiter. Running and Queued are zero when all
// work is over.
type LimiterStats struct {
	Running, Queued  int
	Granted, Refused uint64 // ever
	// Rate is how many fetches a second the ramp lets through; 0: it lets all.
	Rate float64
}

// NewLimiter returns a Limiter; see SetLimits. A nil ramp holds nothing back.
func NewLimiter(maxRunning, maxQueue int, ramp *Ramp) *Limiter {
	l := &Limiter{ramp: ramp}
	l.SetLimits(maxRunning, maxQueue)
	return l
}

// SetLimits changes the limits: how many fetches run at a time, at least 1, and
// how many wait. What runs or waits already, stays.
func (l *Limiter) SetLimits(maxRunning, maxQueue int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.maxRunning, l.maxQueue = max(maxRunning, 1), max(maxQueue, 0)
	l.grant()
}

// Slot is the right to fetch, or a place in the queue for it. Its owner calls
// Release, whatever happens.
type Slot struct {
	limiter    *Limiter
	popularity float64
	sequence   uint64
	granted    chan struct{} // closed once granted

	// Guarded by limiter.mu:
	state slotState
	index int // in the queue
}

type slotState int

const (
	slotQueued slotState = iota
	slotRunning
	slotReleased
)

// Restart begins the ramp anew: the cache is cold again.
func (l *Limiter) Restart(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ramp.Restart(now)
}

// Enqueue returns a slot whose Granted channel is closed when it may be used: at
// once, or after those who are more popular, or as popular and came earlier. The
// error is ErrQueueFull.
func (l *Limiter) Enqueue(popularity float64) (*Slot, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sequence++
	s := &Slot{limiter: l, popularity: popularity, sequence: l.sequence, granted: make(chan struct{})}
	heap.Push(&l.queue, s)
	l.grant()
	if s.state == slotQueued && len(l.queue) > l.maxQueue {
		heap.Remove(&l.queue, s.index)
		s.state = slotReleased
		l.refused++
		return nil, ErrQueueFull
	}
	return s, nil
}

// Acquire is Enqueue, and waits for the grant until ctx is done; then the error
// is the cause of that.
func (l *Limiter) Acquire(ctx context.Context, popularity float64) (*Slot, error) {
	s, err := l.Enqueue(popularity)
	if err != nil {
		return nil, err
	}
	select {
	case <-s.granted:
		return s, nil
	case <-ctx.Done():
		s.Release()
		return nil, context.Cause(ctx)
	}
}

// Granted is closed when the slot may be used.
func (s *Slot) Granted() <-chan struct{} { return s.granted }

// Release gives the slot back, or leaves the queue. Releasing again does nothing.
func (s *Slot) Release() {
	l := s.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	switch s.state {
	case slotQueued:
		heap.Remove(&l.queue, s.index)
	case slotRunning:
		l.running--
		l.grant()
	}
	s.state = slotReleased
}

// Stats returns the numbers of the limiter.
func (l *Limiter) Stats() LimiterStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return LimiterStats{
		Running: l.running, Queued: len(l.queue), Granted: l.granted, Refused: l.refused, Rate: l.ramp.Rate(time.Now()),
	}
}

// grant fills free slots from the queue, as fast as the ramp lets it; the caller
// holds mu. So nobody waits while a slot is free and the ramp has room.
func (l *Limiter) grant() {
	for l.running < l.maxRunning && len(l.queue) > 0 {
		if wait := l.ramp.Take(time.Now()); wait > 0 {
			l.grantIn(wait)
			return
		}
		s := heap.Pop(&l.queue).(*Slot)
		s.state = slotRunning
		l.running++
		l.granted++
		close(s.granted)
	}
}

// grantIn sees that grant is called again; the caller holds mu.
func (l *Limiter) grantIn(wait time.Duration) {
	if l.due != nil {
		l.due.Reset(wait)
		return
	}
	l.due = time.AfterFunc(wait, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.grant()
	})
}

// slotQueue is a heap with the most popular slot on top, the earliest of equals.
type slotQueue []*Slot

// Len, Less, Swap, Push and Pop are heap.Interface.
func (q slotQueue) Len() int { return len(q) }
func (q slotQueue) Less(i, j int) bool {
	if q[i].popularity != q[j].popularity {
		return q[i].popularity > q[j].popularity
	}
	return q[i].sequence < q[j].sequence
}

func (q slotQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func (q *slotQueue) Push(x any) {
	s := x.(*Slot)
	s.index = len(*q)
	*q = append(*q, s)
}

func (q *slotQueue) Pop() any {
	last := len(*q) - 1
	s := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return s
}

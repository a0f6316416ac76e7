package refill

import (
	"container/heap"
	"context"
	"errors"
	"sync"
)

// ErrQueueFull says that as many fetches run and wait as a policy's originLimits
// allow.
var ErrQueueFull = errors.New("refill: originLimits are used up")

// Limiter admits fetches of one policy: so many at a time, so many more in a
// queue, the most popular first. Leads, refills and followers that waited too
// long take their slots from the same one. It is safe for concurrent use.
type Limiter struct {
	mu         sync.Mutex
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
}

// NewLimiter returns a Limiter; see SetLimits.
func NewLimiter(maxRunning, maxQueue int) *Limiter {
	l := &Limiter{}
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

// TryAcquire returns a slot that may be used at once, or false: it neither waits
// nor goes before those who do.
func (l *Limiter) TryAcquire() (*Slot, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running >= l.maxRunning {
		l.refused++
		return nil, false
	}
	return l.admit(0), true
}

// Enqueue returns a slot whose Granted channel is closed when it may be used: at
// once, or after those who are more popular, or as popular and came earlier. The
// error is ErrQueueFull.
func (l *Limiter) Enqueue(popularity float64) (*Slot, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running < l.maxRunning {
		return l.admit(popularity), nil
	}
	if len(l.queue) >= l.maxQueue {
		l.refused++
		return nil, ErrQueueFull
	}
	s := l.newSlot(popularity)
	heap.Push(&l.queue, s)
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
	return LimiterStats{Running: l.running, Queued: len(l.queue), Granted: l.granted, Refused: l.refused}
}

// grant fills free slots from the queue; the caller holds mu. So the queue is
// empty whenever a slot is free, and who finds a free one overtakes nobody.
func (l *Limiter) grant() {
	for l.running < l.maxRunning && len(l.queue) > 0 {
		l.start(heap.Pop(&l.queue).(*Slot))
	}
}

// admit returns a running slot; the caller holds mu.
func (l *Limiter) admit(popularity float64) *Slot {
	s := l.newSlot(popularity)
	l.start(s)
	return s
}

func (l *Limiter) start(s *Slot) {
	s.state = slotRunning
	l.running++
	l.granted++
	close(s.granted)
}

func (l *Limiter) newSlot(popularity float64) *Slot {
	l.sequence++
	return &Slot{limiter: l, popularity: popularity, sequence: l.sequence, granted: make(chan struct{})}
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

package store

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
)

// ChunkSize is the largest chunk of a [Body], in bytes. It is also the largest
// allocation a body makes, so that a size is told by its chunks and the
// allocator never has to find a contiguous megabyte.
const ChunkSize = 64 << 10

// Errors of a [Body].
var (
	// ErrClosed says that the body had ended or was broken before the call.
	ErrClosed = errors.New("body has ended")
	// ErrLength breaks a body whose length is not the one its Content-Length
	// promised: such a response is incomplete (RFC 9112 §8) and is not stored
	// (RFC 9111 §3.3).
	ErrLength = errors.New("body length differs from Content-Length")
	// ErrLagged is what a reader reports that fell out of the window which Trim
	// left: its client must see the response break.
	ErrLagged = errors.New("reader lags behind the kept part of the body")
)

// BodyState says what a reader can expect of a [Body].
type BodyState uint32

// The states of a body, as a reader sees them.
const (
	BodyOpen   BodyState = iota // more may come
	BodyWhole                   // it has ended, and the reader has seen all of it
	BodyBroken                  // it will never be whole; Err says why
	BodyLagged                  // Trim dropped what this reader had yet to see
)

// Body is the content of one response: appended by one writer, read by any
// number of readers while it grows. Readers of an ended body take no lock.
//
// A reader counts chunks from 0 and calls Next. The boundaries of chunks that
// some reader has seen never move; what nobody has seen yet is gathered into
// chunks of up to [ChunkSize], so that small appends cost a reader nothing who
// comes later.
type Body struct {
	state  atomic.Uint32 // a BodyState; once it is not BodyOpen, all but mu is immutable
	mu     sync.Mutex
	length atomic.Int64
	// chunks are the held chunks. Only the last may have spare capacity.
	chunks [][]byte
	one    [1][]byte // backs chunks while there is one: the small body's only slice
	grow   *growth   // nil once the body is whole and complete
}

// growth is what a body needs only while it is open, trimmed or broken.
type growth struct {
	known   int64 // Content-Length, or -1
	first   int   // index of chunks[0] as readers count
	seen    int   // chunks below this index have been handed to a reader
	buffer  int   // index into chunks of the first one in the last buffer
	trimmed bool
	window  int64         // bytes to keep, if trimmed
	held    int64         // bytes in chunks
	changed chan struct{} // closed at the next change; nil while nobody waits
	err     error
}

// NewBody returns an open, empty body. known is the Content-Length, or -1; it
// sizes the chunks, and End checks it.
func NewBody(known int64) *Body {
	b := &Body{grow: &growth{known: max(known, -1)}}
	b.chunks = b.one[:0]
	return b
}

// WholeBody returns a body that has ended and is p, which must not be written to
// again: one slice, whatever its length. For a body that is part of an entry's
// Wire.
func WholeBody(p []byte) *Body {
	b := &Body{}
	if len(p) > 0 {
		b.one[0] = slices.Clip(p)
		b.chunks = b.one[:1]
	}
	b.length.Store(int64(len(p)))
	b.state.Store(uint32(BodyWhole))
	return b
}

// Append copies p to the end of the body and wakes the readers. It returns
// [ErrClosed] after End or Break. Only one goroutine may write at a time.
func (b *Body) Append(p []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stateNow() != BodyOpen {
		return ErrClosed
	}
	if len(p) == 0 {
		return nil
	}
	for len(p) > 0 {
		p = p[b.fill(p):]
	}
	b.slide()
	b.wake()
	return nil
}

// End says that the body has all its bytes. A body that is not as long as its
// Content-Length said breaks with [ErrLength] instead. End after End or Break
// does nothing.
func (b *Body) End() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stateNow() != BodyOpen {
		return
	}
	if g := b.grow; g.known >= 0 && g.known != b.Len() {
		b.breakOff(fmt.Errorf("%w: %d of %d bytes", ErrLength, b.Len(), g.known))
		return
	}
	b.settle()
	b.wake()
	if !b.grow.trimmed {
		b.grow = nil
	}
	b.state.Store(uint32(BodyWhole))
}

// Break says that the body will never be whole: readers get [BodyBroken] at
// once, and err from Err. What was held is dropped. Break after End or Break
// does nothing.
func (b *Body) Break(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stateNow() == BodyOpen {
		b.breakOff(err)
	}
}

// Trimmed reports whether Trim was called: readers must keep up with the writer.
func (b *Body) Trimmed() bool {
	if b.Whole() {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.grow != nil && b.grow.trimmed
}

// Trim turns the body into a window on the response that passes by: from now on
// it holds only the last keep bytes, to within one chunk, and a reader that
// needs more gets [BodyLagged]. A trimmed body is never whole. For objects that
// outgrow what may be stored while others already read them.
func (b *Body) Trim(keep int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stateNow() != BodyOpen {
		return
	}
	b.grow.trimmed, b.grow.window = true, max(keep, 0)
	b.slide()
	b.wake()
}

// Next returns chunk i, counted from 0, and [BodyOpen]; or no chunk and the
// state: BodyOpen (wait until changed is closed, then ask again), BodyWhole (the
// reader has seen everything), BodyBroken or BodyLagged. The chunk must not be
// written to.
func (b *Body) Next(i int) (chunk []byte, state BodyState, changed <-chan struct{}) {
	if b.stateNow() == BodyOpen {
		b.mu.Lock()
		defer b.mu.Unlock()
	}
	first, g, state := 0, b.grow, b.stateNow()
	if g != nil {
		first = g.first
	}
	switch {
	case state == BodyBroken:
		return nil, BodyBroken, nil
	case i < first:
		return nil, BodyLagged, nil
	case i-first < len(b.chunks):
		if state == BodyOpen {
			g.seen = max(g.seen, i+1)
		}
		c := b.chunks[i-first]
		return slices.Clip(c), BodyOpen, nil
	case state == BodyOpen:
		if g.changed == nil {
			g.changed = make(chan struct{})
		}
		return nil, BodyOpen, g.changed
	}
	return nil, state, nil
}

// Bytes returns the slices that make up n bytes of a whole body from offset
// off, without copying; it stops early where the body ends. A body that is not
// whole gives nothing.
func (b *Body) Bytes(off, n int64) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if !b.Whole() || off < 0 {
			return
		}
		for _, c := range b.chunks {
			if n <= 0 {
				return
			}
			size := int64(len(c))
			if off >= size {
				off -= size
				continue
			}
			part := c[off:min(size, off+min(n, size))]
			off, n = 0, n-int64(len(part))
			if !yield(slices.Clip(part)) {
				return
			}
		}
	}
}

// Len returns the number of bytes appended so far.
func (b *Body) Len() int64 { return b.length.Load() }

// Whole reports whether the body has ended and all of it is held.
func (b *Body) Whole() bool { return b.stateNow() == BodyWhole && b.grow == nil }

// Err returns why the body broke, or nil.
func (b *Body) Err() error {
	if b.stateNow() != BodyBroken {
		return nil
	}
	return b.grow.err
}

func (b *Body) stateNow() BodyState { return BodyState(b.state.Load()) }

// breakOff ends the body as broken. The caller holds mu.
func (b *Body) breakOff(err error) {
	b.grow.err = err
	b.chunks, b.one[0] = nil, nil
	b.wake()
	b.state.Store(uint32(BodyBroken))
}

// wake tells the readers that wait. The caller holds mu, so that one who looks
// at once waits for the rest of the change.
func (b *Body) wake() {
	if g := b.grow; g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}

package flight

import (
	"bytes"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirproxy/weir/extproc/store"
)

// Errors of Append and End.
var (
	// ErrEnded: the body is whole, or broken, or the lead is over. Nothing was lost
	// that the caller must store: whoever made the body whole does that.
	ErrEnded = errors.New("flight: the lead is over")
	// ErrDiverged: the bytes are not those that readers of the body already have.
	ErrDiverged = errors.New("flight: the representation is another one")
)

// splice lets several sources of the same bytes write one body. Each counts from
// the first byte; what another wrote before is compared, what is new is appended.
// The body breaks when its last source is gone before it is whole.
type splice struct {
	tailers atomic.Int64 // waiters that read the body

	readMu  sync.Mutex
	readers map[*Waiter]struct{} // those waiters

	mu   sync.Mutex
	body *store.Body
	live int       // sources that may still make it whole
	last time.Time // when the newest byte came
}

// source is one writer of a splice.
type source struct {
	splice  *splice
	offset  int64 // of the next byte it writes
	dropped bool
	// chunk is the index of a chunk of the body that begins at start <= offset.
	chunk int
	start int64
}

func newSplice(b *store.Body, now time.Time) *splice { return &splice{body: b, last: now} }

// enter adds a waiter to those that read the body.
func (s *splice) enter(w *Waiter) {
	s.readMu.Lock()
	defer s.readMu.Unlock()
	if s.readers == nil {
		s.readers = make(map[*Waiter]struct{})
	}
	s.readers[w] = struct{}{}
	s.tailers.Add(1)
}

// leave takes it away again.
func (s *splice) leave(w *Waiter) {
	s.readMu.Lock()
	defer s.readMu.Unlock()
	delete(s.readers, w)
	s.tailers.Add(-1)
}

// behind reports whether a reader has taken less than the given number of bytes.
func (s *splice) behind(bytes int64) bool {
	s.readMu.Lock()
	defer s.readMu.Unlock()
	for w := range s.readers {
		if w.taken.Load() < bytes {
			return true
		}
	}
	return false
}

// open adds a source that begins where the body ends now; the body is the
// caller's.
func (s *splice) open() *source {
	s.live++
	return &source{splice: s, offset: s.body.Len()}
}

// reopen adds a source that begins at the first byte.
func (s *splice) reopen() *source {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live++
	return &source{splice: s}
}

// append writes p, which follows what the source wrote before.
func (src *source) append(p []byte, now time.Time) error {
	s := src.splice
	s.mu.Lock()
	defer s.mu.Unlock()
	if src.dropped {
		return ErrEnded
	}
	if known := min(s.body.Len()-src.offset, int64(len(p))); known > 0 {
		if !src.follows(p[:known]) {
			return ErrDiverged
		}
		src.offset += known
		p = p[known:]
	}
	if len(p) == 0 {
		return nil
	}
	if err := s.body.Append(p); err != nil {
		return errors.Join(ErrEnded, err)
	}
	src.offset += int64(len(p))
	s.last = now
	return nil
}

// follows reports whether the body has the bytes p at the offset of src; the
// caller holds mu and knows that the body is long enough.
func (src *source) follows(p []byte) bool {
	for at := src.offset; len(p) > 0; {
		chunk, _, _ := src.splice.body.Next(src.chunk)
		if chunk == nil {
			return false // broken, or trimmed
		}
		if end := src.start + int64(len(chunk)); end <= at {
			src.chunk++
			src.start = end
			continue
		}
		have := chunk[at-src.start:]
		n := min(len(have), len(p))
		if !bytes.Equal(have[:n], p[:n]) {
			return false
		}
		at += int64(n)
		p = p[n:]
	}
	return true
}

// end makes the body whole.
func (src *source) end() error {
	s := src.splice
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case src.dropped || s.body.Whole() || s.body.Err() != nil:
		return ErrEnded
	case src.offset != s.body.Len():
		return ErrDiverged
	}
	s.body.End()
	switch {
	case s.body.Err() != nil:
		return s.body.Err()
	case !s.body.Whole():
		return ErrEnded // trimmed
	}
	return nil
}

// drop takes the source away. If it was the last one and the body is not whole,
// the body breaks with err.
func (src *source) drop(err error) {
	s := src.splice
	s.mu.Lock()
	defer s.mu.Unlock()
	if src.dropped {
		return
	}
	src.dropped = true
	s.live--
	if s.live == 0 && !s.body.Whole() {
		s.body.Break(err)
	}
}

// idle reports whether the body, written through this source alone, is still
// open and has not grown for as long as after.
func (src *source) idle(now time.Time, after time.Duration) bool {
	s := src.splice
	s.mu.Lock()
	defer s.mu.Unlock()
	return !src.dropped && src.offset == s.body.Len() && !s.body.Whole() && s.body.Err() == nil &&
		now.Sub(s.last) >= after
}

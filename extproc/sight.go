package extproc

import (
	"sync/atomic"
	"time"
)

// sight is what experience says of whether Envoy shows the responses of a
// policy's routes. In a stream's first message it announces its body modes only;
// where it skips response headers, or does not allow a mode override, it just
// ends the stream. Safe for concurrent use.
type sight struct {
	heads  atomic.Bool  // the head of a response was shown; for good
	shown  atomic.Bool  // the last response that was asked for was shown
	missed atomic.Int32 // responses in a row that were not
	until  atomic.Int64 // requests pass by until then, in Unix nanoseconds
}

const (
	// maxMissed is the number of responses in a row that were not shown after which
	// requests pass by. One or two may be connections that broke.
	maxMissed = 3
	// lookAgain is how long requests then pass by.
	lookAgain = 10 * time.Second
)

// showsHeads reports whether response_headers come.
func (s *sight) showsHeads() bool { return s.heads.Load() }

// proven reports whether a copy that is asked for comes. Where that is not so, no
// follower is given the head of an answer before some of its body is there.
func (s *sight) proven() bool { return s.shown.Load() }

// blind reports whether there is no use in asking for a response at now.
func (s *sight) blind(now time.Time) bool { return now.UnixNano() < s.until.Load() }

// showHead notes that the head of a response was shown.
func (s *sight) showHead() { s.heads.Store(true) }

// show notes that a response was shown.
func (s *sight) show() {
	if s.shown.Load() {
		return
	}
	s.missed.Store(0)
	s.until.Store(0)
	s.shown.Store(true)
}

// miss notes that a response was not shown.
func (s *sight) miss(now time.Time) {
	s.shown.Store(false)
	if s.missed.Add(1) >= maxMissed {
		s.until.Store(now.Add(lookAgain).UnixNano())
	}
}

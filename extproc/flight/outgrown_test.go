package flight

import (
	"bytes"
	"testing"
	"time"
)

// TestLags: a lead waits for the slowest of those who read, and for nobody who has left.
func TestLags(t *testing.T) {
	t.Parallel()
	g := New(Options{})
	lead := mustLead(t, g, page, plain)
	slow, fast := mustFollow(t, g, page, plain, time.Second), mustFollow(t, g, page, plain, time.Second)
	if lead.Lags(0) {
		t.Error("somebody lags behind an answer that is not there")
	}
	e := entry(plain)
	lead.Publish(e)
	for _, w := range []*Waiter{slow, fast} {
		wantKind(t, w, NewsAnswer)
	}
	if err := lead.Append(bytes.Repeat([]byte("x"), 100), t0); err != nil {
		t.Fatal(err)
	}
	fast.Took(100)
	slow.Took(30)
	for window, want := range map[int64]bool{100: false, 70: false, 69: true, 0: true} {
		if got := lead.Lags(window); got != want {
			t.Errorf("a reader at 30 of 100 bytes lags behind a window of %d: %v, want %v", window, got, want)
		}
	}
	slow.Took(40)
	if lead.Lags(30) {
		t.Error("a reader at 70 of 100 bytes lags behind a window of 30")
	}
	slow.Leave()
	if lead.Lags(0) {
		t.Error("a reader that left still lags")
	}
	lead.Finish()
	if lead.Lags(0) {
		t.Error("somebody lags behind a flight that is over")
	}
	fast.Leave()
}

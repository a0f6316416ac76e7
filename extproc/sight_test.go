package extproc

import (
	"testing"
	"time"
)

func TestSight(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	var s sight
	if s.proven() || s.blind(now) {
		t.Errorf("at first: proven %t, blind %t; nothing is known yet", s.proven(), s.blind(now))
	}
	for i := range maxMissed - 1 {
		if s.miss(now); s.blind(now) {
			t.Fatalf("blind after %d responses that were not shown", i+1)
		}
	}
	if s.show(); !s.proven() {
		t.Error("a response was shown, and that proves nothing")
	}
	for range maxMissed {
		if s.miss(now); s.proven() {
			t.Error("proven although the last response was not shown")
		}
	}
	if last := now.Add(lookAgain); !s.blind(now) || !s.blind(last.Add(-1)) || s.blind(last) {
		t.Errorf("blind %t, just before the end %t, then %t; want true, true, false",
			s.blind(now), s.blind(last.Add(-1)), s.blind(last))
	}
	if s.showsHeads() {
		t.Error("heads of responses were never shown")
	}
	if s.showHead(); !s.showsHeads() {
		t.Error("the head of a response was shown, and that proves nothing")
	}
	later := now.Add(lookAgain)
	if s.miss(later); !s.blind(later) {
		t.Error("one more look that showed nothing, and not blind")
	}
	if s.show(); s.blind(later) || !s.proven() {
		t.Error("a response was shown, and that changes nothing")
	}
}

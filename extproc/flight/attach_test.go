package flight

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestAttached: what is attached goes with the flight from lead to lead, and to
// Dropped when the flight ends without it having been taken back.
func TestAttached(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var dropped []any
		g := New(Options{Dropped: func(v any) { dropped = append(dropped, v) }})
		_, lead, _ := g.Join("k", nil, time.Now(), Limits{}, time.Now())
		lead.Attach("lease")
		_, _, w := g.Join("k", nil, time.Now().Add(time.Second), Limits{}, time.Now())
		lead.Abandon()
		if got := lead.Attach("late"); got != nil {
			t.Errorf("the old lead took %v", got)
		}
		n := <-w.C()
		if got := n.Lead.Attached(); got != "lease" {
			t.Errorf("attached after the promotion: %v, want the lease", got)
		}
		n.Lead.Fail("x")
		synctest.Wait()
		if len(dropped) != 2 || dropped[0] == dropped[1] {
			t.Errorf("dropped %v, want the late one and the lease", dropped)
		}

		_, lead, _ = g.Join("k", nil, time.Now(), Limits{}, time.Now())
		lead.Attach("lease")
		if got := lead.Detach(); got != "lease" {
			t.Errorf("detached %v", got)
		}
		lead.Release(false, "x")
		synctest.Wait()
		if len(dropped) != 2 {
			t.Errorf("dropped %v: what was taken back is not dropped", dropped)
		}
	})
}

package flight

import (
	"errors"
	"testing"
	"time"
)

func TestAbandonWithoutWaitersEndsTheFlight(t *testing.T) {
	t.Parallel()
	g := New(Options{TakeOver: func(*Flight) bool {
		t.Error("TakeOver was asked for nobody")
		return true
	}})
	lead := mustLead(t, g, "a", plain)
	mustFollow(t, g, "a", plain, time.Second).Leave()
	lead.Abandon()
	wantStats(t, g, 0, 0)
}

// Field case 2 (a): exactly one follower takes over, the one with the most time
// left, and the rest go on waiting.
func TestPromotion(t *testing.T) {
	t.Parallel()
	g := New(Options{})
	lead := mustLead(t, g, "a", plain)
	waits := []time.Duration{3, 9, 1, 7, 5}
	all := make(map[time.Duration]*Waiter)
	for _, d := range waits {
		all[d] = mustFollow(t, g, "a", plain, d*time.Second)
	}
	for i, next := range []time.Duration{9, 7, 5, 3, 1} {
		lead.Abandon()
		endAll(lead)
		lead = wantKind(t, all[next], NewsLead).Lead
		wantStats(t, g, 1, len(waits)-1-i)
		delete(all, next)
		for _, w := range all {
			wantSilence(t, w)
		}
	}
	lead.Publish(entry(plain))
	lead.Close()
	wantStats(t, g, 0, 0)
}

func TestPromotedLeaderServesTheRest(t *testing.T) {
	t.Parallel()
	g := New(Options{})
	lead := mustLead(t, g, "a", plain)
	long, short := mustFollow(t, g, "a", plain, 9*time.Second), mustFollow(t, g, "a", plain, time.Second)
	lead.Abandon()
	late := mustFollow(t, g, "a", plain, 20*time.Second) // joins the promoted one
	e := entry(plain)
	wantKind(t, long, NewsLead).Lead.Publish(e)
	long.Leave() // it read its News: nothing is abandoned
	for _, w := range []*Waiter{short, late} {
		if n := wantKind(t, w, NewsAnswer); n.Entry != e {
			t.Error("another entry")
		}
	}
	wantStats(t, g, 1, 0)
}

// A promotion that its waiter never reads is handed on, as often as needed.
func TestUnreadPromotionIsHandedOn(t *testing.T) {
	t.Parallel()
	g := New(Options{})
	lead := mustLead(t, g, "a", plain)
	first, second := mustFollow(t, g, "a", plain, 9*time.Second), mustFollow(t, g, "a", plain, 8*time.Second)
	third := mustFollow(t, g, "a", plain, 7*time.Second)
	lead.Abandon()
	wantSilence(t, third)
	first.Leave()
	second.Leave()
	wantKind(t, third, NewsLead).Lead.Close()
	for _, w := range []*Waiter{first, second, third} {
		w.Leave()
		wantSilence(t, w)
	}
	wantStats(t, g, 0, 0)
}

func TestLeavingStartsNothing(t *testing.T) {
	t.Parallel()
	g := New(Options{TakeOver: func(*Flight) bool {
		t.Error("a waiter's leaving asked for a take-over")
		return true
	}})
	lead := mustLead(t, g, "a", plain)
	leaving, patient := mustFollow(t, g, "a", plain, time.Second), mustFollow(t, g, "a", plain, time.Second)
	leaving.Leave()
	wantSilence(t, patient)
	wantStats(t, g, 1, 1)
	lead.Publish(entry(plain))
	wantKind(t, patient, NewsAnswer)
	wantSilence(t, leaving)
	lead.Close()
	wantStats(t, g, 0, 0)
}

func TestTakeOver(t *testing.T) {
	t.Parallel()
	var c counters
	var taken *Lead
	g := New(Options{Observer: c.observer(), TakeOver: func(f *Flight) bool {
		if f.ID() != "a" || f.Owner() != 9*time.Second || f.Request().Get("accept-encoding") != "br" || f.Entry() != nil {
			t.Errorf("take-over of %q for %v %v, entry %v", f.ID(), f.Owner(), f.Request(), f.Entry())
		}
		taken = f.Lead()
		return true
	}})
	lead := mustLead(t, g, "a", accepting("gzip"))
	patient := mustFollow(t, g, "a", accepting("br"), 9*time.Second)
	hasty := mustFollow(t, g, "a", accepting("gzip"), time.Second)
	lead.Abandon()
	endAll(lead)
	late := mustFollow(t, g, "a", accepting("br"), time.Second)
	for _, w := range []*Waiter{patient, hasty, late} {
		wantSilence(t, w)
	}
	wantStats(t, g, 1, 3)
	taken.Publish(entry(accepting("br"), "accept-encoding"))
	wantKind(t, patient, NewsAnswer)
	wantKind(t, late, NewsAnswer)
	wantKind(t, hasty, NewsRejoin)
	taken.Close()
	if c.tookOver[1].Load() != 1 || c.told[NewsLead].Load() != 0 {
		t.Error("the take-over was not counted as one")
	}
	select {
	case <-taken.Unwanted():
		t.Error("Unwanted after an answer")
	default:
	}
	wantStats(t, g, 0, 0)
}

func TestTakeOverIsNotPossible(t *testing.T) {
	t.Parallel()
	var c counters
	g := New(Options{Observer: c.observer(), TakeOver: func(*Flight) bool { return false }})
	lead := mustLead(t, g, "a", plain)
	short, long := mustFollow(t, g, "a", plain, time.Second), mustFollow(t, g, "a", plain, 2*time.Second)
	lead.Abandon()
	l := wantKind(t, long, NewsLead).Lead
	if l.Unwanted() != nil {
		t.Error("a client's own fetch is never unwanted")
	}
	wantSilence(t, short)
	short.Leave()
	l.Fail("x")
	if c.tookOver[0].Load() != 1 || c.told[NewsLead].Load() != 1 {
		t.Error("refusal and promotion were not counted")
	}
	wantStats(t, g, 0, 0)
}

// A detached fetch that gives up in its turn is not replaced by another one.
func TestTakeOverAbandons(t *testing.T) {
	t.Parallel()
	asked := 0
	g := New(Options{TakeOver: func(f *Flight) bool {
		asked++
		f.Lead().Abandon()
		return true
	}})
	lead := mustLead(t, g, "a", plain)
	w := mustFollow(t, g, "a", plain, time.Second)
	lead.Abandon()
	wantKind(t, w, NewsLead).Lead.Close()
	if asked != 1 {
		t.Errorf("TakeOver was asked %d times, want 1", asked)
	}
	wantStats(t, g, 0, 0)
}

// Field case 3: when all leave, the shared fetch is cancelled.
func TestUnwanted(t *testing.T) {
	t.Parallel()
	var taken *Lead
	g := New(Options{TakeOver: func(f *Flight) bool {
		taken = f.Lead()
		return true
	}})
	lead := mustLead(t, g, "a", plain)
	one, two := mustFollow(t, g, "a", plain, time.Second), mustFollow(t, g, "a", plain, time.Second)
	lead.Abandon()
	one.Leave()
	select {
	case <-taken.Unwanted():
		t.Fatal("unwanted while one waits")
	default:
	}
	two.Leave()
	<-taken.Unwanted()
	wantStats(t, g, 0, 0)
	next := mustLead(t, g, "a", plain) // nobody joins a fetch that is being cancelled
	if taken.Publish(entry(plain)) {
		t.Error("an answer that came too late was published")
	}
	endAll(taken)
	wantStats(t, g, 1, 0)
	next.Close()
	wantStats(t, g, 0, 0)
}

// All may leave before TakeOver even looks.
func TestUnwantedDuringTakeOver(t *testing.T) {
	t.Parallel()
	for _, started := range []bool{true, false} {
		var w *Waiter
		g := New(Options{TakeOver: func(f *Flight) bool {
			w.Leave()
			<-f.Lead().Unwanted()
			if f.Owner() != time.Second {
				t.Errorf("Owner = %v", f.Owner())
			}
			return started
		}})
		lead := mustLead(t, g, "a", plain)
		w = mustFollow(t, g, "a", plain, time.Second)
		lead.Abandon()
		wantStats(t, g, 0, 0)
	}
}

func TestTakeOverPanics(t *testing.T) {
	t.Parallel()
	g := New(Options{TakeOver: func(*Flight) bool { panic("bug") }})
	lead := mustLead(t, g, "a", plain)
	w := mustFollow(t, g, "a", plain, time.Second)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		lead.Abandon()
	}()
	wantKind(t, w, NewsLead).Lead.Close()
	wantStats(t, g, 0, 0)
}

// Field case 2 (b): in the middle of a body that others read, a detached fetch
// may go on with the very same bytes.
func TestTakeOverInTheBody(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		takeOver func(*Flight) *Lead // nil: not possible
		etag     string              // of the successor's answer
		want     string              // what tailers got in the end
		wantErr  error
	}{
		{"same representation", (*Flight).Lead, `"v1"`, "0123456789", nil},
		{"another representation", (*Flight).Lead, `"v2"`, "", ErrAbandoned},
		{"no refill is possible", func(*Flight) *Lead { return nil }, "", "", ErrAbandoned},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var next *Lead
			e := tagged(entry(plain), `"v1"`)
			g := New(Options{TakeOver: func(f *Flight) bool {
				if f.Entry() != e || f.Owner() != "leader" {
					t.Errorf("take-over of %v for %v", f.Entry(), f.Owner())
				}
				next = tt.takeOver(f)
				return next != nil
			}})
			lead := mustLead(t, g, "a", plain)
			tailer := mustFollow(t, g, "a", plain, time.Second)
			lead.Publish(e)
			wantKind(t, tailer, NewsAnswer)
			if err := lead.Append([]byte("01234"), t0); err != nil {
				t.Fatal(err)
			}
			lead.Abandon()
			if next != nil {
				answer := tagged(entry(plain), tt.etag)
				if !next.Resume(200, answer.Header) {
					next.Publish(answer)
				}
				for _, p := range []string{"012", "3456", "789"} {
					if err := next.Append([]byte(p), t0); err != nil {
						t.Errorf("Append(%q) = %v", p, err)
					}
				}
				if err := next.End(); err != nil {
					t.Errorf("End = %v", err)
				}
				next.Finish()
			}
			if got := content(e.Body); got != tt.want || !errors.Is(e.Body.Err(), tt.wantErr) {
				t.Errorf("tailers got %q, %v; want %q, %v", got, e.Body.Err(), tt.want, tt.wantErr)
			}
			wantStats(t, g, 0, 0)
		})
	}
}

func TestNobodyReadsTheBody(t *testing.T) {
	t.Parallel()
	g := New(Options{TakeOver: func(*Flight) bool {
		t.Error("TakeOver was asked for a body that nobody reads")
		return true
	}})
	lead := mustLead(t, g, "a", plain)
	w := mustFollow(t, g, "a", plain, time.Second)
	lead.Publish(entry(plain))
	wantKind(t, w, NewsAnswer)
	w.Leave()
	w.Leave()
	lead.Abandon()
	wantStats(t, g, 0, 0)
}

// A follower may leave while it is being told.
func TestLeavingWhileTold(t *testing.T) {
	t.Parallel()
	g := New(Options{})
	lead := mustLead(t, g, "a", plain)
	w := mustFollow(t, g, "a", plain, time.Second)
	e := entry(plain)
	f := lead.flight
	f.shard.mu.Lock()
	taken, from := f.takeWaiters(), newSplice(e.Body, t0)
	f.shard.mu.Unlock()
	w.Leave()
	g.tellAnswer(taken, e, from)
	if n := from.tailers.Load(); n != 0 {
		t.Errorf("%d readers counted of a body that nobody reads", n)
	}
	lead.Close()
	wantStats(t, g, 0, 0)
}

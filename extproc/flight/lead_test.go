package flight

import (
	"errors"
	"testing"
	"time"

	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store"
)

// Each way to end a lead before the answer, and what three waiters are told.
func TestEndBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		end    func(*Lead)
		want   NewsKind
		reason httpcache.Reason
		marked bool
	}{
		{"publish", func(l *Lead) { l.Publish(entry(plain)) }, NewsAnswer, "", false},
		{"publish with Vary: *", func(l *Lead) {
			l.Publish(&store.Entry{Vary: httpcache.Vary{Any: true}, Body: store.NewBody(-1)})
		}, NewsFetch, ReasonVaryAny, true},
		{"release", func(l *Lead) { l.Release(false, "no-store") }, NewsFetch, "no-store", false},
		{"release with a mark", func(l *Lead) { l.Release(true, "private") }, NewsFetch, "private", true},
		{"fail", func(l *Lead) { l.Fail("origin-timeout") }, NewsFailed, "origin-timeout", false},
		{"break", func(l *Lead) { l.Break(errors.New("x")) }, NewsFailed, ReasonLeaderAborted, false},
		{"finish", func(l *Lead) { l.Finish() }, NewsFailed, ReasonLeaderAborted, false},
		{"close", func(l *Lead) { l.Close() }, NewsFailed, ReasonLeaderAborted, false},
		{"panic", func(l *Lead) {
			defer func() { _ = recover() }()
			defer l.Close()
			panic("in the work of one key")
		}, NewsFailed, ReasonLeaderAborted, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := New(Options{Now: func() time.Time { return t0 }})
			lead := mustLead(t, g, "a", plain)
			var all []*Waiter
			for range 3 {
				all = append(all, mustFollow(t, g, "a", plain, time.Second))
			}
			tt.end(lead)
			for _, w := range all {
				if n := wantKind(t, w, tt.want); n.Reason != tt.reason {
					t.Errorf("reason = %q, want %q", n.Reason, tt.reason)
				}
			}
			if got := g.Marked("a", t0); got != tt.marked {
				t.Errorf("marked = %t, want %t", got, tt.marked)
			}
			endAll(lead)
			for _, w := range all {
				wantSilence(t, w)
				w.Leave()
			}
			wantStats(t, g, 0, 0)
		})
	}
}

// endAll calls every end there is; after the first none may do anything.
func endAll(l *Lead) {
	l.Close()
	l.Publish(entry(plain))
	l.Release(true, "late")
	l.Fail("late")
	l.Abandon()
	l.Finish()
	l.Break(ErrUnfinished)
}

func TestSecondEndDoesNothing(t *testing.T) {
	t.Parallel()
	g := New(Options{})
	first := mustLead(t, g, "a", plain)
	first.Fail("x")
	second := mustLead(t, g, "a", plain)
	w := mustFollow(t, g, "a", plain, time.Second)
	endAll(first)
	wantSilence(t, w)
	second.Publish(entry(plain))
	if second.Publish(entry(plain)) {
		t.Error("a second answer was taken")
	}
	wantKind(t, w, NewsAnswer)
	second.Close()
	wantStats(t, g, 0, 0)
}

// Each way to end a lead after the answer, and what readers of the body see.
func TestEndAfterTheAnswer(t *testing.T) {
	t.Parallel()
	cut := errors.New("upstream reset")
	tests := []struct {
		name    string
		whole   bool
		end     func(*Lead)
		wantErr error
	}{
		{"finish", true, func(l *Lead) { l.Finish() }, nil},
		{"close", true, func(l *Lead) { l.Close() }, nil},
		{"abandon when the body is whole", true, func(l *Lead) { l.Abandon() }, nil},
		{"finish before the body is whole", false, func(l *Lead) { l.Finish() }, ErrUnfinished},
		{"close before the body is whole", false, func(l *Lead) { l.Close() }, ErrUnfinished},
		{"break", false, func(l *Lead) { l.Break(cut) }, cut},
		{"abandon", false, func(l *Lead) { l.Abandon() }, ErrAbandoned},
		{"fail", false, func(l *Lead) { l.Fail("too-large") }, ErrUnfinished},
		{"release", false, func(l *Lead) { l.Release(false, "x") }, ErrUnfinished},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := New(Options{})
			lead := mustLead(t, g, "a", plain)
			w := mustFollow(t, g, "a", plain, time.Second)
			e := entry(plain)
			lead.Publish(e)
			wantKind(t, w, NewsAnswer)
			if err := lead.Append([]byte("bytes"), t0); err != nil {
				t.Fatal(err)
			}
			if tt.whole {
				if err := lead.End(); err != nil {
					t.Fatal(err)
				}
			}
			tt.end(lead)
			if err := e.Body.Err(); !errors.Is(err, tt.wantErr) {
				t.Errorf("body error = %v, want %v", err, tt.wantErr)
			}
			if e.Body.Whole() != tt.whole {
				t.Errorf("whole = %t, want %t", e.Body.Whole(), tt.whole)
			}
			if err := lead.Append([]byte("more"), t0); !errors.Is(err, ErrEnded) {
				t.Errorf("Append after the end = %v", err)
			}
			if err := lead.End(); !errors.Is(err, ErrEnded) {
				t.Errorf("End after the end = %v", err)
			}
			// Who comes next begins anew, and a tailer that sent nothing may, too.
			next := mustLead(t, g, "a", plain)
			endAll(lead)
			wantStats(t, g, 1, 0)
			next.Close()
			w.Leave()
			wantStats(t, g, 0, 0)
		})
	}
}

// The rejoin of a body that broke must not find the flight that broke it.
func TestBreakHidesTheFlightFirst(t *testing.T) {
	t.Parallel()
	g := New(Options{})
	lead := mustLead(t, g, "a", plain)
	e := entry(plain)
	lead.Publish(e)
	_, _, changed := e.Body.Next(0)
	rejoined := make(chan Role, 1)
	go func() {
		<-changed
		role, l, _ := g.Join("a", plain, t0, Limits{}, t0)
		if l != nil {
			l.Close()
		}
		rejoined <- role
	}()
	lead.Break(ErrUnfinished)
	if role := <-rejoined; role != RoleLead {
		t.Errorf("the first to rejoin: %v, want lead", role)
	}
	wantStats(t, g, 0, 0)
}

// A body that is longer or shorter than its Content-Length is not whole.
func TestEndChecksTheLength(t *testing.T) {
	t.Parallel()
	g := New(Options{})
	lead := mustLead(t, g, "a", plain)
	e := entry(plain)
	e.Body = store.NewBody(10)
	lead.Publish(e)
	if err := lead.Append([]byte("12345"), t0); err != nil {
		t.Fatal(err)
	}
	if err := lead.End(); !errors.Is(err, store.ErrLength) {
		t.Errorf("End = %v, want %v", err, store.ErrLength)
	}
	lead.Finish()
	wantStats(t, g, 0, 0)
}

// Field case 4: only those whose nominated fields match take the answer; the
// others elect one leader of their own.
func TestVariants(t *testing.T) {
	t.Parallel()
	g := New(Options{})
	gzip, identity := accepting("gzip"), accepting("identity")
	lead := mustLead(t, g, page, gzip)
	var same, other []*Waiter
	for range 9 {
		same = append(same, mustFollow(t, g, page, gzip, time.Second))
		other = append(other, mustFollow(t, g, page, identity, time.Second))
	}
	other = append(other, mustFollow(t, g, page, plain, time.Second)) // without the field

	e := entry(gzip, "accept-encoding")
	lead.Publish(e)
	for _, w := range same {
		wantKind(t, w, NewsAnswer)
	}
	roles := make(map[ID]map[Role]int)
	var leads []*Lead
	for _, w := range other {
		n := wantKind(t, w, NewsRejoin)
		id := page.variant(n.Entry.Vary.Names, n.Entry.Vary.Select(w.party.req))
		role, l, _ := g.Join(id, w.party.req, w.deadline, Limits{}, t0)
		if roles[id] == nil {
			roles[id] = make(map[Role]int)
		}
		roles[id][role]++
		if l != nil {
			leads = append(leads, l)
		}
	}
	if len(roles) != 2 || len(leads) != 2 {
		t.Errorf("%d variants and %d leaders, want 2 and 2: %v", len(roles), len(leads), roles)
	}
	// Who knows the Vary by now finds the leader's flight under its variant, and who
	// does not is told.
	variant := page.variant(e.Vary.Names, e.VaryValues)
	wantKind(t, mustFollow(t, g, variant, gzip, time.Second), NewsAnswer)
	wantKind(t, mustFollow(t, g, page, gzip, time.Second), NewsAnswer)
	wantKind(t, mustFollow(t, g, page, identity, time.Second), NewsRejoin)

	for _, l := range append(leads, lead) {
		l.Close()
	}
	wantStats(t, g, 0, 0)
}

// A flight does not take the place of one that fetches the same variant already.
func TestVariantIsTaken(t *testing.T) {
	t.Parallel()
	g := New(Options{})
	gzip := accepting("gzip")
	e := entry(gzip, "accept-encoding")
	variant := page.variant(e.Vary.Names, e.VaryValues)
	first, second := mustLead(t, g, variant, gzip), mustLead(t, g, page, gzip)
	w := mustFollow(t, g, variant, gzip, time.Second)
	second.Publish(e)
	wantSilence(t, w)
	wantSilence(t, mustFollow(t, g, variant, gzip, time.Second))
	if first.ID() != variant || second.ID() != page {
		t.Error("a lead does not know its ID")
	}
	second.Close()
	first.Publish(entry(gzip, "accept-encoding"))
	wantKind(t, w, NewsAnswer)
	first.Close()
	wantStats(t, g, 0, 0)
}

// The Vary of a resource may change: the answer is compared by its own.
func TestVaryChanges(t *testing.T) {
	t.Parallel()
	g := New(Options{})
	german := append(accepting("gzip"), httpcache.Field{Name: "accept-language", Value: "de"})
	french := append(accepting("gzip"), httpcache.Field{Name: "accept-language", Value: "fr"})
	id := page.variant([]string{"accept-encoding"}, []string{"gzip"})
	lead := mustLead(t, g, id, german)
	de, fr := mustFollow(t, g, id, german, time.Second), mustFollow(t, g, id, french, time.Second)
	lead.Publish(entry(german, "accept-language"))
	wantKind(t, de, NewsAnswer)
	if n := wantKind(t, fr, NewsRejoin); n.Entry.Vary.Names[0] != "accept-language" {
		t.Errorf("Vary = %v", n.Entry.Vary)
	}
	lead.Close()
	wantStats(t, g, 0, 0)
}

// A body that outgrew its bound is passed along to those who read it, and joined
// by nobody.
func TestOutgrown(t *testing.T) {
	t.Parallel()
	g := New(Options{})
	lead := mustLead(t, g, page, accepting("gzip"))
	if lead.Outgrown() {
		t.Error("readers of an answer that is not there")
	}
	w := mustFollow(t, g, page, accepting("gzip"), time.Second)
	e := entry(accepting("gzip"), "accept-encoding")
	lead.Publish(e)
	if !lead.Outgrown() {
		t.Error("the reader is not seen")
	}
	for _, id := range []ID{page, page.variant(e.Vary.Names, e.VaryValues)} {
		mustLead(t, g, id, plain).Close()
	}
	w.Leave()
	if lead.Outgrown() {
		t.Error("a reader that left is seen")
	}
	lead.Close()
	if lead.Outgrown() {
		t.Error("a lead that is over has readers")
	}
	wantStats(t, g, 0, 0)
}

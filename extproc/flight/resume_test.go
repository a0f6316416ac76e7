package flight

import (
	"errors"
	"testing"
	"time"

	"github.com/weirproxy/weir/extproc/httpcache"
)

// slow returns a group with a leader that sent "01234" of an answer with a strong
// ETag and then stopped, a follower that reads it, and the entry.
func slow(t *testing.T, o Options) (*Group, *Lead, *Waiter) {
	t.Helper()
	g := New(o)
	_, lead, _ := g.Join("a", plain, t0, Limits{Position: 5}, t0)
	w := mustFollow(t, g, "a", plain, time.Second)
	lead.Publish(tagged(entry(plain), `"v1"`))
	wantKind(t, w, NewsAnswer)
	if err := lead.Append([]byte("01234"), t0); err != nil {
		t.Fatal(err)
	}
	return g, lead, w
}

func mustSupersede(t *testing.T, w *Waiter) *Lead {
	t.Helper()
	next, ok := w.Supersede(t0.Add(time.Second), time.Second)
	if !ok {
		t.Fatal("a leader without progress gets no successor")
	}
	return next
}

func TestSupersedeNeedsAStall(t *testing.T) {
	t.Parallel()
	var c counters
	g, lead, w := slow(t, Options{Observer: c.observer()})
	if _, ok := w.Supersede(t0.Add(999*time.Millisecond), time.Second); ok {
		t.Error("a successor before the time")
	}
	if err := lead.Append([]byte("5"), t0.Add(500*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, ok := w.Supersede(t0.Add(1400*time.Millisecond), time.Second); ok {
		t.Error("progress does not count")
	}
	next, ok := w.Supersede(t0.Add(1500*time.Millisecond), time.Second)
	if !ok {
		t.Error("no successor after the time")
	}
	if _, ok := w.Supersede(t0.Add(time.Hour), time.Second); ok {
		t.Error("two successors")
	}
	wantStats(t, g, 2, 0)
	if c.stalled.Load() != 1 {
		t.Error("the stall was not counted")
	}
	next.Close()
	if _, ok := w.Supersede(t0.Add(time.Hour), time.Second); ok {
		t.Error("a second successor for one body")
	}
	lead.Close()
	wantStats(t, g, 0, 0)
}

func TestSupersedeRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		then func(*testing.T, *Group, *Lead, *Waiter)
	}{
		{"the body is whole", func(t *testing.T, _ *Group, l *Lead, _ *Waiter) {
			if err := l.End(); err != nil {
				t.Fatal(err)
			}
		}},
		{"the flight ended", func(_ *testing.T, _ *Group, l *Lead, _ *Waiter) { l.Break(ErrUnfinished) }},
		{"the body broke", func(_ *testing.T, _ *Group, l *Lead, _ *Waiter) {
			l.flight.entry.Body.Break(ErrUnfinished)
		}},
		{"the flight was cut", func(_ *testing.T, _ *Group, _ *Lead, w *Waiter) { w.Cut() }},
		{"the process drains", func(_ *testing.T, g *Group, _ *Lead, _ *Waiter) { g.Drain() }},
		{"the leader does not use Append", func(t *testing.T, _ *Group, l *Lead, _ *Waiter) {
			if err := l.flight.entry.Body.Append([]byte("x")); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g, lead, w := slow(t, Options{})
			tt.then(t, g, lead, w)
			if _, ok := w.Supersede(t0.Add(time.Hour), time.Second); ok {
				t.Error("a successor")
			}
			lead.Close()
			wantStats(t, g, 0, 0)
		})
	}
	g := New(Options{})
	lead := mustLead(t, g, "a", plain)
	w := mustFollow(t, g, "a", plain, time.Second)
	if _, ok := w.Supersede(t0.Add(time.Hour), time.Second); ok {
		t.Error("a successor before there is an answer")
	}
	lead.Close()
}

// The successor overtakes the slow leader; both write the same body.
func TestSuccessorOvertakes(t *testing.T) {
	t.Parallel()
	g, lead, w := slow(t, Options{})
	e := lead.flight.entry
	next := mustSupersede(t, w)
	waiting := mustFollow(t, g, "a", plain, time.Second)
	wantSilence(t, waiting)
	if !next.Resume(200, e.Header) {
		t.Fatal("the same representation is not resumed")
	}
	if n := wantKind(t, waiting, NewsAnswer); n.Entry != e {
		t.Error("the new follower got another entry")
	}
	appends := []struct {
		by    *Lead
		bytes string
		body  string
	}{
		{next, "01", "01234"},
		{next, "23456", "0123456"},
		{lead, "56", "0123456"},
		{lead, "7", "01234567"},
		{next, "789", "0123456789"},
		{lead, "8", "0123456789"},
	}
	for i, a := range appends {
		if err := a.by.Append([]byte(a.bytes), t0); err != nil {
			t.Errorf("append %d: %v", i, err)
		}
		if got := content(e.Body); got != a.body {
			t.Errorf("after append %d the body is %q, want %q", i, got, a.body)
		}
	}
	if err := lead.End(); !errors.Is(err, ErrDiverged) {
		t.Errorf("End before the others' last byte = %v", err)
	}
	if err := next.End(); err != nil {
		t.Errorf("End = %v", err)
	}
	if err := lead.Append([]byte("9"), t0); err != nil {
		t.Errorf("bytes that are there already: %v", err)
	}
	if err := lead.Append([]byte("x"), t0); !errors.Is(err, ErrEnded) {
		t.Errorf("Append behind the end = %v", err)
	}
	if err := lead.End(); !errors.Is(err, ErrEnded) {
		t.Errorf("the second End = %v: two would commit", err)
	}
	next.Finish()
	lead.Finish()
	if !e.Body.Whole() || content(e.Body) != "0123456789" {
		t.Errorf("body = %q, whole %t", content(e.Body), e.Body.Whole())
	}
	wantStats(t, g, 0, 0)
}

// The slow leader's client goes away: its tailers are served by the successor.
func TestSlowLeaderBreaks(t *testing.T) {
	t.Parallel()
	g, lead, w := slow(t, Options{})
	e := lead.flight.entry
	next := mustSupersede(t, w)
	lead.Abandon()
	if e.Body.Err() != nil {
		t.Fatal("the body broke although a successor may continue it")
	}
	next.Resume(200, e.Header)
	if err := next.Append([]byte("012345"), t0); err != nil {
		t.Fatal(err)
	}
	if err := next.End(); err != nil {
		t.Fatal(err)
	}
	next.Finish()
	if content(e.Body) != "012345" || !e.Body.Whole() {
		t.Errorf("body = %q, whole %t", content(e.Body), e.Body.Whole())
	}
	wantStats(t, g, 0, 0)
}

func TestResume(t *testing.T) {
	t.Parallel()
	f := func(fields ...string) httpcache.Fields {
		var h httpcache.Fields
		for i := 0; i < len(fields); i += 2 {
			h = append(h, httpcache.Field{Name: fields[i], Value: fields[i+1]})
		}
		return h
	}
	tests := []struct {
		name     string
		was, is  httpcache.Fields
		status   int
		wantSame bool
	}{
		{"strong tag", f("etag", `"1"`), f("etag", `"1"`), 200, true},
		{"length on one side", f("etag", `"1"`), f("etag", `"1"`, "content-length", "5"), 200, true},
		{"equal length and coding", f("etag", `"1"`, "content-length", "5", "content-encoding", "br"),
			f("etag", `"1"`, "content-length", "5", "content-encoding", "br"), 200, true},
		{"another tag", f("etag", `"1"`), f("etag", `"2"`), 200, false},
		{"weak tag", f("etag", `W/"1"`), f("etag", `W/"1"`), 200, false},
		{"no tag", nil, nil, 200, false},
		{"bare tag", f("etag", `1`), f("etag", `1`), 200, false},
		{"another length", f("etag", `"1"`, "content-length", "5"), f("etag", `"1"`, "content-length", "6"), 200, false},
		{"another coding", f("etag", `"1"`, "content-encoding", "gzip"),
			f("etag", `"1"`, "content-encoding", "br"), 200, false},
		{"a coding on one side", f("etag", `"1"`, "content-encoding", "gzip"), f("etag", `"1"`), 200, false},
		{"another status", f("etag", `"1"`), f("etag", `"1"`), 206, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := New(Options{})
			lead := mustLead(t, g, "a", plain)
			if lead.Resume(tt.status, tt.is) {
				t.Error("a first fetch resumes something")
			}
			w := mustFollow(t, g, "a", plain, time.Second)
			e := entry(plain)
			e.Header = tt.was
			lead.Publish(e)
			wantKind(t, w, NewsAnswer)
			next := mustSupersede(t, w)
			if got := next.Resume(tt.status, tt.is); got != tt.wantSame {
				t.Errorf("Resume = %t, want %t", got, tt.wantSame)
			}
			next.Close()
			lead.Close()
			if next.Resume(tt.status, tt.is) {
				t.Error("Resume after the end")
			}
			wantStats(t, g, 0, 0)
		})
	}
}

// An origin that lies about its ETag: readers never see mixed bytes.
func TestSuccessorDiverges(t *testing.T) {
	t.Parallel()
	g, lead, w := slow(t, Options{})
	e := lead.flight.entry
	next := mustSupersede(t, w)
	next.Resume(200, e.Header)
	if err := next.Append([]byte("01"), t0); err != nil {
		t.Fatal(err)
	}
	if err := next.Append([]byte("2X456"), t0); !errors.Is(err, ErrDiverged) {
		t.Errorf("Append of other bytes = %v", err)
	}
	next.Break(ErrDiverged)
	if got := content(e.Body); got != "01234" || e.Body.Err() != nil {
		t.Errorf("body = %q, %v: the slow leader goes on", got, e.Body.Err())
	}
	if err := lead.Append([]byte("5"), t0); err != nil {
		t.Error(err)
	}
	lead.Close()
	wantStats(t, g, 0, 0)
}

// Another representation: new followers get it, old tailers stay with the slow
// leader.
func TestSuccessorAnswersAnew(t *testing.T) {
	t.Parallel()
	g, lead, w := slow(t, Options{})
	old := lead.flight.entry
	next := mustSupersede(t, w)
	follower := mustFollow(t, g, "a", plain, time.Second)
	fresh := tagged(entry(plain), `"v2"`)
	next.Publish(fresh)
	if n := wantKind(t, follower, NewsAnswer); n.Entry != fresh {
		t.Error("the new follower got the old entry")
	}
	if err := lead.Append([]byte("5"), t0); err != nil {
		t.Error(err)
	}
	if err := lead.End(); err != nil {
		t.Error(err)
	}
	lead.Finish()
	if content(old.Body) != "012345" || !old.Body.Whole() {
		t.Errorf("the old tailers got %q", content(old.Body))
	}
	wantKind(t, mustFollow(t, g, "a", plain, time.Second), NewsAnswer)
	next.Close()
	wantStats(t, g, 0, 0)
}

// A successor that fails gives its followers to the slow leader, if that is there.
func TestSuccessorFails(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		slow  func(*testing.T, *Lead)
		want  NewsKind
		again Role // who joins afterwards
	}{
		{"the slow leader goes on", func(*testing.T, *Lead) {}, NewsAnswer, RoleFollow},
		{"the slow leader finished", func(t *testing.T, l *Lead) {
			if err := l.End(); err != nil {
				t.Fatal(err)
			}
			l.Finish()
		}, NewsAnswer, RoleLead},
		{"the slow leader is gone", func(_ *testing.T, l *Lead) { l.Abandon() }, NewsFailed, RoleLead},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g, lead, w := slow(t, Options{})
			next := mustSupersede(t, w)
			follower := mustFollow(t, g, "a", plain, time.Second)
			tt.slow(t, lead)
			next.Fail("origin-failed")
			wantKind(t, follower, tt.want)
			role, l, _ := g.Join("a", plain, t0, Limits{}, t0)
			if role != tt.again {
				t.Errorf("the next to join: %v, want %v", role, tt.again)
			}
			if l != nil {
				l.Close()
			}
			follower.Leave()
			w.Leave()
			lead.Close()
			wantStats(t, g, 0, 0)
		})
	}
}

// A successor's owner may go away too; a waiter is promoted and still may resume.
func TestSuccessorAbandons(t *testing.T) {
	t.Parallel()
	g, lead, w := slow(t, Options{})
	e := lead.flight.entry
	next := mustSupersede(t, w)
	follower := mustFollow(t, g, "a", plain, time.Second)
	next.Abandon()
	lead.Abandon()
	promoted := wantKind(t, follower, NewsLead).Lead
	if e.Body.Err() != nil {
		t.Error("the body broke although the promoted one may continue it")
	}
	promoted.Abandon()
	if !errors.Is(e.Body.Err(), ErrAbandoned) {
		t.Errorf("body error = %v", e.Body.Err())
	}
	wantStats(t, g, 0, 0)
}

// One successor per body: who follows the successor does not start a third fetch.
func TestSuccessorGetsNoSuccessor(t *testing.T) {
	t.Parallel()
	g, lead, w := slow(t, Options{})
	e := lead.flight.entry
	next := mustSupersede(t, w)
	follower := mustFollow(t, g, "a", plain, time.Second)
	if follower.Birth() != w.Birth() {
		t.Error("the successor is not as old as the body it may continue")
	}
	next.Resume(200, e.Header)
	wantKind(t, follower, NewsAnswer)
	if err := next.Append([]byte("012345"), t0); err != nil {
		t.Fatal(err)
	}
	if _, ok := follower.Supersede(t0.Add(time.Hour), time.Second); ok {
		t.Error("a successor's successor")
	}
	next.Abandon() // nor does its going away start one
	lead.Close()
	wantStats(t, g, 0, 0)
}

// The slow leader comes back into the group only where nobody else has begun.
func TestSuccessorFailsAfterACut(t *testing.T) {
	t.Parallel()
	g, lead, w := slow(t, Options{})
	next := mustSupersede(t, w)
	mustFollow(t, g, "a", plain, time.Second).Cut()
	young := mustLead(t, g, "a", plain)
	next.Fail("origin-failed")
	wantSilence(t, mustFollow(t, g, "a", plain, time.Second))
	lead.Close()
	young.Close()
	wantStats(t, g, 0, 0)
}

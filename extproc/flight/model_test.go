package flight

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store"
)

// TestModel runs random schedules of everything that can happen to flights, and
// compares what waiters are told with a model that knows who waits for whom.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &model{takeOver: rapid.SampledFrom([]string{"none", "no", "yes", "yes"}).Draw(t, "takeOver")}
		o := Options{Now: func() time.Time { return t0 }, MaxMarks: 2, MaxFlights: 6}
		if m.takeOver != "none" {
			o.TakeOver = m.detach
		}
		m.g = New(o)
		t.Repeat(map[string]func(*rapid.T){
			"join":      m.join,
			"refresh":   m.refresh,
			"leave":     m.leave,
			"cut":       m.cut,
			"publish":   m.publish,
			"append":    m.append,
			"release":   func(t *rapid.T) { m.lead(t).Release(rapid.Bool().Draw(t, "mark"), "private") },
			"fail":      func(t *rapid.T) { m.lead(t).Fail("failed") },
			"abandon":   func(t *rapid.T) { m.lead(t).Abandon() },
			"finish":    func(t *rapid.T) { m.lead(t).Finish() },
			"break":     func(t *rapid.T) { m.lead(t).Break(errors.New("reset")) },
			"close":     func(t *rapid.T) { m.lead(t).Close() },
			"supersede": m.supersede,
			"":          m.check,
		})
		m.windUp(t)
	})
}

type model struct {
	g        *Group
	takeOver string
	leads    []*Lead // all there ever were: the ended ones must do nothing
	waiting  []*held
	tailing  []*held
	clock    time.Duration
}

// held is a waiter that has not left, with the request it made.
type held struct {
	w        *Waiter
	id       ID
	encoding string
}

func (m *model) now() time.Time { return t0.Add(m.clock) }

func (m *model) detach(f *Flight) bool {
	if m.takeOver == "no" {
		return false
	}
	m.leads = append(m.leads, f.Lead())
	return true
}

func (m *model) join(t *rapid.T) {
	id := rapid.SampledFrom([]ID{page, "b", page.variant([]string{"accept-encoding"}, []string{"gzip"})}).Draw(t, "id")
	h := &held{id: id, encoding: rapid.SampledFrom([]string{"gzip", "br"}).Draw(t, "encoding")}
	wait := time.Duration(rapid.IntRange(1, 5).Draw(t, "wait")) * time.Second
	role, l, w := m.g.Join(id, accepting(h.encoding), m.now().Add(wait), Limits{}, m.now())
	if (role == RoleLead) != (l != nil) || (role == RoleFollow) != (w != nil) {
		t.Fatalf("Join = %v, %v, %v", role, l, w)
	}
	switch role {
	case RoleLead:
		m.leads = append(m.leads, l)
	case RoleFollow:
		h.w = w
		m.waiting = append(m.waiting, h)
	}
}

func (m *model) refresh(*rapid.T) {
	if l, ok := m.g.TryLead("b", m.now()); ok {
		m.leads = append(m.leads, l)
	}
}

func (m *model) lead(t *rapid.T) *Lead {
	if len(m.leads) == 0 {
		t.Skip("no lead")
	}
	return m.leads[rapid.IntRange(0, len(m.leads)-1).Draw(t, "lead")]
}

func (m *model) publish(t *rapid.T) {
	l := m.lead(t)
	req := accepting(rapid.SampledFrom([]string{"gzip", "br"}).Draw(t, "encoding"))
	e := tagged(entry(req), fmt.Sprintf(`"%d"`, rapid.IntRange(1, 2).Draw(t, "version")))
	if rapid.Bool().Draw(t, "varies") {
		e.Vary.Names = []string{"accept-encoding"}
		e.VaryValues = e.Vary.Select(req)
	}
	if rapid.Bool().Draw(t, "try to resume") && l.Resume(200, e.Header) {
		return
	}
	l.Publish(e)
}

// append writes what the version of the answer has at this place.
func (m *model) append(t *rapid.T) {
	l := m.lead(t)
	m.clock += 100 * time.Millisecond
	src := l.writes()
	if src == nil {
		return
	}
	n := rapid.IntRange(1, 3).Draw(t, "n")
	p := version(l.flight.entry, src.offset, n)
	if err := l.Append(p, m.now()); err != nil && !errors.Is(err, ErrEnded) {
		t.Fatalf("Append = %v", err)
	}
	if rapid.IntRange(0, 3).Draw(t, "end") == 0 {
		if err := l.End(); err != nil && !errors.Is(err, ErrDiverged) && !errors.Is(err, ErrEnded) {
			t.Fatalf("End = %v", err)
		}
	}
}

// version returns n bytes from offset on of the representation that e begins.
func version(e *store.Entry, offset int64, n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(offset+int64(i))*7 + e.Header.Get("etag")[1]
	}
	return p
}

func (m *model) supersede(t *rapid.T) {
	if len(m.tailing) == 0 {
		t.Skip("nobody reads a body")
	}
	h := m.tailing[rapid.IntRange(0, len(m.tailing)-1).Draw(t, "tailer")]
	if l, ok := h.w.Supersede(m.now(), 200*time.Millisecond); ok {
		m.leads = append(m.leads, l)
	}
}

func (m *model) leave(t *rapid.T) {
	drop(t, &m.waiting, (*Waiter).Leave)
	drop(t, &m.tailing, (*Waiter).Leave)
}

func (m *model) cut(t *rapid.T) { drop(t, &m.waiting, (*Waiter).Cut) }

func drop(t *rapid.T, from *[]*held, how func(*Waiter)) {
	if len(*from) == 0 || rapid.Bool().Draw(t, "stay") {
		return
	}
	i := rapid.IntRange(0, len(*from)-1).Draw(t, "who")
	how((*from)[i].w)
	*from = append((*from)[:i], (*from)[i+1:]...)
}

// check reads the news and verifies what must always be true.
func (m *model) check(t *rapid.T) {
	waiting := m.waiting[:0]
	for _, h := range m.waiting {
		select {
		case n := <-h.w.C():
			m.hear(t, h, n)
		default:
			waiting = append(waiting, h)
		}
	}
	m.waiting = waiting
	for _, h := range m.waiting {
		if f := h.w.flight; f.lead == nil || f.entry != nil {
			t.Fatalf("a waiter for %x was forgotten", h.id)
		}
	}
	m.checkFlights(t)
}

func (m *model) hear(t *rapid.T, h *held, n News) {
	req := accepting(h.encoding)
	switch n.Kind {
	case NewsAnswer:
		if !httpcache.SameVariant(n.Entry.Vary.Names, n.Entry.VaryValues, req) {
			t.Fatalf("%s got the answer for %v", h.encoding, n.Entry.VaryValues)
		}
		m.tailing = append(m.tailing, h)
	case NewsRejoin:
		if httpcache.SameVariant(n.Entry.Vary.Names, n.Entry.VaryValues, req) {
			t.Fatalf("%s was sent away from its own variant", h.encoding)
		}
	case NewsLead:
		m.leads = append(m.leads, n.Lead)
	}
	if len(h.w.c) != 0 {
		t.Fatal("a second News")
	}
}

func (m *model) checkFlights(t *rapid.T) {
	live, waiting := make(map[*Flight]*Lead), 0
	for _, l := range m.leads {
		if l.flight.lead == l {
			live[l.flight] = l
		}
	}
	for f := range live {
		waiting += len(f.waiters)
		if f.entry != nil {
			p := []byte(content(f.entry.Body))
			if want := version(f.entry, 0, len(p)); string(p) != string(want) {
				t.Fatalf("body = %v, want %v", p, want)
			}
		}
	}
	if flights, w, marks := m.g.Stats(); flights != len(live) || w != waiting || w != len(m.waiting) || marks > 2 {
		t.Fatalf("Stats = %d, %d, %d; %d leads live, %d queued, %d wait", flights, w, marks,
			len(live), waiting, len(m.waiting))
	}
	for i := range m.g.shards {
		for id, f := range m.g.shards[i].flights {
			if live[f] == nil {
				t.Fatalf("the flight of %x has no leader that anybody owns", id)
			}
		}
	}
}

// windUp ends everything and verifies that nothing is left.
func (m *model) windUp(t *rapid.T) {
	for len(m.waiting) > 0 {
		m.waiting[0].w.Leave()
		m.waiting = m.waiting[1:]
	}
	for _, h := range m.tailing {
		h.w.Leave()
		h.w.Leave()
	}
	for i := 0; i < len(m.leads); i++ {
		m.leads[i].Close()
	}
	flights, waiters, _ := m.g.Stats()
	left := 0
	for i := range m.g.shards {
		left += len(m.g.shards[i].flights)
	}
	if flights != 0 || waiters != 0 || left != 0 {
		t.Fatalf("left: %d flights, %d waiters, %d IDs", flights, waiters, left)
	}
	for _, l := range m.leads {
		if s := l.flight.source; s != nil && (s.splice.live != 0 || s.splice.tailers.Load() != 0) {
			t.Fatalf("a body is left with %d writers and %d readers", s.splice.live, s.splice.tailers.Load())
		}
	}
}

package flight

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirproxy/weir/extproc/httpcache"
)

// shards is the number of parts that flights are spread over, so that requests
// for different resources do not meet at one lock.
const shards = 64

// Defaults of Options.
const (
	DefaultMarkTTL    = 10 * time.Second
	DefaultMaxMarks   = 16384
	DefaultMaxFlights = 131072
)

// Options configure a Group. The zero value is usable.
type Options struct {
	// TakeOver is asked when a leader goes away and others want its answer: it
	// starts a detached fetch that owns f.Lead() from then on, or returns false if
	// none is possible; then the waiter with the most time left is promoted. It is
	// called without a lock held and must not wait for the fetch. Nil: promote.
	TakeOver func(f *Flight) bool
	// MarkTTL is how long a do-not-coalesce mark stands; DefaultMarkTTL if 0.
	MarkTTL time.Duration
	// MaxMarks bounds the number of marks, the least recently used goes first;
	// DefaultMaxMarks if 0.
	MaxMarks int
	// MaxFlights bounds the number of flights; DefaultMaxFlights if 0.
	MaxFlights int
	// Now reads the clock when a mark is set; time.Now if nil.
	Now func() time.Time
	// Dropped is given what is attached to a flight (Lead.Attach) that ends. It may be
	// called under a lock: it neither blocks nor calls the Group.
	Dropped func(attached any)
	// Observer is told what happens.
	Observer Observer
}

// Group holds the flights of one process. It is safe for concurrent use.
type Group struct {
	opts   Options
	seed   maphash.Seed
	shards [shards]shard
	marks  marks

	draining         atomic.Bool
	flights, waiters atomic.Int64
}

// shard is a part of the group's flights. All IDs of one primary key are in one
// shard, and its lock guards all that changes in their flights and waiters.
type shard struct {
	mu      sync.Mutex
	flights map[ID]*Flight
}

// New returns an empty Group.
func New(o Options) *Group {
	if o.MarkTTL == 0 {
		o.MarkTTL = DefaultMarkTTL
	}
	if o.MaxMarks == 0 {
		o.MaxMarks = DefaultMaxMarks
	}
	if o.MaxFlights == 0 {
		o.MaxFlights = DefaultMaxFlights
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	g := &Group{opts: o, seed: maphash.MakeSeed(), marks: newMarks(o.MaxMarks)}
	for i := range g.shards {
		g.shards[i].flights = make(map[ID]*Flight)
	}
	return g
}

func (g *Group) shard(id ID) *shard {
	return &g.shards[maphash.String(g.seed, string(id.primary()))%shards]
}

// Limits are what one request brings along when it joins.
type Limits struct {
	// MaxWaiters bounds Waiters, the number of requests of one policy that wait
	// in this process; the group counts them up and down. No bound if Waiters is nil.
	MaxWaiters int
	Waiters    *atomic.Int64
	// Position is the invalidation position that the request came at. It becomes
	// the birth of the flight that the request begins (see Waiter.Birth).
	Position uint64
	// Owner is handed to TakeOver as Flight.Owner: the caller's own description of
	// the request, which the group does not look at. It must stay readable after
	// the request is gone.
	Owner any
}

// Join makes the caller the leader of id, a follower of who leads it, or neither
// (see Role). req are the header fields of its request, by which variants are
// told apart; they must not change any more. The deadline is that of the wait. A
// returned Lead must be ended and a returned Waiter be left, whatever happens.
func (g *Group) Join(id ID, req httpcache.Fields, deadline time.Time, lim Limits, now time.Time) (
	Role, *Lead, *Waiter,
) {
	role, lead, w := g.join(id, party{req: req, lim: lim}, deadline, now)
	if f := g.opts.Observer.Joined; f != nil {
		f(role)
	}
	return role, lead, w
}

func (g *Group) join(id ID, p party, deadline, now time.Time) (Role, *Lead, *Waiter) {
	s := g.shard(id)
	s.mu.Lock()
	f := s.find(id)
	switch {
	case f == nil && (g.full() || g.marks.standing(id, now)):
		s.mu.Unlock()
		return RoleSolo, nil, nil
	case f == nil:
		lead := g.begin(s, id, p)
		s.mu.Unlock()
		return RoleLead, lead, nil
	}
	w := &Waiter{flight: f, party: p, deadline: deadline, index: notWaiting, c: make(chan News, 1)}
	if e := f.entry; e != nil {
		from := f.source.splice
		s.mu.Unlock()
		n := newsOf(e, p.req)
		w.tell(n, from)
		g.told(n.Kind, 1)
		return RoleFollow, nil, w
	}
	defer s.mu.Unlock()
	if g.draining.Load() {
		return RoleSolo, nil, nil
	}
	if !admit(&p.lim) {
		return RoleFull, nil, nil
	}
	f.waiters.push(w)
	g.waiters.Add(1)
	return RoleFollow, nil, w
}

// TryLead makes the caller the leader of id, as a refresh that no client waits
// for needs it. It returns false if somebody leads already, or nobody may.
// Do-not-coalesce marks do not count here.
func (g *Group) TryLead(id ID, _ time.Time) (*Lead, bool) {
	s := g.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.find(id) != nil || g.full() {
		return nil, false
	}
	return g.begin(s, id, party{}), true
}

// full reports whether no flight may begin.
func (g *Group) full() bool {
	return g.draining.Load() || g.flights.Load() >= int64(g.opts.MaxFlights)
}

// begin registers a new flight; the caller holds s.mu.
func (g *Group) begin(s *shard, id ID, p party) *Lead {
	f := &Flight{group: g, shard: s, id: id, birth: p.lim.Position}
	f.lead = &Lead{flight: f, party: p}
	s.flights[id] = f
	g.flights.Add(1)
	return f.lead
}

// find returns the flight of id that one may still join. A flight whose body
// broke is none: its leader only has not said so yet. The caller holds s.mu.
func (s *shard) find(id ID) *Flight {
	f := s.flights[id]
	if f != nil && f.entry != nil && f.entry.Body.Err() != nil {
		return nil
	}
	return f
}

// forget makes f unfindable; the caller holds s.mu.
func (s *shard) forget(f *Flight) {
	for _, id := range [...]ID{f.id, f.alias} {
		if s.flights[id] == f {
			delete(s.flights, id)
		}
	}
}

// admit counts one more waiter of a policy, unless that is one too many.
func admit(lim *Limits) bool {
	if lim.Waiters == nil {
		return true
	}
	for {
		n := lim.Waiters.Load()
		if n >= int64(lim.MaxWaiters) {
			return false
		}
		if lim.Waiters.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Marked reports whether a do-not-coalesce mark stands for id.
func (g *Group) Marked(id ID, now time.Time) bool { return g.marks.standing(id, now) }

// ClearMark takes the do-not-coalesce mark of id away: a cacheable answer was
// seen. Publish does so too.
func (g *Group) ClearMark(id ID) { g.marks.clear(id) }

// Stats returns the number of flights, waiters and marks. Flights and waiters
// are zero when all work is over.
func (g *Group) Stats() (flights, waiters, marks int) {
	return int(g.flights.Load()), int(g.waiters.Load()), g.marks.len()
}

// Drain lets no flight begin any more and sends all that wait for an answer to
// the origin: the process ends, and may not last as long as they would wait.
// Leaders go on to their end.
func (g *Group) Drain() {
	g.draining.Store(true)
	for i := range g.shards {
		s := &g.shards[i]
		var waiting []*Waiter
		s.mu.Lock()
		for _, f := range s.flights {
			waiting = append(waiting, f.takeWaiters()...)
		}
		s.mu.Unlock()
		g.tellAll(waiting, News{Kind: NewsFetch, Reason: ReasonDraining})
	}
}

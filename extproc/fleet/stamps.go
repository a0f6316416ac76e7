package fleet

import (
	"container/list"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

// Verdict is what the invalidations say of an entry, mildest first.
type Verdict uint8

// The verdicts of [Stamps.Check].
const (
	Valid     Verdict = iota
	SoftStale         // usable as a stale entry only
	Refused           // not usable
)

// Covered is what invalidations can name an entry by.
type Covered struct {
	Birth                        uint64 // Position when its fetch began
	URI, Host, Policy, Namespace string
	Tags                         []string
}

// DefaultMaxStamps bounds the stamps of [NewStamps].
const DefaultMaxStamps = 1 << 16

// Stamps are the invalidations that this process knows. Each has a position in
// one sequence; an entry carries as its birth the position at which its fetch
// began, and is covered by every younger stamp that names it. Whatever is
// fetched or stored meanwhile, an answer older than an invalidation cannot win.
//
// In a process on its own Add numbers the sequence. In a fleet Redis does, and
// Apply brings what it said; Add then stands between two positions of the fleet,
// for what only this process knows as yet (see position.go).
//
// Their number is bounded: a stamp over the bound is forgotten by folding it
// into a floor, which holds all entries born before it to be covered. So a floor
// costs fetches, never a wrong answer.
//
// Stamps are safe for concurrent use. Check takes no lock unless a stamp younger
// than the entry may name it: it compares the birth with the newest position of
// all, then with the newest of each kind, then with the newest in the slot that
// the name hashes to; only then does it look the name up.
type Stamps struct {
	position atomic.Uint64        // up to which all is known
	newest   atomic.Uint64        // of all stamps
	seen     atomic.Uint64        // newest birth of what other processes fetched
	latest   [kinds]atomic.Uint64 // newest position of each kind
	slots    []atomic.Uint64      // newest position by hash of kind and value
	floor    [2]atomic.Uint64     // by Mode: births below are covered
	seed     maphash.Seed

	mu     sync.RWMutex
	byName map[name]*list.Element // of *stamp
	order  *list.List             // oldest first
	limit  int
	folded uint64
	added  time.Time
	fleet  bool // positions are the fleet's
	forms  func(namespace, uri string) []string
}

type stamp struct {
	name
	at     [2]uint64 // newest position by Mode
	stated bool      // it was invalidated by this name, which is not only a form of another
}

// NewStamps returns an empty set of at most limit stamps; 0 means
// [DefaultMaxStamps].
func NewStamps(limit int) *Stamps {
	if limit <= 0 {
		limit = DefaultMaxStamps
	}
	slots := 1
	for slots < limit {
		slots <<= 1
	}
	return &Stamps{
		slots: make([]atomic.Uint64, slots), seed: maphash.MakeSeed(),
		byName: map[name]*list.Element{}, order: list.New(), limit: limit,
	}
}

// Position returns the position up to which all stamps are known: the birth of a
// fetch that begins now.
func (s *Stamps) Position() uint64 { return s.position.Load() }

// Add stamps what kind, namespace and value name, and returns the position. The
// namespace may be empty for every namespace; value is empty for ByAll, and the
// namespace itself for ByNamespace. When Add returns, Check covers every entry
// whose fetch began before the call.
func (s *Stamps) Add(kind Kind, namespace, value string, mode Mode, now time.Time) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.added = now
	return s.addLocal(kind, namespace, value, mode)
}

// putOne stamps one name. The caller holds mu.
func (s *Stamps) putOne(n name, mode Mode, at uint64) *stamp {
	e, ok := s.byName[n]
	if ok {
		s.order.MoveToBack(e)
	} else {
		e = s.order.PushBack(&stamp{name: n})
		s.byName[n] = e
	}
	st := e.Value.(*stamp)
	st.at[mode] = max(st.at[mode], at)
	if s.order.Len() > s.limit {
		s.fold()
	}
	raise(s.slot(n.kind, n.value), at)
	raise(&s.latest[n.kind], at)
	raise(&s.newest, at)
	return st
}

// raise stores v unless what is stored is greater. One writer at a time.
func raise(a *atomic.Uint64, v uint64) {
	if v > a.Load() {
		a.Store(v)
	}
}

// fold forgets the oldest stamp. The caller holds mu.
func (s *Stamps) fold() {
	e := s.order.Front()
	old := s.order.Remove(e).(*stamp)
	delete(s.byName, old.name)
	for mode, at := range old.at {
		raise(&s.floor[mode], at)
	}
	s.folded++
}

// Check returns what the stamps younger than c.Birth say of the entry. It costs
// one atomic load when nothing was added since that birth, and does not depend
// on the number of stamps or entries.
func (s *Stamps) Check(c Covered) Verdict {
	if c.Birth >= s.newest.Load() {
		return Valid
	}
	return s.look(&c)
}

func (s *Stamps) look(c *Covered) Verdict {
	v := verdict(c.Birth, s.floor[Hard].Load(), s.floor[Soft].Load())
	v = max(v,
		s.named(c, ByAll, ""), s.named(c, ByNamespace, c.Namespace), s.named(c, ByPolicy, c.Policy),
		s.named(c, ByHost, c.Host), s.named(c, ByURL, c.URI))
	for _, tag := range c.Tags {
		v = max(v, s.named(c, ByTag, tag))
	}
	return v
}

// RefusesTags reports whether a hard stamp of one of the tags is younger than birth.
func (s *Stamps) RefusesTags(birth uint64, namespace string, tags []string) bool {
	c := Covered{Birth: birth, Namespace: namespace}
	for _, tag := range tags {
		if s.named(&c, ByTag, tag) == Refused {
			return true
		}
	}
	return false
}

// Refuses returns the position of the newest hard stamp that covers what was born
// before it, leaving c.Birth and c.Tags aside; 0: there is none.
func (s *Stamps) Refuses(c Covered) uint64 {
	newest := s.floor[Hard].Load()
	if s.newest.Load() == 0 {
		return newest
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, n := range [...]name{
		nameOf(ByAll, c.Namespace, ""), nameOf(ByNamespace, c.Namespace, c.Namespace),
		nameOf(ByPolicy, c.Namespace, c.Policy), nameOf(ByHost, c.Namespace, c.Host), nameOf(ByURL, c.Namespace, c.URI),
	} {
		for _, namespace := range [...]string{n.namespace, ""} {
			n.namespace = namespace
			if e, ok := s.byName[n]; ok {
				newest = max(newest, e.Value.(*stamp).at[Hard])
			}
		}
	}
	return newest
}

// named returns what the stamps of one kind and value say.
func (s *Stamps) named(c *Covered, kind Kind, value string) Verdict {
	if c.Birth >= s.latest[kind].Load() {
		return Valid
	}
	n := nameOf(kind, c.Namespace, value)
	if c.Birth >= s.slot(kind, n.value).Load() {
		return Valid
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	v := s.stamped(c.Birth, n)
	if n.namespace != "" {
		n.namespace = ""
		v = max(v, s.stamped(c.Birth, n))
	}
	return v
}

func (s *Stamps) stamped(birth uint64, n name) Verdict {
	e, ok := s.byName[n]
	if !ok {
		return Valid
	}
	at := &e.Value.(*stamp).at
	return verdict(birth, at[Hard], at[Soft])
}

func verdict(birth, hard, soft uint64) Verdict {
	switch {
	case birth < hard:
		return Refused
	case birth < soft:
		return SoftStale
	}
	return Valid
}

func (s *Stamps) slot(kind Kind, value string) *atomic.Uint64 {
	h := maphash.String(s.seed, value) + uint64(kind)*0x9e3779b97f4a7c15
	return &s.slots[h&uint64(len(s.slots)-1)]
}

// StampStats is the state of [Stamps].
type StampStats struct {
	Position uint64    `json:"position"` // up to which all is known
	Stamps   int       `json:"stamps"`   // held by name
	Folded   uint64    `json:"folded"`   // forgotten into the floor
	Newest   time.Time `json:"newest,omitzero"`
}

// Stats returns the state of the stamps.
func (s *Stamps) Stats() StampStats {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return StampStats{Position: s.position.Load(), Stamps: s.order.Len(), Folded: s.folded, Newest: s.added}
}

package fleet

import "time"

// Positions of a fleet are those that Redis gives, shifted: between two of them
// there is room for what a process stamps on its own while Redis is away. Such a
// stamp covers everything the process has so far, and nothing it fetches from then
// on; once Redis is back the stamp is added there and gets a position above all
// that was fetched anywhere meanwhile.
//
// What the process has may come from another that was ahead of it, so the stamp is
// put above the births that were seen (Saw). The fetches that begin after it carry
// its position as their birth although the process has not applied all up to
// there: those stamps came before the fetch all the same, since another process
// had applied them.
const (
	localBits = 12
	localMask = 1<<localBits - 1
)

// local returns the process's position for one of the fleet's.
func local(position uint64) uint64 { return position << localBits }

// Shared returns a birth as other processes may read it: without what only this
// process knew.
func Shared(birth uint64) uint64 { return birth &^ localMask }

// addLocal stamps a name that only this process knows, and moves the position
// forward. Where there is no room left, until the next position of the fleet, the
// stamp stays above what fetches carry as their birth: what it covers cannot be
// cached meanwhile. The caller holds mu.
func (s *Stamps) addLocal(kind Kind, namespace, value string, mode Mode) uint64 {
	at := max(s.position.Load(), Shared(s.seen.Load())) + 1
	s.put(kind, namespace, value, mode, at)
	if !s.fleet || at&localMask != 0 {
		s.position.Store(at)
	}
	return at
}

// Saw notes the birth of an entry that came from another process.
func (s *Stamps) Saw(birth uint64) {
	for {
		seen := s.seen.Load()
		if birth <= seen || s.seen.CompareAndSwap(seen, birth) {
			return
		}
	}
}

// Stamp is one invalidation at its position in the fleet.
type Stamp struct {
	Kind             Kind
	Namespace, Value string
	Mode             Mode
	Position         uint64 // as Redis gives it
}

// Apply takes over stamps of the fleet. upTo is the position up to which the fleet
// has no others; 0 if there may be some in between. It makes all further
// positions the fleet's.
func (s *Stamps) Apply(stamps []Stamp, upTo uint64, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fleet = true
	for i := range stamps {
		p := &stamps[i]
		s.put(p.Kind, p.Namespace, p.Value, p.Mode, local(p.Position))
		s.added = now
	}
	raise(&s.newest, local(upTo))
	raise(&s.position, local(upTo))
}

// Fold takes over the floors of the fleet: everything born before hard is
// refused, everything born before soft is stale.
func (s *Stamps) Fold(hard, soft uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	raise(&s.floor[Hard], local(hard))
	raise(&s.floor[Soft], local(soft))
	raise(&s.newest, max(local(hard), local(soft)))
}

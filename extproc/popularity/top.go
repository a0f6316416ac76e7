package popularity

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/weirproxy/weir/extproc/httpcache"
)

const (
	// namedFrom is the count from which a key may be named: a scan of keys that are
	// read once leaves no names.
	namedFrom = one + one/2
	// describeAgain is after how many ticks a description is asked for anew, since
	// Vary or the policy may have changed.
	describeAgain = ticksPerHalfLife
	// maxDescription bounds the bytes of one description; a longer one is not kept.
	maxDescription = 4096
)

// Description says what a key stands for: enough to show it, and to fetch it
// again.
type Description struct {
	URI    string `json:"uri"`
	Policy string `json:"policy"`          // namespace/name
	Route  string `json:"route,omitempty"` // what the policy is attached to
	// Header holds the request fields that the key or Vary goes by, but for
	// cookies.
	Header httpcache.Fields `json:"header,omitempty"`
	// Cookies are the names of the cookies in the key that the request carried.
	// Their values are secrets, and are not kept.
	Cookies []string `json:"cookies,omitempty"`
}

func (d *Description) size() int {
	n := len(d.URI) + len(d.Policy) + len(d.Route)
	for _, f := range d.Header {
		n += len(f.Name) + len(f.Value)
	}
	for _, c := range d.Cookies {
		n += len(c)
	}
	return n
}

// clone returns a copy that holds on to no memory of a request.
func (d *Description) clone() Description {
	out := Description{
		URI: strings.Clone(d.URI), Policy: strings.Clone(d.Policy), Route: strings.Clone(d.Route),
	}
	for _, f := range d.Header {
		out.Header = append(out.Header, httpcache.Field{Name: strings.Clone(f.Name), Value: strings.Clone(f.Value)})
	}
	for _, c := range d.Cookies {
		out.Cookies = append(out.Cookies, strings.Clone(c))
	}
	return out
}

// Hot is a key that is read often.
type Hot struct {
	Key Key `json:"-"`
	Description
	Rate float64 `json:"rate"` // reads per second
}

// hotKey is a key kept by name.
type hotKey struct {
	Description
	at uint64 // tick of the description
}

// unknown reports whether the key should be described. While somebody else is at
// the names nobody waits: there will be more reads of a hot key.
func (s *Sketch) unknown(key *Key, at uint64) bool {
	if !s.mu.TryLock() {
		return false
	}
	defer s.mu.Unlock()
	h, ok := s.named[*key]
	return !ok || at-h.at >= describeAgain && at-h.at <= tickMask/2
}

// Describe says what a key stands for. The Sketch keeps a copy.
func (s *Sketch) Describe(key *Key, d Description, now time.Time) {
	if d.size() > maxDescription {
		return
	}
	h := &hotKey{Description: d.clone(), at: s.ticks(now)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.named[*key] = h
	if len(s.named) >= 2*s.capacity {
		s.prune(h.at)
	}
}

// prune keeps the names of the most read keys only. Who wants a name from now on
// must be read more than the last of them was; as that decays like every count,
// a key that falls silent makes room. The caller holds mu.
func (s *Sketch) prune(at uint64) {
	ranked := s.ranked(at)
	for _, r := range ranked[s.capacity:] {
		delete(s.named, r.key)
	}
	s.threshold.Store(uint64(newCell(ranked[s.capacity-1].count, at)))
}

// rank is the place of a named key.
type rank struct {
	key   Key
	count uint64
}

// ranked returns the named keys, the most read first; the caller holds mu.
func (s *Sketch) ranked(at uint64) []rank {
	ranked := make([]rank, 0, len(s.named))
	for key := range s.named {
		slots := s.slots(&key)
		ranked = append(ranked, rank{key, s.least(&slots, at)})
	}
	slices.SortFunc(ranked, func(a, b rank) int {
		return cmp.Or(cmp.Compare(b.count, a.count), slices.Compare(a.key[:], b.key[:]))
	})
	return ranked
}

// Top returns the keys that are read most, at most n, the first most; n <= 0
// returns all that are known. Keys that were not read for long are left out.
func (s *Sketch) Top(n int, now time.Time) []Hot {
	at := s.ticks(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	ranked := s.ranked(at)
	if n > 0 && n < len(ranked) {
		ranked = ranked[:n]
	}
	top := make([]Hot, 0, len(ranked))
	for _, r := range ranked {
		if r.count < one/2 {
			break
		}
		top = append(top, Hot{Key: r.key, Description: s.named[r.key].Description, Rate: s.rate(r.count, now)})
	}
	return top
}

// Len returns the number of keys that are kept by name.
func (s *Sketch) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.named)
}

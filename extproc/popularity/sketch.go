package popularity

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Defaults of Options.
const (
	DefaultHalfLife = time.Minute
	DefaultWidth    = 1 << 15 // with rows counters of 8 bytes each: 1 MiB
	DefaultKeys     = 1000
)

// Options configure a Sketch. The zero value is usable.
type Options struct {
	// HalfLife is how long it takes until a read counts half.
	HalfLife time.Duration
	// Width is the number of counters in each of the four rows, rounded up to a
	// power of two. A rate is too high by about the rate of all keys together,
	// divided by Width, at worst.
	Width int
	// Keys is how many hot keys are kept by name; for a while up to twice as many.
	Keys int
	// Rand returns uniform random bits and is safe for concurrent use;
	// math/rand/v2 if nil.
	Rand func() uint64
}

// Key is a cache key: a hash without structure, of which the sketch takes its own.
type Key = [32]byte

// rows is the number of counters that each key has; the least of them counts.
const rows = 4

// Sketch counts reads. It is safe for concurrent use. The times it is given may
// go back a little.
type Sketch struct {
	random func() uint64
	start  time.Time
	tick   time.Duration
	shift  uint                  // 64 − log2 of the width
	seeds  [rows]uint64          // odd multipliers, one a row
	cells  [rows][]atomic.Uint64 // see cell

	threshold atomic.Uint64 // cell: what a key must have to be named

	mu       sync.Mutex
	named    map[Key]*hotKey
	capacity int
}

// New returns an empty Sketch.
func New(o Options, now time.Time) *Sketch {
	if o.HalfLife <= 0 {
		o.HalfLife = DefaultHalfLife
	}
	if o.Width <= 0 {
		o.Width = DefaultWidth
	}
	if o.Keys <= 0 {
		o.Keys = DefaultKeys
	}
	if o.Rand == nil {
		o.Rand = rand.Uint64
	}
	log := max(bits.Len(uint(o.Width-1)), 1)
	s := &Sketch{
		random: o.Rand, start: now, tick: max(o.HalfLife/ticksPerHalfLife, 1), shift: uint(64 - log),
		named: make(map[Key]*hotKey), capacity: o.Keys,
	}
	for i := range s.cells {
		s.cells[i] = make([]atomic.Uint64, 1<<log)
		s.seeds[i] = o.Rand() | 1
	}
	return s
}

// Touch counts one read of key. It allocates nothing and waits for nobody. True
// asks the caller to say by Describe what the key stands for: it is among the
// most read ones and not known yet, or was described long ago.
func (s *Sketch) Touch(key *Key, now time.Time) (describe bool) {
	at := s.ticks(now)
	slots := s.slots(key)
	count := s.least(&slots, at)
	step := stepFor(count)
	if step > one && s.random()&(step/one-1) != 0 {
		return false
	}
	count += step
	for i := range rows {
		raise(&s.cells[i][slots[i]], count, at)
	}
	return count >= namedFrom && count > cell(s.threshold.Load()).value(at) && s.unknown(key, at)
}

// Rate returns how often key was read lately, per second. It is an estimate, and
// rather too high than too low: other keys may share its counters.
func (s *Sketch) Rate(key *Key, now time.Time) float64 {
	at := s.ticks(now)
	slots := s.slots(key)
	return s.rate(s.least(&slots, at), now)
}

// HalfLife returns how long it takes until a read counts half.
func (s *Sketch) HalfLife() time.Duration { return ticksPerHalfLife * s.tick }

// rate turns a count into reads per second. A sketch younger than some half-lives
// has not seen all that a count in balance holds.
func (s *Sketch) rate(count uint64, now time.Time) float64 {
	age := max(now.Sub(s.start), s.tick)
	seen := 1 - halvings(float64(age)/float64(s.tick)/ticksPerHalfLife)
	return float64(count) / one / (ticksInBalance * s.tick.Seconds() * seen)
}

// ticks is the clock of the cells.
func (s *Sketch) ticks(now time.Time) uint64 {
	return uint64(max(now.Sub(s.start), 0)/s.tick) & tickMask
}

// slots returns the key's counter in each row, by multiply-shift hashing with
// multipliers of this process alone: who chooses URLs cannot choose counters.
func (s *Sketch) slots(key *Key) (slots [rows]uint64) {
	for i := range slots {
		part := binary.LittleEndian.Uint64(key[8*i:])
		slots[i] = (part * s.seeds[i]) >> s.shift
	}
	return slots
}

// least returns the count of a key: that of the counter that it shares least.
func (s *Sketch) least(slots *[rows]uint64, at uint64) uint64 {
	count := uint64(maxValue)
	for i := range rows {
		count = min(count, cell(s.cells[i][slots[i]].Load()).value(at))
	}
	return count
}

// raise lifts a counter to count, unless it is there. Who is overtaken looks
// again; a read that is lost so is one of many.
func raise(c *atomic.Uint64, count, at uint64) {
	for {
		old := c.Load()
		if cell(old).value(at) >= count || c.CompareAndSwap(old, uint64(newCell(count, at))) {
			return
		}
	}
}

// exactTo is the count up to which every read counts by itself. Above, a read
// counts for a 128th to a 256th of what is there, as often as that makes it right;
// so a hot key's rate is known to some 8 %.
const exactTo = 256

// stepFor returns how much a read adds to a count, a power of two.
func stepFor(count uint64) uint64 { return one << bits.Len64(count/(one*exactTo)) }

package popularity

import "math"

// cell is a counter that decays: the count in the lower bits, in fractions, and
// the tick it was written at in the upper ones. What it holds at a later tick
// follows from both, so nothing ever has to sweep over the counters.
type cell uint64

const (
	valueBits = 40
	maxValue  = 1<<valueBits - 1
	tickMask  = 1<<(64-valueBits) - 1 // ticks of four seconds wrap around after two years

	// one is a count of one.
	one = 1 << 8

	ticksPerHalfLife = 16
	// ticksInBalance is how many ticks' reads a counter holds on the mean when as
	// many come as decay: 1/(1−r) at the end of a tick and r/(1−r) at its beginning,
	// for r = 2^(−1/16) a tick.
	ticksInBalance = 23.0867
)

func newCell(value, at uint64) cell { return cell(at<<valueBits | min(value, maxValue)) }

// value returns the count at a tick.
func (c cell) value(at uint64) uint64 {
	v := uint64(c) & maxValue
	age := (at - uint64(c)>>valueBits) & tickMask
	switch {
	case age == 0, v == 0:
		return v
	case age > tickMask/2: // written by who read the clock later
		return v
	case age >= valueBits*ticksPerHalfLife:
		return 0
	}
	return v >> (age / ticksPerHalfLife) * fraction(age%ticksPerHalfLife) >> 16
}

// fraction is 2^(−n/16) in 65536ths, for n from 0 to 15, to a quarter of a percent.
func fraction(n uint64) uint64 { return 65536 - 2751*n + 44*n*n }

// halvings is 2^(−n).
func halvings(n float64) float64 { return math.Exp2(-n) }

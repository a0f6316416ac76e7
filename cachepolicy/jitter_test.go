package cachepolicy_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirproxy/weir/cachepolicy"
)

func TestJitter(t *testing.T) {
	t.Parallel()
	tests := []struct {
		ttl     time.Duration
		percent int
		u       float64
		want    time.Duration
	}{
		{time.Minute, 10, 0, time.Minute},
		{time.Minute, 10, 0.5, 57 * time.Second},
		{time.Minute, 0, 0.5, time.Minute},
		{0, 10, 0.5, 0},
		{time.Minute, 100, 0.5, 30 * time.Second},
		{time.Minute, 10, math.NaN(), time.Minute},
	}
	for _, tc := range tests {
		if got := cachepolicy.Jitter(tc.ttl, tc.percent, tc.u); got != tc.want {
			t.Errorf("Jitter(%v, %d, %v) = %v, want %v", tc.ttl, tc.percent, tc.u, got, tc.want)
		}
	}
}

func TestJitterNeverLengthens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ttl := time.Duration(rapid.Int64Range(0, int64(cachepolicy.MaxLifetime)).Draw(t, "ttl"))
		percent := rapid.IntRange(0, 100).Draw(t, "percent")
		u := rapid.Float64Range(0, math.Nextafter(1, 0)).Draw(t, "u")
		got := cachepolicy.Jitter(ttl, percent, u)
		least := ttl - time.Duration(math.Ceil(float64(ttl)*float64(percent)/100))
		if got > ttl || got < least || got < 0 {
			t.Fatalf("Jitter = %v, want between %v and %v", got, least, ttl)
		}
	})
}

// TestJitterSpreadsExpiry: 10,000 keys stored within one second, with a lifetime
// of 60s and 10 percent, expire over some six seconds. No window of one second,
// wherever it begins, sees more than 2,000 of them.
func TestJitterSpreadsExpiry(t *testing.T) {
	t.Parallel()
	const keys, most = 10_000, 2000
	for seed := range uint64(5) {
		draw := rand.New(rand.NewPCG(seed, 1))
		expiries := make([]time.Duration, keys)
		for i := range expiries {
			stored := time.Duration(draw.Int64N(int64(time.Second)))
			expiries[i] = stored + cachepolicy.Jitter(time.Minute, 10, draw.Float64())
		}
		slices.Sort(expiries)
		first, worst := 0, 0
		for last, at := range expiries {
			for at-expiries[first] >= time.Second {
				first++
			}
			worst = max(worst, last-first+1)
		}
		if worst > most {
			t.Errorf("seed %d: %d keys expire within one second, want at most %d", seed, worst, most)
		}
		if spread := expiries[keys-1] - expiries[0]; spread < 6*time.Second || spread > 7*time.Second {
			t.Errorf("seed %d: expiries are spread over %v, want 6s to 7s", seed, spread)
		}
	}
}

// TestJitterIsUniform compares the shares of ten equal parts of the range.
func TestJitterIsUniform(t *testing.T) {
	t.Parallel()
	draw := rand.New(rand.NewPCG(7, 7))
	var parts [10]int
	const n = 100_000
	for range n {
		short := time.Minute - cachepolicy.Jitter(time.Minute, 10, draw.Float64())
		parts[int(short*10/(6*time.Second))]++
	}
	for i, got := range parts {
		if math.Abs(float64(got)-n/10) > 500 { // five standard deviations
			t.Errorf("part %d has %d of %d draws, want about %d", i, got, n, n/10)
		}
	}
}

package cachepolicy

import (
	"math"
	"time"
)

// EarlyRefresh draws whether a read of a fresh entry starts its refresh, after
// XFetch (Vattani, Chierichetti, Lowenstein: Optimal Probabilistic Cache Stampede
// Prevention, VLDB 2015): refresh if now − cost·β·ln(u) ≥ expiry, here with
// remaining = expiry − now. The draw u is uniform in (0,1]. No refresh comes
// earlier than maxLead before expiry. Without cost or with beta <= 0 the answer
// is false.
func EarlyRefresh(remaining, cost time.Duration, beta, u float64, maxLead time.Duration) bool {
	if remaining > maxLead || cost <= 0 || !(beta > 0) {
		return false
	}
	return float64(cost)*beta*-math.Log(u) >= float64(remaining)
}

// costWeight is the share of a new sample in the smoothed cost. At 1/4 one
// outlier moves the cost little, and a lasting change shows within some eight
// refreshes.
const costWeight = 4

// SmoothCost returns the fetch cost to keep, an exponentially weighted mean in
// nanoseconds: cheap fetches must not round to a cost of zero, or they are never
// refreshed early. The first sample (old <= 0) is taken as it is; samples below
// one nanosecond change nothing.
func SmoothCost(old, sample time.Duration) time.Duration {
	switch {
	case sample <= 0:
		return max(old, 0)
	case old <= 0:
		return sample
	}
	return old + (sample-old)/costWeight
}

// autoMissShare is the share of lifetimes that AutoBeta lets run out without an
// early refresh, where the lead allows it.
const autoMissShare = 0.01

// AutoBeta picks beta for a key from its read rate (per second), its fetch cost
// and its lifetime. It is 1, the paper's optimum, or as much more as a rarely
// read key needs to be refreshed early in 99 of 100 lifetimes; but never so much
// that the mean lead passes maxLeadPercent of the lifetime. The result is at
// most MaxBeta, and 0 where no lead is allowed. Without a measured rate or cost
// it is DefaultBeta.
//
// With reads as a Poisson process of rate λ and b = β·cost, a lifetime runs out
// without a refresh with probability e^(−λ·b), and the mean lead is b·Ein(λ·b),
// which is b·(ln(λ·b) + 0.577) for λ·b well above 1.
func AutoBeta(rate float64, cost, lifetime time.Duration, maxLeadPercent int) float64 {
	d := cost.Seconds()
	if !(rate > 0) || math.IsInf(rate, 0) || d <= 0 || lifetime <= 0 {
		return DefaultBeta
	}
	want := min(max(DefaultBeta, -math.Log(autoMissShare)/(rate*d)), MaxBeta)
	limit := lifetime.Seconds() * float64(maxLeadPercent) / 100
	if MeanLead(rate, d*want) <= limit {
		return want
	}
	low, high := 0.0, want
	for range 40 { // halves the interval to below 1e-10
		mid := (low + high) / 2
		if MeanLead(rate, d*mid) <= limit {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// MeanLead is the mean time in seconds between an early refresh and the expiry
// it forestalls, for reads at the given rate per second and b = β·cost in
// seconds: b·Ein(rate·b). Lifetimes that run out count with a lead of 0.
func MeanLead(rate, b float64) float64 { return b * ein(rate*b) }

// eulerGamma is the Euler–Mascheroni constant.
const eulerGamma = 0.57721566490153286

// ein is the entire exponential integral, Ein(x) = ∫₀ˣ (1 − e^(−t))/t dt, for
// x >= 0 (NIST DLMF 6.2.3, 6.6.4, 6.12.1).
func ein(x float64) float64 {
	const seriesBelow = 20 // above, E1(x) < 1e-10
	if x >= seriesBelow {
		return math.Log(x) + eulerGamma
	}
	sum, term := 0.0, 1.0
	for k := 1.0; k < 100; k++ {
		term *= -x / k
		sum -= term / k
		if math.Abs(term) < 1e-12 {
			break
		}
	}
	return sum
}

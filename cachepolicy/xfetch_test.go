package cachepolicy_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirproxy/weir/cachepolicy"
)

// generation plays the reads of one lifetime, a Poisson process, until the first
// early refresh is done. It returns how long before expiry that refresh began,
// and how many other reads began one too while it ran, as they would without
// coordination.
func generation(draw *rand.Rand, rate float64, cost time.Duration, beta float64) (lead time.Duration, extra int) {
	b := beta * cost.Seconds()
	horizon := time.Duration(b * (math.Log(rate*b) + 12) * 1e9) // e^-12 of all leads are longer
	started := false
	var done time.Duration
	for now := -horizon; ; now += time.Duration(draw.ExpFloat64() / rate * float64(time.Second)) {
		if started && now >= done {
			return lead, extra
		}
		if !cachepolicy.EarlyRefresh(-now, cost, beta, 1-draw.Float64(), horizon) {
			continue
		}
		if started {
			extra++
			continue
		}
		started, lead, done = true, -now, now+cost
	}
}

// TestXFetchAgainstTheory: for reads at rate λ, cost d, and λ·β·d well above 1,
// the refreshes beyond the first are e^(1/β) − 1 in the mean, and the mean lead
// is β·d·(ln(λ·β·d) + 0.577).
func TestXFetchAgainstTheory(t *testing.T) {
	t.Parallel()
	const generations = 4000
	tests := []struct {
		beta float64
		rate float64
		cost time.Duration
	}{
		{1, 2000, 50 * time.Millisecond},
		{2, 2000, 50 * time.Millisecond},
		{1, 20_000, 5 * time.Millisecond},
		{4, 20_000, 400 * time.Microsecond}, // below the millisecond
		{1, 100, 300 * time.Millisecond},
	}
	for _, tc := range tests {
		draw := rand.New(rand.NewPCG(1, 2))
		var leads, extras float64
		for range generations {
			lead, extra := generation(draw, tc.rate, tc.cost, tc.beta)
			leads += lead.Seconds() / generations
			extras += float64(extra) / generations
		}
		if want := math.Exp(1/tc.beta) - 1; math.Abs(extras-want) > 0.1*want {
			t.Errorf("%+v: %.3f extra fetches per refresh, want about %.3f", tc, extras, want)
		}
		b := tc.beta * tc.cost.Seconds()
		want := b * (math.Log(tc.rate*b) + 0.577)
		if math.Abs(leads-want) > 0.02*want {
			t.Errorf("%+v: mean lead %.4fs, want about %.4fs", tc, leads, want)
		}
		if got := cachepolicy.MeanLead(tc.rate, b); math.Abs(got-want) > 1e-3*want {
			t.Errorf("%+v: MeanLead = %.4fs, want %.4fs", tc, got, want)
		}
	}
}

// TestMeanLeadOfRareReads compares with the integral b·∫₀ˣ(1−e^(−t))/t dt.
func TestMeanLeadOfRareReads(t *testing.T) {
	t.Parallel()
	for _, x := range []float64{0.001, 0.1, 1, 5, 19.9, 20.1, 50} {
		const steps = 100_000
		want := 0.0
		for i := range steps {
			at := (float64(i) + 0.5) * x / steps
			want += -math.Expm1(-at) / at * x / steps
		}
		if got := cachepolicy.MeanLead(x/3, 3); math.Abs(got-3*want) > 1e-6 {
			t.Errorf("MeanLead(%v, 3) = %v, want %v", x/3, got, 3*want)
		}
	}
}

// TestFieldCase9 is case 9: an origin of 300 ms, whose cost must not round to
// zero; 10,000 look-ups spread over the last 2 s of a life of 10 s.
func TestFieldCase9(t *testing.T) {
	t.Parallel()
	draw := rand.New(rand.NewPCG(9, 9))
	var cost time.Duration
	for range 50 {
		cost = cachepolicy.SmoothCost(cost, 280*time.Millisecond+time.Duration(draw.Int64N(int64(40*time.Millisecond))))
	}
	if cost < 250*time.Millisecond || cost > 400*time.Millisecond {
		t.Fatalf("smoothed cost %v, want 250ms to 400ms", cost)
	}
	const reads = 10_000
	elected := 0
	for i := range reads {
		in := cachepolicy.ReadInput{Lifetime: 10 * time.Second, Cost: 300 * time.Millisecond, Beta: 1, MaxLeadPercent: 20,
			Age: 8*time.Second + 2*time.Second*time.Duration(i)/reads, U: 1 - draw.Float64()}
		switch cachepolicy.DecideRead(in) {
		case cachepolicy.ServeAndRefreshEarly:
			elected++
		case cachepolicy.ServeFresh:
		default:
			t.Fatalf("a fresh answer at age %v is not served at once", in.Age)
		}
	}
	want := 0.15 * -math.Expm1(-2/0.3) // ∫₀² e^(−r/0.3) dr / 2
	if got := float64(elected) / reads; math.Abs(got-want) > 0.01 {
		t.Errorf("share of look-ups that elect a refresh: %.4f, want about %.4f", got, want)
	}
}

func TestEarlyRefreshAtTheEdges(t *testing.T) {
	t.Parallel()
	const s = time.Second
	tests := []struct {
		name      string
		remaining time.Duration
		cost      time.Duration
		beta, u   float64
		want      bool
	}{
		{"the draw reaches expiry exactly", 2 * s, s, 2, math.Exp(-1), true},
		{"the draw falls short", 2*s + 1, s, 2, math.Exp(-1), false},
		{"a draw of 0 is bounded by the lead", 9 * s, s, 1, 0, true},
		{"beyond the lead", 11 * s, s, 1, 0, false},
		{"expired", 0, s, 1, 0.5, true},
		{"no cost", s, 0, 1, 0, false},
		{"no beta", s, s, 0, 0, false},
		{"beta not a number", s, s, math.NaN(), 0, false},
		{"draw not a number", s, s, 1, math.NaN(), false},
	}
	for _, tc := range tests {
		if got := cachepolicy.EarlyRefresh(tc.remaining, tc.cost, tc.beta, tc.u, 10*s); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestSmoothCost(t *testing.T) {
	t.Parallel()
	const us = time.Microsecond
	tests := []struct{ old, sample, want time.Duration }{
		{0, 700 * us, 700 * us},                    // the first sample as it is
		{400 * us, 800 * us, 500 * us},             // a quarter of the way up
		{800 * us, 400 * us, 700 * us},             // and down
		{400 * us, 0, 400 * us},                    // no sample
		{400 * us, -us, 400 * us},                  // a clock that stepped back
		{-us, -us, 0},                              // nothing known
		{100 * us, 100*us + 100, 100*us + 25},      // nanoseconds count
		{300 * us, 10 * time.Second, 2500225 * us}, // an outlier counts by a quarter
	}
	for _, tc := range tests {
		if got := cachepolicy.SmoothCost(tc.old, tc.sample); got != tc.want {
			t.Errorf("SmoothCost(%v, %v) = %v, want %v", tc.old, tc.sample, got, tc.want)
		}
	}
	cost := time.Duration(0)
	for range 20 {
		cost = cachepolicy.SmoothCost(cost, 90*us)
	}
	if cost != 90*us {
		t.Errorf("a steady cost of 90µs is kept as %v", cost)
	}
}

func TestAutoBeta(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	tests := []struct {
		name     string
		rate     float64
		cost     time.Duration
		lifetime time.Duration
		lead     int
		want     float64
	}{
		{"hot and cheap: the optimum", 1000, 50 * ms, time.Minute, 20, 1},
		{"rarely read: more, until 99 of 100 lifetimes are refreshed early", 1, 500 * ms, time.Minute, 20, 9.21},
		{"hardly ever read: as the lead allows", 0.1, 500 * ms, time.Minute, 20, 25.20},
		{"cheap and rarely read: the bound", 0.1, ms, time.Hour, 20, cachepolicy.MaxBeta},
		{"dear: less than the optimum, as the lead allows", 200, 2 * time.Second, 5 * time.Second, 20, 0.1138},
		{"no lead", 200, 300 * ms, 5 * time.Second, 0, 0},
		{"no rate measured", 0, 300 * ms, 5 * time.Second, 20, 1},
		{"no cost measured", 200, 0, 5 * time.Second, 20, 1},
		{"rate not a number", math.NaN(), 300 * ms, 5 * time.Second, 20, 1},
	}
	for _, tc := range tests {
		got := cachepolicy.AutoBeta(tc.rate, tc.cost, tc.lifetime, tc.lead)
		if math.Abs(got-tc.want) > 0.005*tc.want {
			t.Errorf("%s: %.4f, want about %.4f", tc.name, got, tc.want)
		}
	}
}

func TestAutoBetaKeepsTheLead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Float64Range(1e-4, 1e6).Draw(t, "rate")
		cost := time.Duration(rapid.Int64Range(1, int64(time.Minute)).Draw(t, "cost"))
		lifetime := time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(24*time.Hour)).Draw(t, "lifetime"))
		percent := rapid.IntRange(0, 100).Draw(t, "percent")
		beta := cachepolicy.AutoBeta(rate, cost, lifetime, percent)
		if !(beta >= 0 && beta <= cachepolicy.MaxBeta) {
			t.Fatalf("beta = %v", beta)
		}
		limit := lifetime.Seconds() * float64(percent) / 100
		if got := cachepolicy.MeanLead(rate, beta*cost.Seconds()); got > limit*1.0001 {
			t.Fatalf("beta %v: mean lead %vs, want at most %vs", beta, got, limit)
		}
	})
}

package cachepolicy_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirproxy/weir/cachepolicy"
)

// TestDecideRead reads as the papers' lists do: missing or past every window →
// lead or follow; past the early draw or the soft expiry → answer at once, one
// refresh behind; fresh → no origin contact.
func TestDecideRead(t *testing.T) {
	t.Parallel()
	const s = time.Second
	// An answer of 60s that took 1s to fetch, stale windows of 30s and 10m. With
	// this draw an early refresh comes in the last 2s.
	at := func(age time.Duration) cachepolicy.ReadInput {
		return cachepolicy.ReadInput{Age: age, Lifetime: 60 * s, Cost: s, WhileRevalidate: 30 * s, IfError: 600 * s,
			Beta: 1, MaxLeadPercent: 20, U: math.Exp(-2)}
	}
	with := func(in cachepolicy.ReadInput, change func(*cachepolicy.ReadInput)) cachepolicy.ReadInput {
		change(&in)
		return in
	}
	tests := []struct {
		name string
		in   cachepolicy.ReadInput
		want cachepolicy.ReadAction
	}{
		{"fresh", at(0), cachepolicy.ServeFresh},
		{"fresh, just before the early draw", at(58*s - 1), cachepolicy.ServeFresh},
		{"past the early draw", at(58 * s), cachepolicy.ServeAndRefreshEarly},
		{"past the early draw, the last moment of its life", at(60*s - 1), cachepolicy.ServeAndRefreshEarly},
		{"past the soft expiry", at(60 * s), cachepolicy.ServeStaleAndRefresh},
		{"past the soft expiry, the last moment of whileRevalidate", at(90*s - 1), cachepolicy.ServeStaleAndRefresh},
		{"past whileRevalidate, within ifError", at(90 * s), cachepolicy.HoldThenStale},
		{"the last moment of ifError", at(660*s - 1), cachepolicy.HoldThenStale},
		{"past every window", at(660 * s), cachepolicy.Fetch},
		{"far past every window", at(1<<62 - 1), cachepolicy.Fetch},

		{"a draw of 1 never refreshes early", with(at(60*s-1), func(in *cachepolicy.ReadInput) { in.U = 1 }),
			cachepolicy.ServeFresh},
		{"the lead is bounded, whatever the draw",
			with(at(48*s-1), func(in *cachepolicy.ReadInput) { in.U = math.SmallestNonzeroFloat64 }), cachepolicy.ServeFresh},
		{"the lead begins",
			with(at(48*s), func(in *cachepolicy.ReadInput) { in.U = math.SmallestNonzeroFloat64 }),
			cachepolicy.ServeAndRefreshEarly},
		{"no lead allowed", with(at(60*s-1), func(in *cachepolicy.ReadInput) { in.MaxLeadPercent = 0 }),
			cachepolicy.ServeFresh},
		{"xfetch off", with(at(60*s-1), func(in *cachepolicy.ReadInput) { in.Beta = 0 }), cachepolicy.ServeFresh},
		{"cost unknown", with(at(60*s-1), func(in *cachepolicy.ReadInput) { in.Cost = 0 }), cachepolicy.ServeFresh},

		{"whileRevalidate off", with(at(60*s), func(in *cachepolicy.ReadInput) { in.WhileRevalidate = 0 }),
			cachepolicy.HoldThenStale},
		{"ifError off", with(at(90*s), func(in *cachepolicy.ReadInput) { in.IfError = 0 }), cachepolicy.Fetch},
		{"ifError shorter than whileRevalidate", with(at(80*s), func(in *cachepolicy.ReadInput) { in.IfError = 10 * s }),
			cachepolicy.ServeStaleAndRefresh},
		{"every window off", with(at(60*s), func(in *cachepolicy.ReadInput) { in.WhileRevalidate, in.IfError = 0, 0 }),
			cachepolicy.Fetch},
		{"a lifetime of 0, served stale from the start",
			with(at(0), func(in *cachepolicy.ReadInput) { in.Lifetime = 0 }), cachepolicy.ServeStaleAndRefresh},
		{"always to be validated, though fresh", with(at(0), func(in *cachepolicy.ReadInput) { in.AlwaysValidate = true }),
			cachepolicy.Fetch},
		{"always to be validated, though within a window",
			with(at(61*s), func(in *cachepolicy.ReadInput) { in.AlwaysValidate = true }), cachepolicy.Fetch},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := cachepolicy.DecideRead(tc.in); got != tc.want {
				t.Errorf("DecideRead = %q, want %q", got, tc.want)
			}
		})
	}
}

// TestDecideReadOnlyGrowsOlder: with one draw, an answer that ages never moves
// back to an earlier action, and past its windows it is never served.
func TestDecideReadOnlyGrowsOlder(t *testing.T) {
	t.Parallel()
	duration := rapid.Map(rapid.Int64Range(0, int64(time.Hour)), func(n int64) time.Duration { return time.Duration(n) })
	rapid.Check(t, func(t *rapid.T) {
		in := cachepolicy.ReadInput{Lifetime: duration.Draw(t, "lifetime"), Cost: duration.Draw(t, "cost"),
			WhileRevalidate: duration.Draw(t, "wr"), IfError: duration.Draw(t, "ie"),
			Beta:           rapid.Float64Range(0, 100).Draw(t, "beta"),
			MaxLeadPercent: rapid.IntRange(0, 100).Draw(t, "lead"), U: rapid.Float64Range(1e-300, 1).Draw(t, "u")}
		last := cachepolicy.ServeFresh
		for range 50 {
			in.Age += duration.Draw(t, "step") / 8
			got := cachepolicy.DecideRead(in)
			if got < last {
				t.Fatalf("at age %v: %q after %q", in.Age, got, last)
			}
			if got != cachepolicy.Fetch && in.Age-in.Lifetime >= max(in.WhileRevalidate, in.IfError) && in.Age >= in.Lifetime {
				t.Fatalf("at age %v: %q past every window", in.Age, got)
			}
			last = got
		}
	})
}

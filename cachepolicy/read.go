package cachepolicy

import "time"

// ReadInput is what is known of a stored answer when it is read.
type ReadInput struct {
	Age      time.Duration // current age (RFC 9111 §4.2.3)
	Lifetime time.Duration // freshness lifetime, jitter applied
	Cost     time.Duration // smoothed fetch cost; 0 if unknown
	// WhileRevalidate and IfError are the windows after Lifetime that hold for
	// this answer, the origin's prohibitions applied; 0 is off.
	WhileRevalidate, IfError time.Duration
	// Beta scales the early-refresh draw; 0 is off.
	Beta           float64
	MaxLeadPercent int // of Lifetime, 0 to 100
	// AlwaysValidate: the answer must not be used without validation (no-cache).
	AlwaysValidate bool
	U              float64 // draw, uniform in (0,1]
}

// ReadAction is what to do with a read.
type ReadAction int

// The actions, from the one that costs the reader and the origin least.
const (
	// ServeFresh answers; the origin is not asked.
	ServeFresh ReadAction = iota
	// ServeAndRefreshEarly answers with the fresh copy and starts one refresh
	// behind it.
	ServeAndRefreshEarly
	// ServeStaleAndRefresh answers with the stale copy and starts one refresh
	// behind it.
	ServeStaleAndRefresh
	// HoldThenStale starts or joins the refresh and waits for it, up to the
	// policy's softTimeout, or to its end if that is 0; the stale copy answers
	// if the refresh is slower or fails.
	HoldThenStale
	// Fetch leads or follows a fetch: the copy must not be used, but may be
	// validated.
	Fetch
)

// String returns the action in words.
func (a ReadAction) String() string {
	switch a {
	case ServeFresh:
		return "serve fresh"
	case ServeAndRefreshEarly:
		return "serve, refresh early"
	case ServeStaleAndRefresh:
		return "serve stale, refresh"
	case HoldThenStale:
		return "hold, then stale"
	case Fetch:
		return "fetch"
	}
	return "unknown"
}

// DecideRead is the decision order for a read:
//
//  1. an answer that always needs validation → fetch;
//  2. fresh, the early-expiry draw does not hit → serve, no origin contact;
//  3. fresh, the draw hits → serve, one refresh behind;
//  4. past expiry, within whileRevalidate → serve stale, one refresh behind;
//  5. past that, within ifError → hold for the refresh, stale if it is slow or
//     fails;
//  6. past every window → fetch. Never older than the windows allow.
//
// A window of w covers staleness below w; an answer is fresh while its lifetime
// exceeds its age (RFC 9111 §4.2).
func DecideRead(in ReadInput) ReadAction {
	staleness := in.Age - in.Lifetime
	switch {
	case in.AlwaysValidate:
		return Fetch
	case staleness < 0:
		maxLead := time.Duration(float64(in.Lifetime) * float64(in.MaxLeadPercent) / 100)
		if EarlyRefresh(-staleness, in.Cost, in.Beta, in.U, maxLead) {
			return ServeAndRefreshEarly
		}
		return ServeFresh
	case staleness < in.WhileRevalidate:
		return ServeStaleAndRefresh
	case staleness < in.IfError:
		return HoldThenStale
	}
	return Fetch
}

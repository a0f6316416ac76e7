package store

import (
	"math"
	"slices"
	"time"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/httpcache"
)

// ValidatorGrace is how long an entry with a validator is kept after the last
// window in which it may be served: a conditional request then costs the origin
// less than the whole answer (RFC 9111 §4.3).
const ValidatorGrace = 10 * time.Minute

// Entry is one stored, or arriving, response. It is immutable once it has been
// handed on, but for Body, which grows until it is whole. To change an entry,
// copy it.
type Entry struct {
	Key cachepolicy.Key
	// URI is scheme://authority/path?query, by which invalidations name it.
	URI string
	// Vary and VaryValues are what the response's Vary field nominates, and the
	// values of those fields in the request it answers, in the order of
	// Vary.Names (RFC 9111 §4.1).
	Vary       httpcache.Vary
	VaryValues []string

	Status int
	Header httpcache.Fields // storable fields (RFC 9111 §3.1), without Age
	Body   *Body

	ResponseTime time.Time     // when the response arrived, with a monotonic reading
	InitialAge   time.Duration // corrected_initial_age (RFC 9111 §4.2.3)
	Lifetime     time.Duration // freshness lifetime, jitter applied
	// WhileRevalidate and IfError are how long after Lifetime the entry may be
	// served stale (RFC 5861), as decided when it was stored; 0 is off.
	WhileRevalidate, IfError time.Duration
	// ValidateAlways is no-cache: never served without validation.
	ValidateAlways bool
	Negative       bool          // kept by a negative TTL
	Unreachable    bool          // made by Envoy, not by the origin
	Cost           time.Duration // smoothed cost of a fetch, for XFetch

	Policy string   // namespace/name of the policy it was stored under
	Tags   []string // invalidation tags
	Birth  uint64   // invalidation position at which its fetch began
	// Shared says where the entry lies in the store that replicas share; zero: it
	// was not found there and not put there. A copy keeps it if it keeps the body.
	Shared Shared
	// Wire is what goes on the wire for a hit, as extproc/wire made it. A small
	// body may be its last part, in the same memory: Size counts it once.
	Wire []byte
}

// Shared is the place of an entry in the store that replicas share.
type Shared struct {
	Token uint64 // of the commit; of two of one variant the greater is the newer
	Body  uint64 // number that its body lies under; a 304 changes the token alone
}

// Age returns current_age (RFC 9111 §4.2.3), never below 0.
func (e *Entry) Age(now time.Time) time.Duration {
	return max(addSaturated(e.InitialAge, now.Sub(e.ResponseTime)), 0)
}

// ExpiresAt returns when the entry is of no more use: at the end of the last
// window in which it may be served, and [ValidatorGrace] later if the origin can
// be asked whether it is still good.
func (e *Entry) ExpiresAt() time.Time {
	life := e.servedFor()
	if e.validatable() {
		life = addSaturated(life, ValidatorGrace)
	}
	return e.ResponseTime.Add(life)
}

// Useful reports whether now is before ExpiresAt. As long as the entry may be
// served, that costs no look at its header.
func (e *Entry) Useful(now time.Time) bool {
	held := now.Sub(e.ResponseTime)
	life := e.servedFor()
	return held < life || e.validatable() && held < addSaturated(life, ValidatorGrace)
}

// servedFor returns how long after ResponseTime the last window ends.
func (e *Entry) servedFor() time.Duration {
	windows := addSaturated(e.Lifetime, max(e.WhileRevalidate, e.IfError, 0))
	return addSaturated(windows, -max(e.InitialAge, 0))
}

func (e *Entry) validatable() bool { return e.Header.Has("etag") || e.Header.Has("last-modified") }

// SameVariant reports whether both entries answer the same requests for their
// resource: the nominated fields and their values are equal.
func (e *Entry) SameVariant(other *Entry) bool {
	return e.Vary.Any == other.Vary.Any &&
		slices.Equal(e.Vary.Names, other.Vary.Names) && slices.Equal(e.VaryValues, other.VaryValues)
}

// addSaturated returns a+b, at most and at least what a Duration can hold.
func addSaturated(a, b time.Duration) time.Duration {
	sum := a + b
	switch {
	case a > 0 && b > 0 && sum < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && sum >= 0:
		return math.MinInt64
	}
	return sum
}

package cachepolicy

import "time"

// LifetimeInput is what is known of an answer when its lifetime is decided.
type LifetimeInput struct {
	Status int
	// Unreachable: Envoy made the answer itself, having no origin.
	Unreachable bool
	// Stated is the lifetime the origin states (RFC 9111 §4.2.1), if it does.
	Stated    time.Duration
	HasStated bool
	// Heuristic is the lifetime guessed from Last-Modified (RFC 9111 §4.2.2), if
	// the answer allows one.
	Heuristic    time.Duration
	HasHeuristic bool
	// PolicyMayExtend: ttl.default and ttl.min may apply. False if
	// the request carried credentials, or the status is not heuristically
	// cacheable, or the origin forbids reuse without validation.
	PolicyMayExtend bool
	// Anonymous: the request carried no Authorization and no cookie that the
	// policy neither names in the key nor ignores. Without it negativeTTL does
	// not apply: an error may be this user's alone.
	Anonymous bool
	// Prohibited: the answer must not be stored at all.
	Prohibited bool
}

// LifetimeReason says where a lifetime came from, or why there is none. The set
// is bounded: it labels metrics and fills explain.
type LifetimeReason string

// The reasons of a Lifetime.
const (
	LifetimeStated       LifetimeReason = "stated"        // by the origin
	LifetimeHeuristic    LifetimeReason = "heuristic"     // from Last-Modified
	LifetimeDefault      LifetimeReason = "ttl-default"   // ttl.default
	LifetimeRaised       LifetimeReason = "ttl-min"       // raised to ttl.min
	LifetimeCapped       LifetimeReason = "ttl-max"       // lowered to ttl.max
	LifetimeNegative     LifetimeReason = "negative-ttl"  // negativeTTL
	LifetimeProhibited   LifetimeReason = "prohibited"    // must not be stored
	LifetimeUnstated     LifetimeReason = "no-lifetime"   // nobody states one that may apply
	LifetimeNegativeZero LifetimeReason = "negative-zero" // negativeTTL of 0s, or the origin's own 0
)

// Lifetime is how long an answer is fresh, before jitter.
type Lifetime struct {
	// TTL is the freshness lifetime, >= 0. With 0 the answer is stale at once: of
	// use only within a stale window or for validation.
	TTL time.Duration
	// OK: the answer may be stored.
	OK bool
	// Negative: the answer is an error (400 and above, or Unreachable).
	Negative bool
	Reason   LifetimeReason
}

// Lifetime decides how long an answer is fresh: what the origin states (unless
// ttl.origin ignores it), else the heuristic if enabled, else ttl.default; raised
// to ttl.min and lowered to ttl.max. An error takes negativeTTL, never longer
// than the origin's own lifetime, or without a rule for it what the origin
// states; it is never given ttl.default or ttl.min.
func (p *Policy) Lifetime(in LifetimeInput) Lifetime {
	negative := in.Unreachable || in.Status >= 400
	if in.Prohibited {
		return Lifetime{Negative: negative, Reason: LifetimeProhibited}
	}
	if negative {
		return p.negativeLifetime(in)
	}
	ttl, reason := p.baseLifetime(in)
	if reason == LifetimeUnstated {
		return Lifetime{Reason: reason}
	}
	if in.PolicyMayExtend && ttl < p.TTL.Min {
		ttl, reason = p.TTL.Min, LifetimeRaised
	}
	if ttl > p.TTL.Max {
		ttl, reason = p.TTL.Max, LifetimeCapped
	}
	return Lifetime{TTL: max(ttl, 0), OK: true, Reason: reason}
}

func (p *Policy) baseLifetime(in LifetimeInput) (time.Duration, LifetimeReason) {
	honor := p.TTL.Origin == OriginHonor
	switch {
	case in.HasStated && honor:
		return in.Stated, LifetimeStated
	case p.heuristic(&in):
		return in.Heuristic, LifetimeHeuristic
	case in.PolicyMayExtend && p.TTL.HasDefault:
		return p.TTL.Default, LifetimeDefault
	case in.HasStated && p.TTL.HasDefault:
		// The origin's lifetimes do not count, but the policy's may not apply
		// either. The shorter of the two oversteps neither.
		return min(in.Stated, p.TTL.Default), LifetimeStated
	}
	return 0, LifetimeUnstated
}

// heuristic reports whether the guessed lifetime is the one that counts.
func (p *Policy) heuristic(in *LifetimeInput) bool {
	return in.HasHeuristic && in.Anonymous && !in.HasStated && p.TTL.Heuristic && p.TTL.Origin == OriginHonor
}

func (p *Policy) negativeLifetime(in LifetimeInput) Lifetime {
	out := Lifetime{Negative: true, Reason: LifetimeUnstated}
	stated := in.HasStated && p.TTL.Origin == OriginHonor && !in.Unreachable
	ttl, ok := p.NegativeTTL.For(in.Status, in.Unreachable)
	switch {
	case ok && in.Anonymous:
		if stated {
			ttl = min(ttl, in.Stated)
		}
		out.Reason = LifetimeNegative
		if ttl <= 0 {
			out.Reason = LifetimeNegativeZero
			return out
		}
	case stated:
		ttl, out.Reason = in.Stated, LifetimeStated
	case p.heuristic(&in) && !in.Unreachable:
		ttl, out.Reason = in.Heuristic, LifetimeHeuristic
	default:
		return out
	}
	if ttl > p.TTL.Max {
		ttl, out.Reason = p.TTL.Max, LifetimeCapped
	}
	out.TTL, out.OK = max(ttl, 0), true
	return out
}

// Jitter shortens ttl by a share of up to percent, drawn by u in [0,1), so that
// what was stored together does not expire together. It never lengthens.
func Jitter(ttl time.Duration, percent int, u float64) time.Duration {
	if ttl <= 0 || percent <= 0 || !(u > 0) {
		return ttl
	}
	share := float64(min(percent, 100)) / 100 * min(u, 1)
	return ttl - min(time.Duration(float64(ttl)*share), ttl)
}

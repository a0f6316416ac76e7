package cachepolicy

import (
	"strconv"
	"strings"
	"time"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
)

// Compile returns what the data plane decides by: spec, merged, with the
// defaults applied and every notation parsed. It refuses with FieldErrors what
// Validate refuses, and what only shows after the merge (a min above the default
// max, say).
func Compile(namespace, name string, spec *v1alpha1.CachePolicySpec) (*Policy, error) {
	if spec == nil {
		spec = &v1alpha1.CachePolicySpec{}
	}
	if errs := Validate(spec); len(errs) > 0 {
		return nil, FieldErrors(errs)
	}
	p := &Policy{
		Namespace:              namespace,
		Name:                   name,
		Mode:                   Mode(or(spec.Mode, v1alpha1.Mode(ModeEnabled))),
		TTL:                    compileTTL(deref(spec.TTL)),
		JitterPercent:          int(or(spec.JitterPercent, DefaultJitterPercent)),
		NegativeTTL:            compileNegativeTTL(spec.NegativeTTL),
		XFetch:                 compileXFetch(deref(spec.XFetch)),
		Stale:                  compileStale(deref(spec.Stale)),
		Coalescing:             compileCoalescing(deref(spec.Coalescing)),
		OriginLimits:           compileOriginLimits(deref(spec.OriginLimits)),
		Key:                    compileKey(deref(spec.Key)),
		Storage:                compileStorage(deref(spec.Storage)),
		Tags:                   Tags{ResponseHeader: strings.ToLower(string(or(deref(spec.Tags).ResponseHeader, "")))},
		HonorRequestDirectives: or(spec.RequestDirectives, "") == "Honor",
		ServerAuthorization: ServerAuthorization(or(deref(spec.Mesh).ServerAuthorization,
			v1alpha1.ServerAuthorization(ServerAuthorizationRequire))),
	}
	if errs := contradictions(&p.TTL); len(errs) > 0 {
		return nil, errs
	}
	return p, nil
}

// contradictions are faults that only the merged policy with its defaults shows.
func contradictions(t *TTL) FieldErrors {
	var errs FieldErrors
	if t.Min > t.Max {
		errs = append(errs, FieldError{"spec.ttl.min", strconv.Quote(shortDuration(t.Min)) +
			": must not be above max (" + shortDuration(t.Max) + ")"})
	}
	if t.HasDefault && (t.Default < t.Min || t.Default > t.Max) {
		errs = append(errs, FieldError{"spec.ttl.default", strconv.Quote(shortDuration(t.Default)) +
			": must be between min (" + shortDuration(t.Min) + ") and max (" + shortDuration(t.Max) + ")"})
	}
	if t.Origin != OriginHonor && !t.HasDefault {
		errs = append(errs, FieldError{"spec.ttl.origin", strconv.Quote(string(t.Origin)) +
			": needs ttl.default: without the origin's lifetimes nothing would be stored"})
	}
	return errs
}

func compileTTL(s v1alpha1.TTL) TTL {
	return TTL{
		Default:    duration(s.Default, 0),
		HasDefault: s.Default != nil,
		Min:        duration(s.Min, 0),
		Max:        duration(s.Max, DefaultMaxTTL),
		Origin:     OriginMode(or(s.Origin, v1alpha1.Origin(OriginHonor))),
		Heuristic:  or(s.Heuristic, "") == "Enabled",
	}
}

func compileXFetch(s v1alpha1.XFetch) XFetch {
	x := XFetch{
		Mode:           XFetchMode(or(s.Mode, v1alpha1.XFetchMode(XFetchFixed))),
		Beta:           DefaultBeta,
		MaxLeadPercent: int(or(s.MaxLeadPercent, DefaultMaxLeadPercent)),
	}
	if s.Beta != nil {
		x.Beta, _ = parseBeta(*s.Beta) // Validate saw it
	}
	return x
}

func compileStale(s v1alpha1.Stale) Stale {
	return Stale{
		WhileRevalidate: duration(s.WhileRevalidate, DefaultWhileRevalidate),
		IfError:         duration(s.IfError, DefaultIfError),
		SoftTimeout:     duration(s.SoftTimeout, DefaultSoftTimeout),
	}
}

func compileCoalescing(s v1alpha1.Coalescing) Coalescing {
	return Coalescing{
		Scope:      CoalescingScope(or(s.Scope, v1alpha1.CoalescingScope(ScopeFleet))),
		MaxWait:    duration(s.MaxWait, DefaultMaxWait),
		MaxWaiters: int(or(s.MaxWaiters, DefaultMaxWaiters)),
		OnTimeout:  OnTimeout(or(s.OnTimeout, v1alpha1.OnTimeout(OnTimeoutFetch))),
	}
}

func compileOriginLimits(s v1alpha1.OriginLimits) OriginLimits {
	return OriginLimits{
		MaxConcurrentFetches: int(or(s.MaxConcurrentFetches, DefaultMaxConcurrentFetches)),
		MaxQueue:             int(or(s.MaxQueue, DefaultMaxQueue)),
		OnOverflow:           OnOverflow(or(s.OnOverflow, v1alpha1.OnOverflow(OnOverflowStale))),
	}
}

func compileStorage(s v1alpha1.Storage) Storage {
	size := int64(DefaultMaxObjectSize)
	if s.MaxObjectSize != nil {
		size, _ = quantityBytes(*s.MaxObjectSize) // Validate saw it
	}
	return Storage{
		MaxObjectSize:  size,
		MaxVariants:    int(or(s.MaxVariants, DefaultMaxVariants)),
		SetCookie:      SetCookieMode(or(s.SetCookie, v1alpha1.SetCookie(SetCookieRefuse))),
		RequestCookies: RequestCookieMode(or(s.RequestCookies, v1alpha1.RequestCookies(RequestCookiesBypass))),
		ReplicaOnly:    or(s.Sharing, "") == "Replica",
	}
}

// duration parses a duration that Validate saw.
func duration(d *gatewayv1.Duration, fallback time.Duration) time.Duration {
	if d == nil {
		return fallback
	}
	v, _ := ParseDuration(string(*d))
	return v
}

func or[T any](p *T, fallback T) T {
	if p == nil {
		return fallback
	}
	return *p
}

func deref[T any](p *T) T {
	var zero T
	return or(p, zero)
}

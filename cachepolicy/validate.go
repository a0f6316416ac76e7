package cachepolicy

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
)

// Validate returns every fault of one policy as its author wrote it, in the
// order of its fields; none if it is valid. It is the authority: the schema and
// the CEL rules of the CRD repeat what they can of it. Fields may be absent, as
// a policy may be one layer of a merge; Compile finds what only the merged whole
// shows.
func Validate(spec *v1alpha1.CachePolicySpec) []FieldError {
	v := &validator{}
	v.targetRefs(spec.TargetRefs)
	enum(v, "spec.mode", spec.Mode, ModeEnabled, ModeShadow, ModeDisabled)
	v.ttl(spec.TTL)
	v.integer("spec.jitterPercent", spec.JitterPercent, 0, 100)
	v.negativeTTL(spec.NegativeTTL)
	v.xfetch(spec.XFetch)
	v.stale(spec.Stale)
	v.coalescing(spec.Coalescing)
	v.originLimits(spec.OriginLimits)
	v.key(spec.Key)
	v.storage(spec.Storage)
	if spec.Tags != nil && spec.Tags.ResponseHeader != nil {
		v.header("spec.tags.responseHeader", string(*spec.Tags.ResponseHeader), reservedTagHeader)
	}
	enum(v, "spec.requestDirectives", spec.RequestDirectives, "Ignore", "Honor")
	if spec.Mesh != nil {
		enum(v, "spec.mesh.serverAuthorization", spec.Mesh.ServerAuthorization,
			ServerAuthorizationRequire, ServerAuthorizationSkipOnHit)
	}
	return v.errs
}

// validator gathers faults.
type validator struct{ errs []FieldError }

func (v *validator) add(path, format string, args ...any) {
	v.errs = append(v.errs, FieldError{path, fmt.Sprintf(format, args...)})
}

// tooMany reports a list over its bound.
func (v *validator) tooMany(path string, n, most int) bool {
	if n > most {
		v.add(path, "has %d entries: must have at most %d", n, most)
		return true
	}
	return false
}

func enum[T, W ~string](v *validator, path string, value *T, want ...W) {
	if value == nil {
		return
	}
	words := make([]string, len(want))
	for i, w := range want {
		if string(*value) == string(w) {
			return
		}
		words[i] = string(w)
	}
	v.add(path, "%s: must be one of %s", quote(string(*value)), strings.Join(words, ", "))
}

func (v *validator) integer(path string, value *int32, least, most int32) {
	if value != nil && (*value < least || *value > most) {
		v.add(path, "%d: must be between %d and %d", *value, least, most)
	}
}

func (v *validator) duration(path string, value *gatewayv1.Duration, most time.Duration) (time.Duration, bool) {
	if value == nil {
		return 0, false
	}
	d, err := boundedDuration(*value, most)
	if err != nil {
		v.add(path, "%s", err)
		return 0, false
	}
	return d, true
}

func (v *validator) ttl(t *v1alpha1.TTL) {
	if t == nil {
		return
	}
	def, hasDef := v.duration("spec.ttl.default", t.Default, MaxLifetime)
	least, hasMin := v.duration("spec.ttl.min", t.Min, MaxLifetime)
	most, hasMax := v.duration("spec.ttl.max", t.Max, MaxLifetime)
	switch {
	case hasMin && hasMax && least > most:
		v.add("spec.ttl.min", "%q: must not be above max (%s)", *t.Min, *t.Max)
	case hasDef && hasMax && def > most:
		v.add("spec.ttl.default", "%q: must not be above max (%s)", *t.Default, *t.Max)
	case hasDef && hasMin && def < least:
		v.add("spec.ttl.default", "%q: must not be below min (%s)", *t.Default, *t.Min)
	}
	enum(v, "spec.ttl.origin", t.Origin, OriginHonor, OriginIgnoreFreshness, OriginIgnoreAll)
	enum(v, "spec.ttl.heuristic", t.Heuristic, "Enabled", "Disabled")
}

func (v *validator) negativeTTL(list []v1alpha1.NegativeTTL) {
	if v.tooMany("spec.negativeTTL", len(list), MaxNegativeTTLs) {
		return
	}
	first := make(map[string]int, len(list))
	for i := range list {
		path := "spec.negativeTTL[" + strconv.Itoa(i) + "]"
		status := list[i].Status
		at, twice := first[status]
		switch {
		case !isNegativeStatus(status):
			v.add(path+".status", `%s: must be a status from "400" to "599", "4xx", "5xx" or "Unreachable"`,
				quote(status))
		case twice:
			v.add(path+".status", "%q: must not repeat negativeTTL[%d]", status, at)
		default:
			first[status] = i
		}
		if list[i].TTL == nil {
			v.add(path+".ttl", `must be set, such as "10s"`)
		}
		v.duration(path+".ttl", list[i].TTL, MaxLifetime)
	}
}

func isNegativeStatus(s string) bool {
	switch s {
	case statusUnreachable, "4xx", "5xx":
		return true
	}
	return len(s) == 3 && (s[0] == '4' || s[0] == '5') && isDigit(s[1]) && isDigit(s[2])
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func (v *validator) xfetch(x *v1alpha1.XFetch) {
	if x == nil {
		return
	}
	enum(v, "spec.xfetch.mode", x.Mode, XFetchOff, XFetchFixed, XFetchAuto)
	if x.Beta != nil {
		if _, ok := parseBeta(*x.Beta); !ok {
			v.add("spec.xfetch.beta", `%s: must be a decimal number above 0 and at most %d, such as "1.0"`,
				quote(*x.Beta), MaxBeta)
		}
	}
	v.integer("spec.xfetch.maxLeadPercent", x.MaxLeadPercent, 0, 100)
}

// parseBeta reads a decimal of up to three digits and six decimals; no sign, no
// exponent, neither NaN nor infinity.
func parseBeta(s string) (float64, bool) {
	whole, fraction, point := strings.Cut(s, ".")
	if !isDigits(whole, 3) || point && !isDigits(fraction, 6) {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil && f > 0 && f <= MaxBeta
}

func isDigits(s string, most int) bool {
	for i := range len(s) {
		if !isDigit(s[i]) {
			return false
		}
	}
	return s != "" && len(s) <= most
}

func (v *validator) stale(s *v1alpha1.Stale) {
	if s == nil {
		return
	}
	v.duration("spec.stale.whileRevalidate", s.WhileRevalidate, MaxLifetime)
	v.duration("spec.stale.ifError", s.IfError, MaxLifetime)
	v.duration("spec.stale.softTimeout", s.SoftTimeout, MaxHold)
}

func (v *validator) coalescing(c *v1alpha1.Coalescing) {
	if c == nil {
		return
	}
	enum(v, "spec.coalescing.scope", c.Scope, ScopeFleet, ScopeReplica, ScopeOff)
	if d, ok := v.duration("spec.coalescing.maxWait", c.MaxWait, MaxHold); ok && d == 0 {
		v.add("spec.coalescing.maxWait", "%q: must be above 0s; not to wait at all is coalescing.scope: Off", *c.MaxWait)
	}
	v.integer("spec.coalescing.maxWaiters", c.MaxWaiters, 1, MaxWaiters)
	enum(v, "spec.coalescing.onTimeout", c.OnTimeout, OnTimeoutFetch, OnTimeoutStale, OnTimeoutUnavailable)
}

func (v *validator) originLimits(o *v1alpha1.OriginLimits) {
	if o == nil {
		return
	}
	v.integer("spec.originLimits.maxConcurrentFetches", o.MaxConcurrentFetches, 1, MaxConcurrentFetches)
	v.integer("spec.originLimits.maxQueue", o.MaxQueue, 0, MaxQueue)
	enum(v, "spec.originLimits.onOverflow", o.OnOverflow, OnOverflowStale, OnOverflowUnavailable)
}

func (v *validator) storage(s *v1alpha1.Storage) {
	if s == nil {
		return
	}
	if s.MaxObjectSize != nil {
		v.size("spec.storage.maxObjectSize", *s.MaxObjectSize)
	}
	v.integer("spec.storage.maxVariants", s.MaxVariants, 1, MaxVariants)
	enum(v, "spec.storage.setCookie", s.SetCookie, SetCookieRefuse, SetCookieStrip)
	enum(v, "spec.storage.requestCookies", s.RequestCookies, RequestCookiesBypass, RequestCookiesIgnore)
	enum(v, "spec.storage.sharing", s.Sharing, "Shared", "Replica")
}

func (v *validator) size(path string, q resource.Quantity) {
	n, whole := quantityBytes(q)
	if !whole || n < 1 || n > MaxObjectSize {
		v.add(path, "%s: must be a whole number of bytes between 1 and 1Gi, such as 64Ki", quote(q.String()))
	}
}

// quantityBytes reads a size; false unless it is a whole number of bytes that an
// int64 holds.
func quantityBytes(q resource.Quantity) (int64, bool) {
	if q.Cmp(*resource.NewQuantity(math.MaxInt64, resource.BinarySI)) > 0 {
		return 0, false
	}
	v := q.Value() // rounds up
	return v, q.Cmp(*resource.NewQuantity(v, resource.BinarySI)) == 0
}

// quote shows a value in an error, cut to what helps.
func quote(s string) string {
	const most = 64
	if len(s) > most {
		return strconv.Quote(s[:most]) + "… (" + strconv.Itoa(len(s)) + " bytes)"
	}
	return strconv.Quote(s)
}

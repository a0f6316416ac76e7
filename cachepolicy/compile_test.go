package cachepolicy_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
)

// defaults is what the documentation promises of a policy that says nothing.
func defaults() *cachepolicy.Policy {
	return &cachepolicy.Policy{
		Namespace:     "shop",
		Name:          "catalog",
		Mode:          cachepolicy.ModeEnabled,
		TTL:           cachepolicy.TTL{Max: 24 * time.Hour, Origin: cachepolicy.OriginHonor},
		JitterPercent: 10,
		XFetch:        cachepolicy.XFetch{Mode: cachepolicy.XFetchFixed, Beta: 1, MaxLeadPercent: 20},
		Stale: cachepolicy.Stale{WhileRevalidate: 30 * time.Second, IfError: 10 * time.Minute,
			SoftTimeout: 250 * time.Millisecond},
		Coalescing: cachepolicy.Coalescing{Scope: cachepolicy.ScopeFleet, MaxWait: 5 * time.Second, MaxWaiters: 10_000,
			OnTimeout: cachepolicy.OnTimeoutFetch},
		OriginLimits: cachepolicy.OriginLimits{MaxConcurrentFetches: 100, MaxQueue: 1000,
			OnOverflow: cachepolicy.OnOverflowStale},
		Key: cachepolicy.KeyRules{Query: cachepolicy.QueryRules{Mode: cachepolicy.QueryExclude}},
		Storage: cachepolicy.Storage{MaxObjectSize: 1 << 20, MaxVariants: 16, SetCookie: cachepolicy.SetCookieRefuse,
			RequestCookies: cachepolicy.RequestCookiesBypass},
		ServerAuthorization: cachepolicy.ServerAuthorizationRequire,
	}
}

func ignoreHash() cmp.Option { return cmpopts.IgnoreFields(cachepolicy.KeyRules{}, "Hash") }

func TestCompileDefaults(t *testing.T) {
	t.Parallel()
	blocks := spec(t, `{ttl: {}, stale: {}, key: {query: {}}, storage: {}}`)
	for _, s := range []*v1alpha1.CachePolicySpec{nil, {}, blocks} {
		got, err := cachepolicy.Compile("shop", "catalog", s)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(defaults(), got, ignoreHash()); diff != "" {
			t.Errorf("defaults (-want +got):\n%s", diff)
		}
	}
}

func TestCompileEveryField(t *testing.T) {
	t.Parallel()
	got := compile(t, `{mode: Shadow, ttl: {default: 1m, min: 1s, max: 1h, origin: IgnoreAll, heuristic: Enabled},
		jitterPercent: 5, negativeTTL: [{status: "404", ttl: 10s}, {status: 4xx, ttl: 2s}, {status: 5xx, ttl: 1s},
		{status: Unreachable, ttl: 3s}], xfetch: {mode: Auto, beta: "2.5", maxLeadPercent: 30},
		stale: {whileRevalidate: 1s, ifError: 2s, softTimeout: 3s},
		coalescing: {scope: Replica, maxWait: 4s, maxWaiters: 5, onTimeout: Stale},
		originLimits: {maxConcurrentFetches: 6, maxQueue: 7, onOverflow: Unavailable},
		key: {query: {mode: Include, names: [{type: Prefix, value: b}, {value: a}]}, headers: [X-B, X-A], cookies: [d, c]},
		storage: {maxObjectSize: 64Ki, maxVariants: 8, setCookie: Strip, requestCookies: Ignore, sharing: Replica},
		tags: {responseHeader: Surrogate-Key}, requestDirectives: Honor,
		mesh: {serverAuthorization: SkipOnHit}}`)
	want := &cachepolicy.Policy{
		Namespace: "shop", Name: "catalog", Mode: cachepolicy.ModeShadow,
		TTL: cachepolicy.TTL{Default: time.Minute, HasDefault: true, Min: time.Second, Max: time.Hour,
			Origin: cachepolicy.OriginIgnoreAll, Heuristic: true},
		JitterPercent: 5,
		NegativeTTL: cachepolicy.NegativeTTL{Exact: map[int]time.Duration{404: 10 * time.Second},
			Class:       map[int]time.Duration{4: 2 * time.Second, 5: time.Second},
			Unreachable: 3 * time.Second, HasUnreachable: true},
		XFetch: cachepolicy.XFetch{Mode: cachepolicy.XFetchAuto, Beta: 2.5, MaxLeadPercent: 30},
		Stale:  cachepolicy.Stale{WhileRevalidate: time.Second, IfError: 2 * time.Second, SoftTimeout: 3 * time.Second},
		Coalescing: cachepolicy.Coalescing{Scope: cachepolicy.ScopeReplica, MaxWait: 4 * time.Second, MaxWaiters: 5,
			OnTimeout: cachepolicy.OnTimeoutStale},
		OriginLimits: cachepolicy.OriginLimits{MaxConcurrentFetches: 6, MaxQueue: 7,
			OnOverflow: cachepolicy.OnOverflowUnavailable},
		Key: cachepolicy.KeyRules{
			Query: cachepolicy.QueryRules{Mode: cachepolicy.QueryInclude,
				Names: []cachepolicy.NameMatcher{{Type: "Exact", Value: "a"}, {Type: "Prefix", Value: "b"}}},
			Headers: []string{"x-a", "x-b"}, Cookies: []string{"c", "d"}},
		Storage: cachepolicy.Storage{MaxObjectSize: 64 << 10, MaxVariants: 8, SetCookie: cachepolicy.SetCookieStrip,
			RequestCookies: cachepolicy.RequestCookiesIgnore, ReplicaOnly: true},
		Tags:                   cachepolicy.Tags{ResponseHeader: "surrogate-key"},
		HonorRequestDirectives: true,
		ServerAuthorization:    cachepolicy.ServerAuthorizationSkipOnHit,
	}
	if diff := cmp.Diff(want, got, ignoreHash()); diff != "" {
		t.Errorf("compiled (-want +got):\n%s", diff)
	}
	if got.String() != "shop/catalog" {
		t.Errorf("String() = %q", got.String())
	}
}

// TestCompileContradictions: faults that no layer has alone.
func TestCompileContradictions(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		gateway string
		route   string
		want    string
	}{
		{"min of one layer above max of another", `{ttl: {max: 1m}}`, `{ttl: {min: 2m}}`,
			`spec.ttl.min: "2m": must not be above max (1m)`},
		{"min above the default max", `{}`, `{ttl: {min: 48h}}`, `spec.ttl.min: "48h": must not be above max (24h)`},
		{"default above the default max", `{}`, `{ttl: {default: 48h}}`,
			`spec.ttl.default: "48h": must be between min (0s) and max (24h)`},
		{"default below the other layer's min", `{ttl: {min: 1m30s}}`, `{ttl: {default: 10s}}`,
			`spec.ttl.default: "10s": must not be below min (1m30s)`},
		{"IgnoreFreshness with nothing in its place", `{}`, `{ttl: {origin: IgnoreFreshness}}`,
			`spec.ttl.origin: "IgnoreFreshness": needs ttl.default: without the origin's lifetimes nothing would be stored`},
		{"IgnoreAll with the default of the other layer", `{ttl: {default: 1s}}`, `{ttl: {origin: IgnoreAll}}`, ``},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			merged := cachepolicy.Merge(spec(t, tc.gateway), spec(t, tc.route))
			_, err := cachepolicy.Compile("shop", "catalog", merged)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("Compile:\n got %s\nwant %s", got, tc.want)
			}
		})
	}
}

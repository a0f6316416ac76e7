package extproc

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/yaml"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store"
)

// explained returns the binding of a policy with this spec.
func explained(t *testing.T, spec string) *cachepolicy.Binding {
	t.Helper()
	var s v1alpha1.CachePolicySpec
	if err := yaml.UnmarshalStrict([]byte(spec), &s); err != nil {
		t.Fatal(err)
	}
	p, err := cachepolicy.Compile("shop", "catalog", cachepolicy.Merge(&s))
	if err != nil {
		t.Fatal(err)
	}
	return &cachepolicy.Binding{Policy: p, Scope: "shop/route/r", Route: "r"}
}

// fieldsOf returns name, value, name, value, … as fields.
func fieldsOf(pairs ...string) httpcache.Fields {
	var f httpcache.Fields
	for i := 0; i < len(pairs); i += 2 {
		f = append(f, httpcache.Field{Name: pairs[i], Value: pairs[i+1]})
	}
	return f
}

// TestExplain asks about one request after the other. Key is compared apart.
func TestExplain(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	const spec = "ttl: {default: 60s}\nstale: {whileRevalidate: 30s, ifError: 10m, softTimeout: 250ms}"
	request := func(method string, fields ...string) httpcache.Request {
		return httpcache.Request{Method: method, Scheme: "http", Authority: "a", Path: "/", Header: fieldsOf(fields...)}
	}
	get := func(fields ...string) httpcache.Request { return request("GET", fields...) }
	answer := func(fields ...string) *httpcache.Response {
		return &httpcache.Response{Status: 200, Header: fieldsOf(fields...)}
	}
	aged := func(age time.Duration) *store.Entry {
		body := store.NewBody(0)
		body.End()
		return &store.Entry{URI: "http://a/", Status: 200, Body: body, ResponseTime: now.Add(-age),
			Lifetime: time.Minute, WhileRevalidate: 30 * time.Second, IfError: 10 * time.Minute, Policy: "shop/catalog"}
	}
	tests := []struct {
		name     string
		spec     string // empty: no policy
		refill   bool
		request  httpcache.Request
		response *httpcache.Response
		stored   *store.Entry
		soft     bool
		want     Explanation
	}{
		{name: "no policy", request: get(), want: Explanation{Decision: DecisionPass, Reason: "no-policy",
			Outcome: "bypass_policy"}},
		{name: "disabled", spec: "mode: Disabled", request: get(), want: Explanation{Mode: "Disabled",
			Decision: DecisionPass, Reason: "policy-disabled", Outcome: "bypass_policy"}},
		{name: "POST", spec: spec, request: request("POST"),
			want: Explanation{Decision: DecisionWatch, CacheStatus: "weir; fwd=method"}},
		{name: "upgrade", spec: spec, request: get("upgrade", "websocket",
			"connection", "upgrade"),
			want: Explanation{Decision: DecisionPass, Reason: "tunnel", Outcome: "bypass_request"}},
		{name: "override", spec: spec, request: get("x-http-method-override", "PUT"),
			want: Explanation{Decision: DecisionPass, Reason: "method-override", Outcome: "bypass_request"}},
		{name: "miss", spec: spec, request: get(),
			want: Explanation{Decision: DecisionFetch, CacheStatus: "weir; fwd=uri-miss"}},
		{name: "miss without coalescing", spec: spec + "\ncoalescing: {scope: \"Off\"}", request: get(),
			want: Explanation{Decision: DecisionFetchAlone, CacheStatus: "weir; fwd=uri-miss"}},
		{name: "range without a whole", spec: spec, request: get("range", "bytes=0-1"),
			want: Explanation{Decision: DecisionPass, Reason: "range", Outcome: "bypass_request"}},
		{name: "what would be stored", spec: spec, request: get(),
			response: answer("cache-control", "max-age=9"),
			want: Explanation{Decision: DecisionFetch, CacheStatus: "weir; fwd=uri-miss",
				Answer: &ExplainedAnswer{Stored: true, Shared: true, Lifetime: 9, WhileRevalidate: 30, IfError: 600}}},
		{name: "what would not", spec: spec, request: get(),
			response: answer("cache-control", "private"),
			want: Explanation{Decision: DecisionFetch, CacheStatus: "weir; fwd=uri-miss",
				Answer: &ExplainedAnswer{}}},
		{name: "fresh", spec: spec, request: get(), stored: aged(10 * time.Second),
			want: Explanation{Decision: DecisionServe, Outcome: "hit", CacheStatus: "weir; hit; ttl=50",
				Stored: &ExplainedEntry{Age: 10}}},
		{name: "stale, carried by who wins", spec: spec, request: get(), stored: aged(70 * time.Second),
			want: Explanation{Decision: DecisionServeAndRefresh, Outcome: "hit_stale",
				CacheStatus: "weir; hit; ttl=-10", Stored: &ExplainedEntry{Age: 70}}},
		{name: "stale, refreshed behind", spec: spec, refill: true, request: get(), stored: aged(70 * time.Second),
			want: Explanation{Decision: DecisionServeAndRefresh, Outcome: "hit_stale",
				CacheStatus: "weir; hit; ttl=-10", Stored: &ExplainedEntry{Age: 70}}},
		{name: "past the window", spec: spec, refill: true, request: get(), stored: aged(2 * time.Minute),
			want: Explanation{Decision: DecisionHoldThenStale, CacheStatus: "weir; fwd=stale",
				Stored: &ExplainedEntry{Age: 120}}},
		{name: "softly invalidated", spec: spec, request: get(), stored: aged(10 * time.Second), soft: true,
			want: Explanation{Decision: DecisionServeAndRefresh, Outcome: "hit_stale", CacheStatus: "weir; hit; ttl=-1",
				Stored: &ExplainedEntry{Age: 10, Invalidated: "Soft"}}},
		{name: "only if cached", spec: spec + "\nrequestDirectives: Honor",
			request: get("cache-control", "only-if-cached"),
			want: Explanation{Decision: DecisionRefuse, Reason: "only-if-cached", Outcome: "only_if_cached",
				CacheStatus: "weir; detail=only-if-cached"}},
		{name: "shadow", spec: spec + "\nmode: Shadow", request: get(), stored: aged(10 * time.Second),
			want: Explanation{Mode: "Shadow", Decision: DecisionServe, Outcome: "hit", CacheStatus: "weir; hit; ttl=50",
				Stored: &ExplainedEntry{Age: 10}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			q := &Question{Request: tt.request, Response: tt.response}
			want := tt.want
			want.Method, want.URI = tt.request.Method, "http://a/"
			if tt.spec != "" {
				q.Binding = explained(t, tt.spec)
				want.Policy, want.Route = "shop/catalog", "r"
				if want.Mode == "" {
					want.Mode = "Enabled"
				}
			}
			if want.Stored != nil {
				want.Stored.Status, want.Stored.Lifetime, want.Stored.Policy = 200, 60, "shop/catalog"
				want.Stored.WhileRevalidate, want.Stored.IfError = 30, 600
			}
			got := explain(q, func(*cachepolicy.Binding, *httpcache.Request) bool { return tt.refill }, func(*machine) (found, []string) {
				return found{Result: store.Result{Entry: tt.stored}, soft: tt.soft}, nil
			}, now)
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Explanation{}, "Key"),
				cmpopts.IgnoreFields(ExplainedAnswer{}, "Reason")); diff != "" {
				t.Errorf("explanation (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExplainKey(t *testing.T) {
	t.Parallel()
	b := explained(t, "key: {query: {mode: Exclude, names: [{type: Prefix, value: utm_}]}, "+
		"headers: [X-Tenant], cookies: [ab]}")
	x := Explain(&Question{Binding: b, Request: httpcache.Request{
		Method: "GET", Scheme: "https", Authority: "Shop.example:443", Path: "/p?utm_a=1&b=2"}}, time.Unix(0, 0))
	want := &ExplainedKey{Scope: "shop/route/r", Resource: "https://shop.example/p?b=2",
		Headers: []string{"x-tenant"}, Cookies: []string{"ab"}}
	diff := cmp.Diff(want, x.Key, cmpopts.IgnoreFields(ExplainedKey{}, "Hash"))
	if diff != "" || len(x.Key.Hash) != 64 {
		t.Errorf("key (-want +got), hash %q:\n%s", x.Key.Hash, diff)
	}
}

// TestExplainChangesNothing: to ask about a policy in Shadow mode leaves it so.
func TestExplainChangesNothing(t *testing.T) {
	t.Parallel()
	b := explained(t, "mode: Shadow")
	Explain(&Question{Binding: b, Request: httpcache.Request{Method: "GET", Scheme: "http", Authority: "a", Path: "/"}},
		time.Unix(0, 0))
	if b.Policy.Mode != cachepolicy.ModeShadow {
		t.Errorf("mode %s after explain, want Shadow", b.Policy.Mode)
	}
}

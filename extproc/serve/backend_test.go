package serve

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc"
	"github.com/weirproxy/weir/extproc/admin"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/metrics"
	"github.com/weirproxy/weir/extproc/store"
)

const catalog = `apiVersion: weir.dev/v1alpha1
kind: CachePolicy
metadata: {name: catalog, namespace: shop}
spec:
  targetRefs: [{group: weir.dev, kind: EnvoyRoute, name: products}]
  ttl: {default: 60s}
`

// assembled makes the real parts over a policy directory with these files.
func assembled(t *testing.T, files map[string]string, change func(*Config)) (*backend, environment, error) {
	t.Helper()
	cfg := defaultConfig()
	cfg.PolicyDir = t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(cfg.PolicyDir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if change != nil {
		change(cfg)
	}
	registry := prometheus.NewPedanticRegistry()
	env := environment{cfg: cfg, memory: memoryPlan{store: 1 << 20}, log: quiet(), registry: registry,
		metrics: metrics.New(registry, metrics.Build{}), ready: newReadiness(checkServing), started: time.Now(),
		build: metrics.Build{Version: "v1.2.3"}}
	p, err := assemble(t.Context(), env)
	if err != nil {
		return nil, env, err
	}
	t.Cleanup(func() {
		if err := p.close(); err != nil {
			t.Error(err)
		}
	})
	return p.admin.(*backend), env, nil
}

// put stores an answer for the URL, as a request under the policy would.
func (b *backend) put(t *testing.T, target string, change func(*store.Entry)) {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	req := admin.RequestOf("GET", u, nil)
	binding, _ := b.policies.set.Load().Find("shop/catalog", "products")
	body := store.NewBody(5)
	if err := body.Append([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	body.End()
	now := time.Now()
	e := &store.Entry{
		Key: cachepolicy.BuildKey(&binding.Policy.Key, cachepolicy.KeyInput{Scope: binding.Scope, Scheme: req.Scheme,
			Authority: req.Authority, Path: req.Path, Header: req.Header.Joined}),
		URI: extproc.ResourceOf(&binding.Policy.Key, &req), Status: 200, Body: body, ResponseTime: now,
		Lifetime: time.Minute, Policy: "shop/catalog", Tags: []string{"p7"},
	}
	if change != nil {
		change(e)
	}
	if err := b.store.Put(t.Context(), e, 16, now); err != nil {
		t.Fatal(err)
	}
}

func (b *backend) decision(t *testing.T, target string) extproc.Decision {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	x, err := b.Explain(t.Context(), admin.ExplainRequest{Method: "GET", URL: u, Policy: "shop/catalog"})
	if err != nil {
		t.Fatal(err)
	}
	return x.(extproc.Explanation).Decision
}

func TestBackendStatus(t *testing.T) {
	t.Parallel()
	b, env, err := assembled(t, map[string]string{"catalog.yaml": catalog}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.put(t, "http://shop.example/a", nil)
	got := b.Status()
	want := admin.Status{
		Version: "v1.2.3", StartTime: env.started, State: "starting",
		Policies: admin.PolicyStatus{Directory: env.cfg.PolicyDir, Generation: 1, Count: 1,
			InUse: []admin.Policy{
				{Name: "shop/catalog", Mode: "Enabled", Route: "products", Scope: "shop/route/products"}}},
		Store: admin.StoreStatus{LimitBytes: 1 << 20, Entries: 1, Evictions: map[string]uint64{
			"capacity": 0, "expired": 0, "replaced": 0, "variants": 0, "deleted": 0}},
		Limits: admin.Limits{MemoryBytes: 1 << 20, EnvoyMessageTimeout: "1s", EnvoyMaxMessageTimeout: "1m0s"},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(admin.PolicyStatus{}, "LoadedAt"),
		cmpopts.IgnoreFields(admin.StoreStatus{}, "Bytes")); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if got.Store.Bytes < 5 || got.Policies.LoadedAt.IsZero() {
		t.Errorf("bytes %d, loaded at %v", got.Store.Bytes, got.Policies.LoadedAt)
	}
	env.ready.set(checkServing, nil)
	if got := b.Status().State; got != "ready" {
		t.Errorf("state %s, want ready", got)
	}
	env.ready.set(checkServing, errDraining)
	if got := b.Status().State; got != "draining" {
		t.Errorf("state %s, want draining", got)
	}
	problems, err := testutil.GatherAndLint(env.registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("metrics: %v, %v", problems, err)
	}
	if n, err := testutil.GatherAndCount(env.registry, "weir_store_entries", "weir_policy_reload_total"); n != 3 {
		t.Errorf("%d series of the parts, want 3 (%v)", n, err)
	}
}

// list goes through all pages of the size, and counts how often each URI came.
func (b *backend) list(t *testing.T, limit int) map[string]int {
	t.Helper()
	seen := map[string]int{}
	for page, after := 0, ""; page == 0 || after != ""; page++ {
		got, err := b.Entries(t.Context(), admin.EntriesRequest{Limit: limit, After: after})
		if err != nil || page > 6 {
			t.Fatalf("page %d: %v", page, err)
		}
		for _, e := range got.Entries {
			seen[e.URI]++
		}
		after = got.Next
	}
	return seen
}

func TestBackendEntries(t *testing.T) {
	t.Parallel()
	b, _, err := assembled(t, map[string]string{"catalog.yaml": catalog}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"a", "b", "c", "d", "e"} {
		b.put(t, "http://shop.example/"+path, nil)
	}
	b.put(t, "https://Other.example:443/x", func(e *store.Entry) {
		e.Vary = httpcache.ParseVary(httpcache.Fields{{Name: "vary", Value: "Accept"}})
		e.VaryValues = []string{"text/html"}
		e.ResponseTime, e.WhileRevalidate = e.ResponseTime.Add(-90*time.Second), time.Minute
	})
	want := map[string]int{"http://shop.example/a": 1, "http://shop.example/b": 1, "http://shop.example/c": 1,
		"http://shop.example/d": 1, "http://shop.example/e": 1, "https://other.example/x": 1}
	if diff := cmp.Diff(want, b.list(t, 2)); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
	got, err := b.Entries(t.Context(), admin.EntriesRequest{Limit: 2, Host: "other.example"})
	if err != nil || len(got.Entries) != 1 || got.Next != "" {
		t.Fatalf("by host: %+v, %v", got, err)
	}
	wantEntry := admin.Entry{URI: "https://other.example/x", Policy: "shop/catalog", Status: 200, State: "stale",
		Vary: map[string]string{"accept": "text/html"}, AgeSeconds: 90, LifetimeSeconds: 60, StaleSeconds: 60,
		BodyBytes: 5, Tags: []string{"p7"}, Places: []string{"memory"}}
	if diff := cmp.Diff(wantEntry, got.Entries[0], cmpopts.IgnoreFields(admin.Entry{}, "HeldBytes", "ExpiresAt"),
		cmpopts.EquateApprox(0, 1)); diff != "" {
		t.Errorf("entry (-want +got):\n%s", diff)
	}
	for policy, n := range map[string]int{"shop/catalog": 6, "shop/none": 0} {
		got, err := b.Entries(t.Context(), admin.EntriesRequest{Limit: 100, Policy: policy})
		if err != nil || len(got.Entries) != n {
			t.Errorf("by policy %s: %d entries, %v, want %d", policy, len(got.Entries), err, n)
		}
	}
	if _, err := b.Entries(t.Context(), admin.EntriesRequest{Limit: 2, After: "nonsense"}); err == nil {
		t.Error("no error for a cursor that nobody gave")
	}
}

func TestDescribeStates(t *testing.T) {
	t.Parallel()
	now := time.Now()
	tests := []struct {
		age    time.Duration
		always bool
		want   string
	}{{59 * time.Second, false, "fresh"}, {61 * time.Second, false, "stale"}, {91 * time.Second, false, "kept"},
		{0, true, "kept"}}
	for _, tt := range tests {
		body := store.NewBody(0)
		body.End()
		e := &store.Entry{Body: body, ResponseTime: now.Add(-tt.age), Lifetime: time.Minute,
			IfError: 30 * time.Second, ValidateAlways: tt.always}
		if got := describe(e, now).State; got != tt.want {
			t.Errorf("age %v, always validated %v: %s, want %s", tt.age, tt.always, got, tt.want)
		}
	}
}

// TestBackendInvalidate: each kind covers the entry it names, whatever the
// notation, and no other.
func TestBackendInvalidate(t *testing.T) {
	t.Parallel()
	const covered, other = "https://shop.example/a?b=1", "https://blog.example/a?b=1"
	tests := []struct {
		request   admin.InvalidateRequest
		want      extproc.Decision
		wantOther extproc.Decision
	}{
		{admin.InvalidateRequest{By: "Url", Value: "https://SHOP.example:443/a?b=1", Mode: "Hard"}, "Fetch", "Serve"},
		{admin.InvalidateRequest{By: "Url", Value: "https://shop.example/a", Mode: "Hard"}, "Serve", "Serve"},
		{admin.InvalidateRequest{By: "Url", Value: covered, Namespace: "shop", Mode: "Hard"}, "Fetch", "Serve"},
		{admin.InvalidateRequest{By: "Url", Value: covered, Namespace: "blog", Mode: "Hard"}, "Serve", "Serve"},
		{admin.InvalidateRequest{By: "Url", Value: covered, Mode: "Soft"}, "ServeAndRefresh", "Serve"},
		{admin.InvalidateRequest{By: "Host", Value: "shop.example", Mode: "Hard"}, "Fetch", "Serve"},
		{admin.InvalidateRequest{By: "Tag", Value: "p7", Namespace: "shop", Mode: "Hard"}, "Fetch", "Fetch"},
		{admin.InvalidateRequest{By: "Tag", Value: "p8", Namespace: "shop", Mode: "Hard"}, "Serve", "Serve"},
		{admin.InvalidateRequest{By: "Policy", Value: "catalog", Namespace: "shop", Mode: "Hard"}, "Fetch", "Fetch"},
		{admin.InvalidateRequest{By: "Policy", Value: "catalog", Namespace: "blog", Mode: "Hard"}, "Serve", "Serve"},
		{admin.InvalidateRequest{By: "Namespace", Namespace: "shop", Mode: "Hard"}, "Fetch", "Fetch"},
		{admin.InvalidateRequest{By: "Namespace", Namespace: "blog", Mode: "Hard"}, "Serve", "Serve"},
		{admin.InvalidateRequest{By: "All", Mode: "Hard"}, "Fetch", "Fetch"},
	}
	for _, tt := range tests {
		b, _, err := assembled(t, map[string]string{"catalog.yaml": catalog}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, target := range []string{covered, other} {
			b.put(t, target, func(e *store.Entry) { e.WhileRevalidate = time.Minute })
		}
		r, err := b.Invalidate(t.Context(), tt.request)
		if err != nil || r.Position != 1 || r.Covers != "this process only" || r.InvalidateRequest != tt.request {
			t.Errorf("%+v: %+v, %v", tt.request, r, err)
		}
		wantMatched(t, &r, tt.want, tt.wantOther)
		if got := b.decision(t, covered); got != tt.want {
			t.Errorf("%+v: %s is %s, want %s", tt.request, covered, got, tt.want)
		}
		if got := b.decision(t, other); got != tt.wantOther {
			t.Errorf("%+v: %s is %s, want %s", tt.request, other, got, tt.wantOther)
		}
	}
}

// wantMatched: as many entries are named as are not served as before. A process that
// is alone is certain of nothing.
func wantMatched(t *testing.T, r *admin.InvalidateResult, decisions ...extproc.Decision) {
	t.Helper()
	named := 0
	for _, d := range decisions {
		if d != "Serve" {
			named++
		}
	}
	if r.Matched != named || r.MatchedAtLeast || r.Certain || r.Confirmed != 1 || r.Replicas != 1 {
		t.Errorf("%+v, want %d entries named, and nothing to be certain of", r, named)
	}
}

// TestBackendInvalidateURLByKeyRules: a URL is invalidated in the form in which each policy knows it: without the
// query parameters that are in no key, whichever of the two names them.
func TestBackendInvalidateURLByKeyRules(t *testing.T) {
	t.Parallel()
	const rules = "  key: {query: {mode: Exclude, names: [{type: Prefix, value: utm_}]}}\n"
	other := strings.NewReplacer("name: catalog", "name: blog", "namespace: shop", "namespace: blog",
		"name: products", "name: posts").Replace(catalog)
	tests := []struct {
		stored, invalidated, namespace string
		want                           extproc.Decision
	}{
		{"http://shop.example/p?utm_a=1", "http://shop.example/p", "shop", "Fetch"},
		{"http://shop.example/p?utm_a=1", "http://shop.example/p?utm_b=2", "shop", "Fetch"},
		{"http://shop.example/p?id=1&utm_a=1", "http://shop.example/p?utm_b=2&id=1", "shop", "Fetch"},
		{"http://shop.example/p?utm_a=1", "http://shop.example/p?utm_b=2", "", "Fetch"},
		{"http://shop.example/p", "http://shop.example/p?utm_b=2", "shop", "Fetch"},
		{"http://shop.example/p?id=1&utm_a=1", "http://shop.example/p?id=2", "shop", "Serve"},
		{"http://shop.example/p?utm_a=1", "http://shop.example/p?utm_b=2", "blog", "Serve"},
	}
	for _, tt := range tests {
		b, _, err := assembled(t, map[string]string{"shop.yaml": catalog + rules, "blog.yaml": other}, nil)
		if err != nil {
			t.Fatal(err)
		}
		b.put(t, tt.stored, nil)
		_, err = b.Invalidate(t.Context(), admin.InvalidateRequest{
			By: "Url", Value: tt.invalidated, Namespace: tt.namespace, Mode: "Hard"})
		if err != nil {
			t.Errorf("%s: %v", tt.invalidated, err)
		}
		if got := b.decision(t, tt.stored); got != tt.want {
			t.Errorf("%s invalidated in namespace %q: %s is %s, want %s",
				tt.invalidated, tt.namespace, tt.stored, got, tt.want)
		}
	}
}

func TestBackendExplainErrors(t *testing.T) {
	t.Parallel()
	b, _, err := assembled(t, map[string]string{"catalog.yaml": catalog}, nil)
	if err != nil {
		t.Fatal(err)
	}
	u := &url.URL{Scheme: "http", Host: "a"}
	_, err = b.Explain(t.Context(), admin.ExplainRequest{Method: "GET", URL: u, Policy: "shop/none"})
	wantError(t, err, []string{"no policy shop/none"})
	_, err = b.Warm(t.Context(), admin.WarmRequest{URLs: []string{"http://a/"}})
	wantError(t, err, []string{"--refill-address"})
}

func TestAssembleErrors(t *testing.T) {
	t.Parallel()
	broken := strings.Replace(catalog, "60s", "soon", 1)
	dir := tlsDir(t.TempDir())
	dir.write(t, "secret", []byte("short\n"))
	dir.write(t, "urls", []byte("http://a/\nnonsense\n"))
	tests := []struct {
		name   string
		files  map[string]string
		change func(*Config)
		want   []string
	}{
		{name: "a policy", files: map[string]string{"catalog.yaml": broken},
			want: []string{"catalog.yaml:6: spec.ttl.default"}},
		{name: "two policies", files: map[string]string{"a.yaml": broken, "b.yaml": "kind: Pod"},
			want: []string{"a.yaml:6", "b.yaml:1"}},
		{name: "no directory", change: func(c *Config) { c.PolicyDir += "/none" }, want: []string{"/none"}},
		{name: "a secret", change: func(c *Config) { c.SecretFile = dir.path("secret") },
			want: []string{"--secret-file", "1"}},
		{name: "warm-up", change: func(c *Config) { c.WarmFile = dir.path("urls") },
			want: []string{"--warm-file: ", "urls:2:", "absolute URL"}},
		{name: "no warm-up file", change: func(c *Config) { c.WarmFile = dir.path("none") },
			want: []string{"--warm-file"}},
	}
	for _, tt := range tests {
		_, _, err := assembled(t, tt.files, tt.change)
		wantError(t, err, tt.want)
	}
}

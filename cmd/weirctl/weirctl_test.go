package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"flag"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/weirproxy/weir/extproc"
	"github.com/weirproxy/weir/extproc/admin"
	"github.com/weirproxy/weir/extproc/fleet"
	"github.com/weirproxy/weir/extproc/policydir"
	"github.com/weirproxy/weir/extproc/warm"
)

var update = flag.Bool("update", false, "rewrite testdata/*.txt")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is an admin backend with fixed answers.
type fake struct {
	asked []any
	job   warm.Job
}

func (f *fake) Status() admin.Status {
	return admin.Status{
		Version: "v1.2.3", StartTime: time.Unix(1_700_000_000, 0).UTC(), State: "ready",
		Policies: admin.PolicyStatus{Directory: "/etc/weir", Generation: 3, Count: 2, InUse: []admin.Policy{},
			Errors: []policydir.FileError{
				{File: "a.yaml", Line: 7, Path: "spec.ttl.min", Reason: "must not be above max"}}},
		Streams: 5, Waiting: 2, Flights: admin.FlightCount{Flights: 1, Waiters: 2},
		Store: admin.StoreStatus{Bytes: 3 << 20, LimitBytes: 64 << 20, Entries: 12,
			Evictions: map[string]uint64{"expired": 4, "capacity": 0, "replaced": 1}},
		Refills: admin.Refills{Address: "127.0.0.1:10001", Running: 1},
		Origins: []admin.Origin{{Policy: "shop/catalog", Running: 3, Queued: 5, Refused: 2, RampPerSecond: 119.6}},
		Warm: []warm.Job{{ID: "1", State: warm.Done},
			{ID: "2", State: warm.Running, Loaded: 40, Total: 100, Source: "file urls"}},
		HotKeys:       12,
		Invalidations: fleet.StampStats{Position: 9},
		Fleet: &admin.FleetStatus{
			Replica: "weir-0", Redis: "redis://weir:xxxxx@redis", InTouch: true, CaughtUp: true, Leases: 1, Waiting: 2,
			Replicas: []admin.Replica{
				{Name: "weir-0", Alive: true, Current: true, Position: 9},
				{Name: "weir-1", Alive: true, Current: true, Position: 8},
				{Name: "weir-2", SilentSeconds: 90},
			},
			Claims: map[string]uint64{"granted": 5, "vary_changed": 1, "found": 0}, Waits: map[string]uint64{},
			Position: 9, Circuit: admin.Circuit{State: "closed", Nodes: 1}, Errors: map[string]uint64{"timeout": 2},
			Refused: map[string]uint64{"mac": 1},
		},
	}
}

func (f *fake) Explain(_ context.Context, r admin.ExplainRequest) (any, error) {
	f.asked = append(f.asked, []any{r.Request(), r.Response, r.Policy, r.Route})
	return extproc.Explanation{
		Method: r.Method, URI: r.URL.String(), Policy: "shop/catalog", Route: "products", Mode: "Enabled",
		Decision: extproc.DecisionServe, Outcome: "hit", CacheStatus: "weir; hit; ttl=50",
		Key: &extproc.ExplainedKey{Hash: "ab", Scope: "s", Resource: "http://a/"},
		Stored: &extproc.ExplainedEntry{Status: 200, Age: 10, Lifetime: 60, IfError: 600, BodyBytes: 5,
			Places: []string{extproc.PlaceMemory, extproc.PlaceShared}},
	}, nil
}

func (f *fake) Entries(_ context.Context, r admin.EntriesRequest) (admin.EntriesPage, error) {
	f.asked = append(f.asked, r)
	p := admin.EntriesPage{Next: map[string]string{"": "c1", "c1": "c2", "c2": ""}[r.After]}
	for range min(r.Limit, 2) {
		p.Entries = append(p.Entries, admin.Entry{URI: "http://a/" + r.After, Policy: "shop/catalog", Status: 200,
			State: "fresh", AgeSeconds: 90, LifetimeSeconds: 3600, BodyBytes: 1536, Places: []string{"memory", "shared"}})
	}
	return p, nil
}

// Warm takes note; its job fails for URLs with "refuse" in them.
func (f *fake) Warm(_ context.Context, r admin.WarmRequest) (admin.WarmResult, error) {
	f.asked = append(f.asked, r)
	requests, err := r.Requests()
	f.job = warm.Job{ID: "7", State: warm.Running, Total: len(requests)}
	for i := range requests {
		if u := requests[i].URL(); strings.Contains(u, "refuse") {
			f.job.Failed++
			f.job.Faults = append(f.job.Faults, warm.Fault{URL: u, Reason: "no policy covers the route"})
		}
	}
	return admin.WarmResult{Job: "7", Total: len(requests)}, err
}

// WarmJobs is a quarter further each time it is asked.
func (f *fake) WarmJobs() []warm.Job {
	f.job.Loaded = min(f.job.Loaded+(f.job.Total+3)/4, f.job.Total)
	if f.job.Loaded == f.job.Total {
		f.job.State, f.job.Stored = warm.Done, f.job.Total-f.job.Failed
	}
	return []warm.Job{f.job}
}

func (f *fake) Top(_ context.Context, r admin.TopRequest) (admin.TopResult, error) {
	f.asked = append(f.asked, r)
	hot := func(rate float64, uri string) admin.HotKey {
		return admin.HotKey{Rate: rate, URI: uri, Policy: "shop/catalog", Route: "r"}
	}
	top := admin.TopResult{HalfLifeSeconds: 60, Keys: []admin.HotKey{
		hot(1234.5, "https://shop.example/"), hot(12.34, "https://shop.example/p?id=7"), hot(0.0123, "https://x/\x1b[2J")}}
	top.Keys[1].Headers = map[string]string{"accept-encoding": "gzip", "accept": "*/*"}
	top.Keys[1].Cookies = []string{"sid"}
	return top, nil
}

func (f *fake) Invalidate(_ context.Context, r admin.InvalidateRequest) (admin.InvalidateResult, error) {
	f.asked = append(f.asked, r)
	result := admin.InvalidateResult{InvalidateRequest: r, Position: 7, Confirmed: 1, Replicas: 1, TookSeconds: 0.002}
	switch r.Namespace {
	case "fleet":
		result.Confirmed, result.Replicas, result.Certain, result.Covers = 3, 3, true, "all 3 replicas"
		result.Matched, result.MatchedAtLeast = 100_000, true
	case "silent":
		result.Confirmed, result.Replicas, result.Covers, result.Silent = 2, 3, "2 of 3 replicas", []string{"weir-2"}
		result.Warnings = []string{"no word from weir-2"}
	default:
		result.Covers = "this process only"
	}
	return result, nil
}

// adminAPI starts an admin API over the backend and returns its address.
func adminAPI(t *testing.T, f *fake) string {
	t.Helper()
	s := httptest.NewServer(admin.New(f, admin.Options{Loopback: true, Log: slog.New(slog.DiscardHandler)}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// TestGolden runs weirctl and compares what it prints, and says, with a file.
func TestGolden(t *testing.T) {
	t.Parallel()
	const offline = "--policy-file=testdata/policies"
	tests := []struct {
		name string // of the file
		args []string
	}{
		{"help", []string{"--help"}},
		{"help-validate", []string{"validate", "--help"}},
		{"help-explain", []string{"explain", "--help"}},
		{"help-invalidate", []string{"invalidate", "--help"}},
		{"validate", []string{"validate", "testdata/policies/catalog.yaml"}},
		{"validate-directory", []string{"validate", "testdata/policies", "-o", "json"}},
		{"validate-broken", []string{"validate", "testdata/broken.yaml", "testdata/policies/catalog.yaml"}},
		{"validate-broken-json", []string{"validate", "testdata/broken.yaml", "-o", "json"}},
		{"validate-twice", []string{"validate", "testdata/policies/catalog.yaml", "testdata/policies/catalog.yaml"}},
		{"validate-mixed", []string{"validate", "testdata/policies", "testdata/broken.yaml"}},
		{"explain", []string{"explain", "http://a/"}},
		{"explain-offline", []string{"explain", offline, "https://Shop.example:443/p?utm_x=1&id=7",
			"--response-header", "Cache-Control: max-age=10", "--response-header", "Vary: Accept-Encoding"}},
		{"explain-offline-private", []string{"explain", offline, "https://shop.example/",
			"--response-header=Cache-Control: private", "-o", "json"}},
		{"explain-offline-post", []string{"explain", offline, "https://shop.example/", "-X", "POST"}},
		{"explain-offline-route", []string{"explain", offline, "https://shop.example/", "--route=other"}},
		{"explain-offline-no-policy", []string{"explain", offline, "https://shop.example/", "--policy=shop/other"}},
		{"explain-offline-broken", []string{"explain", "--policy-file=testdata/broken.yaml", "https://shop.example/"}},
		{"status", []string{"status"}},
		{"entries", []string{"entries", "--limit=3"}},
		{"entries-all", []string{"entries", "--limit=0"}},
		{"invalidate", []string{"invalidate", "tag", "p7", "-n", "shop", "--soft"}},
		{"invalidate-json", []string{"invalidate", "url", "https://shop.example/a", "-o", "json"}},
		{"invalidate-fleet", []string{"invalidate", "tag", "p7", "-n", "fleet", "--require-all"}},
		{"invalidate-silent", []string{"invalidate", "tag", "p7", "-n", "silent"}},
		{"invalidate-silent-require-all", []string{"invalidate", "tag", "p7", "-n", "silent", "--require-all"}},
		{"invalidate-alone-require-all", []string{"invalidate", "all", "--require-all"}},
		{"invalidate-refused", []string{"invalidate", "tag", "p7"}},
		{"invalidate-unknown", []string{"invalidate", "everything"}},
		{"warm", []string{"warm", "http://a/", "http://b/"}},
		{"warm-failed", []string{"warm", "--file=testdata/urls", "http://b/"}},
		{"warm-json", []string{"warm", "http://a/", "-o", "json"}},
		{"warm-no-wait", []string{"warm", "http://a/", "--no-wait"}},
		{"warm-nothing", []string{"warm"}},
		{"warm-faults", []string{"warm", "--file=testdata/urls-broken"}},
		{"help-warm", []string{"warm", "--help"}},
		{"top", []string{"top"}},
		{"top-json", []string{"top", "-o", "json"}},
		{"help-top", []string{"top", "--help"}},
		{"output", []string{"status", "-o", "xml"}},
		{"nothing-to-validate", []string{"validate"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			err := run(t.Context(), "v1.2.3", append(tt.args, "--admin-address="+adminAPI(t, &fake{})), &b, &b)
			b.WriteString("----\n")
			if err != nil {
				b.WriteString("weirctl: " + err.Error() + "\n")
			}
			golden(t, filepath.Join("testdata", tt.name+".txt"), b.Bytes())
		})
	}
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-file +got; rewrite it with -update):\n%s", path, diff)
	}
}

// TestRequests: what reaches the admin API.
func TestRequests(t *testing.T) {
	t.Parallel()
	tests := []struct {
		args []string
		want string // as JSON
	}{
		{[]string{"entries", "--limit=3", "--host=a", "--policy=shop/x"}, `[` +
			`{"Limit":3,"After":"","Policy":"shop/x","Host":"a"},` +
			`{"Limit":1,"After":"c1","Policy":"shop/x","Host":"a"}]`},
		{[]string{"invalidate", "policy", "shop/catalog"},
			`[{"by":"Policy","value":"catalog","namespace":"shop","mode":"Hard"}]`},
		{[]string{"invalidate", "all", "--soft"}, `[{"by":"All","mode":"Soft"}]`},
		{[]string{"warm", "--file=testdata/urls", "http://b/", "-H", "A: 1", "--policy=shop/x", "--route=r", "--no-wait"},
			`[{"urls":["http://b/"],"list":"# hot\nhttp://a/1 policy=shop/catalog\n  Accept-Encoding: gzip\n` +
				`http://refuse/ route=r\n","headers":["A: 1"],"policy":"shop/x","route":"r"}]`},
		{[]string{"top", "--limit=5", "--policy=shop/x"}, `[{"Limit":5,"Policy":"shop/x"}]`},
		{[]string{"explain", "http://a/x?y", "-X", "HEAD", "-H", "A: 1", "-H", "B: 2", "--status=404", "--route=r"},
			`[[{"Method":"HEAD","Scheme":"http","Authority":"a","Path":"/x?y",` +
				`"Header":[{"Name":"a","Value":"1"},{"Name":"b","Value":"2"}]},{"Status":404,"Header":null},"","r"]]`},
	}
	for _, tt := range tests {
		f := &fake{}
		var b bytes.Buffer
		if err := run(t.Context(), "", append(tt.args, "--admin-address="+adminAPI(t, f)), &b, &b); err != nil {
			t.Errorf("%q: %v", tt.args, err)
		}
		got, err := json.Marshal(f.asked)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, string(got)); diff != "" {
			t.Errorf("%q: asked (-want +got):\n%s", tt.args, diff)
		}
	}
}

// TestTokenAndTLS: an admin API off loopback is asked with both.
func TestTokenAndTLS(t *testing.T) {
	t.Parallel()
	o := admin.Options{Token: func() string { return "s3cret" }, Log: slog.New(slog.DiscardHandler)}
	s := httptest.NewTLSServer(admin.New(&fake{}, o))
	t.Cleanup(s.Close)
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ca := write("ca.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	token := write("token", []byte("s3cret\n"))
	address := "--admin-address=" + strings.TrimPrefix(s.URL, "https://")
	tests := []struct {
		name string
		args []string
		want string // in the error; empty: none
	}{
		{"both", []string{address, "--ca-file=" + ca, "--token-file=" + token}, ""},
		{"URL", []string{"--admin-address=" + s.URL, "--ca-file=" + ca, "--token-file=" + token}, ""},
		{"wrong token", []string{address, "--ca-file=" + ca, "--token-file=" + write("wrong", []byte("guess"))}, "401"},
		{"no token", []string{address, "--ca-file=" + ca}, "--admin-token-file"},
		{"no CA", []string{"--admin-address=" + s.URL}, "certificate"},
		{"plain text", []string{address}, "400"},
		{"no CA file", []string{address, "--ca-file=nowhere"}, "--ca-file"},
		{"no certificate in it", []string{address, "--ca-file=" + write("empty", nil)}, "no certificate"},
		{"no token file", []string{address, "--token-file=nowhere"}, "--token-file"},
		{"no address", []string{"--admin-address=ftp://x"}, "--admin-address"},
	}
	for _, tt := range tests {
		var b bytes.Buffer
		err := run(t.Context(), "", append([]string{"status"}, tt.args...), &b, &b)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.NotFoundHandler())
	address := s.URL
	var b bytes.Buffer
	err := run(t.Context(), "", []string{"status", "--admin-address=" + address}, &b, &b)
	if err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("another server: error %v, want 404", err)
	}
	s.Close()
	err = run(t.Context(), "", []string{"status", "--admin-address=" + address}, &b, &b)
	if err == nil || !strings.Contains(err.Error(), "is weir-extproc running") {
		t.Errorf("error %v, want a hint", err)
	}
}

func TestUnits(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB",
		3 << 20: "3.0 MiB", 5 << 40: "5.0 TiB", 5 << 50: "5120.0 TiB"} {
		if got := size(n); got != want {
			t.Errorf("size(%d) = %q, want %q", n, got, want)
		}
	}
	for s, want := range map[float64]string{0: "0s", 0.25: "250ms", 90: "1m30s"} {
		if got := seconds(s); got != want {
			t.Errorf("seconds(%v) = %q, want %q", s, got, want)
		}
	}
}

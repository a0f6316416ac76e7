package serve

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weirproxy/weir/extproc"
	"github.com/weirproxy/weir/extproc/admin"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/popularity"
	"github.com/weirproxy/weir/extproc/warm"
)

// warming is a backend whose detached fetches go to an origin, and that loads what
// is queued until the test ends.
func warming(t *testing.T, origin http.HandlerFunc, change func(*Config)) *backend {
	t.Helper()
	server := httptest.NewServer(origin)
	t.Cleanup(server.Close)
	b, _, err := assembled(t, map[string]string{"catalog.yaml": catalog}, func(c *Config) {
		c.RefillAddress = strings.TrimPrefix(server.URL, "http://")
		c.WarmRate = 1000
		if change != nil {
			change(c)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.warmer.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return b
}

func fresh(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Cache-Control", "max-age=60") }

// TestWarmFile: what the list names is in the cache when the warm-up is over.
func TestWarmFile(t *testing.T) {
	t.Parallel()
	b := warming(t, fresh, nil)
	requests, err := warm.ParseFile("urls", []byte("http://shop.example/a\nhttp://shop.example/b route=none\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.warmUp(t.Context(), "urls", requests); err != nil {
		t.Fatal(err)
	}
	if got := b.decision(t, "http://shop.example/a"); got != extproc.DecisionServe {
		t.Errorf("a loaded page: %s, want it served", got)
	}
	want := []warm.Job{{ID: "1", Source: "file urls", State: warm.Done, Total: 2, Loaded: 2, Stored: 1, Failed: 1,
		Faults: []warm.Fault{{URL: "http://shop.example/b", Reason: `no policy covers route "none"`}}}}
	if diff := cmp.Diff(want, b.Status().Warm, cmpopts.IgnoreTypes(time.Time{})); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

// TestWarmUpIsBounded: readiness waits for --warm-timeout at most, and for nothing
// when the process ends.
func TestWarmUpIsBounded(t *testing.T) {
	t.Parallel()
	b, _, err := assembled(t, map[string]string{"catalog.yaml": catalog}, func(c *Config) {
		c.WarmTimeout = time.Nanosecond
	})
	if err != nil {
		t.Fatal(err)
	}
	requests := []warm.Request{{Scheme: "http", Authority: "a", Path: "/"}}
	if err := b.warmUp(t.Context(), "urls", requests); !errors.Is(err, errWarmTimeout) {
		t.Errorf("nobody loads: %v", err)
	}
	b.cfg.WarmTimeout = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.warmUp(ctx, "urls", requests); !errors.Is(err, context.Canceled) {
		t.Errorf("the process ends: %v", err)
	}
}

func TestWarmByAdminAPI(t *testing.T) {
	t.Parallel()
	b := warming(t, fresh, nil)
	got, err := b.Warm(t.Context(), admin.WarmRequest{URLs: []string{"http://shop.example/a", "http://shop.example/b"}})
	if diff := cmp.Diff(admin.WarmResult{Job: "1", Total: 2}, got); diff != "" || err != nil {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	// A second job ends after the first.
	more := []warm.Request{{Scheme: "http", Authority: "shop.example", Path: "/c"}}
	if err := b.warmUp(t.Context(), "urls", more); err != nil {
		t.Fatal(err)
	}
	jobs := b.WarmJobs()
	if len(jobs) != 2 || jobs[0].Stored != 2 || jobs[0].Source != "admin API" || jobs[1].Stored != 1 {
		t.Errorf("jobs %+v", jobs)
	}
	if _, err := b.Warm(t.Context(), admin.WarmRequest{URLs: []string{"nonsense"}}); err == nil {
		t.Error("a relative URL is taken")
	}
	for err == nil { // until too much waits
		_, err = b.Warm(t.Context(), admin.WarmRequest{List: strings.Repeat("http://shop.example/a\n", 50_000)})
	}
	var refused *admin.Error
	if !errors.As(err, &refused) || refused.Status != http.StatusTooManyRequests {
		t.Errorf("error %v, want 429", err)
	}
}

// TestTop: what is shown of hot keys.
func TestTop(t *testing.T) {
	t.Parallel()
	b, _, err := assembled(t, map[string]string{"catalog.yaml": catalog}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, policy := range []string{"shop/catalog", "shop/news", "shop/catalog"} {
		key, now := popularity.Key{byte(i)}, time.Now()
		for range 10 * (i + 1) {
			b.service.Popularity().Touch(&key, now)
		}
		b.service.Popularity().Describe(&key, popularity.Description{URI: "http://a/" + policy, Policy: policy, Route: "r",
			Header: httpcache.Fields{{Name: "accept", Value: "*/*"}}, Cookies: []string{"sid"}}, now)
	}
	top, err := b.Top(t.Context(), admin.TopRequest{Limit: 1, Policy: "shop/catalog"})
	want := admin.TopResult{HalfLifeSeconds: 60, Keys: []admin.HotKey{{
		URI: "http://a/shop/catalog", Policy: "shop/catalog", Route: "r",
		Headers: map[string]string{"accept": "*/*"}, Cookies: []string{"sid"},
	}}}
	if diff := cmp.Diff(want, top, cmpopts.IgnoreFields(admin.HotKey{}, "Rate")); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	all, err := b.Top(t.Context(), admin.TopRequest{Limit: 10})
	if err != nil || len(all.Keys) != 3 || all.Keys[0].Rate <= 0 {
		t.Errorf("%+v, %v", all, err)
	}
}

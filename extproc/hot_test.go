package extproc_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weirproxy/weir/extproc"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/popularity"
)

// TestPopularityCountsClients: every request of a client counts for its key, hit
// or miss; refreshes and questions do not.
func TestPopularityCountsClients(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, `{ttl: {default: 2s}, jitterPercent: 0, key: {headers: [X-Tenant], cookies: [lang]}}`,
			page(10*time.Millisecond, "vary", "Accept-Encoding, Cookie"), nil)
		for range 20 {
			w.get("/page?x=1", "accept-encoding", "gzip", "accept", "*/*", "x-tenant", "t1",
				"cookie", "lang=secret; lang=other", "user-agent", "me")
			w.get("/other")
			w.get("/other")
			w.service.Explain(t.Context(), &extproc.Question{Binding: w.binding,
				Request: httpcache.Request{Method: "GET", Scheme: "http", Authority: "shop.test", Path: "/asked"}}, time.Now())
			time.Sleep(time.Second) // of two seconds' life: there are refreshes, too
		}
		top := w.service.Popularity().Top(0, time.Now())
		want := []popularity.Hot{
			{Description: popularity.Description{URI: "http://shop.test/other", Policy: "shop/catalog", Route: "products"}},
			{Description: popularity.Description{URI: "http://shop.test/page?x=1", Policy: "shop/catalog", Route: "products",
				Header: httpcache.Fields{{Name: "x-tenant", Value: "t1"}, {Name: "accept-encoding", Value: "gzip"}},
				// The value of the cookie is nowhere.
				Cookies: []string{"lang"}}},
		}
		if diff := cmp.Diff(want, top, cmpopts.IgnoreFields(popularity.Hot{}, "Rate", "Key")); diff != "" {
			t.Fatalf("top (-want +got):\n%s", diff)
		}
		for i, rate := range []float64{2, 1} {
			if got := top[i].Rate; got < 0.75*rate || got > 1.25*rate {
				t.Errorf("%s: %v reads a second, want about %v", top[i].URI, got, rate)
			}
		}
	})
}

// TestAutoFollowsTheRate: of a key that is read rarely, mode Auto refreshes most
// lifetimes early, where a fixed β of 1 lets nearly all run out.
func TestAutoFollowsTheRate(t *testing.T) {
	t.Parallel()
	shares := map[string]float64{}
	for _, mode := range []string{"Fixed", "Auto"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, `{ttl: {default: 60s}, jitterPercent: 0, xfetch: {mode: `+mode+`},
				coalescing: {maxWait: 20s}, stale: {softTimeout: 0s}}`, page(time.Second), nil)
			r := rand.New(rand.NewPCG(1, 2))
			for range 2000 {
				w.get("/page")
				time.Sleep(time.Duration(r.ExpFloat64() * float64(10*time.Second)))
			}
			n := w.counted("weir_requests_total")
			lifetimes := float64(len(w.seen()))
			shares[mode] = 1 - n["hit_stale"]/lifetimes
		})
	}
	// A lifetime runs out with probability e^(−λ·β·cost), which is 0.90 for λ = 0.1/s,
	// β = 1 and a cost of 1 s. Auto takes the β of a mean lead of 12 s, a fifth of the
	// lifetime: about 13, and half of the lifetimes run out.
	t.Logf("early: %.2f fixed, %.2f auto", shares["Fixed"], shares["Auto"])
	if shares["Fixed"] > 0.2 || shares["Auto"] < 0.4 {
		t.Errorf("of all refreshes early: fixed %.2f, auto %.2f", shares["Fixed"], shares["Auto"])
	}
}

// TestSecretsAreNotDescribed: nothing of what a client alone knows gets into what
// is kept of hot keys, whatever Vary names.
func TestSecretsAreNotDescribed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, `{ttl: {default: 60s}, key: {cookies: [sid]}}`,
			page(0, "cache-control", "public, max-age=60", "vary", "authorization, cookie"), nil)
		for range 50 {
			w.get("/page", "authorization", "Bearer hunter2", "cookie", "sid=hunter2; x=hunter2")
		}
		top := w.service.Popularity().Top(0, time.Now())
		for _, h := range top {
			text := cmp.Diff(popularity.Description{}, h.Description)
			if strings.Contains(text, "hunter2") {
				t.Errorf("a secret is kept:\n%s", text)
			}
		}
		if len(top) != 1 {
			t.Errorf("%d hot keys, want 1", len(top))
		}
	})
}

package extproc_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/warm"
)

// slowReader is a store whose next look-up, once armed, gives its answer only after
// another request has gone through to its end.
type slowReader struct {
	store.Store
	mu   sync.Mutex
	then func()
}

func (s *slowReader) Get(ctx context.Context, key *cachepolicy.Key, req httpcache.Fields, now time.Time) (
	store.Result, error,
) {
	r, err := s.Store.Get(ctx, key, req, now)
	s.mu.Lock()
	then := s.then
	s.then = nil
	s.mu.Unlock()
	if then != nil {
		then()
	}
	return r, err
}

// TestRefreshedMeanwhile: between a request's look-up and its refresh another one
// refreshes the entry from the beginning to the end. The origin is not asked again.
func TestRefreshedMeanwhile(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]string{
		"while revalidating": tenSeconds,
		"soft timeout": `{ttl: {default: 10s}, jitterPercent: 0, xfetch: {mode: "Off"},
			stale: {whileRevalidate: 0s, ifError: 600s, softTimeout: 5s}}`,
	} {
		for how, detached := range map[string]bool{"detached": true, "carried": false} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { refreshedMeanwhile(t, policy, detached) })
			})
		}
	}
}

func refreshedMeanwhile(t *testing.T, policy string, detached bool) {
	t.Helper()
	slow := new(slowReader)
	w := newWorld(t, policy, page(time.Second), func(o *extproc.Options) {
		slow.Store, o.Store = o.Store, slow
		if !detached {
			o.Fetcher = nil
		}
	})
	w.get("/page")
	time.Sleep(11 * time.Second)
	w.seen()
	slow.mu.Lock()
	slow.then = func() {
		w.get("/page")
		time.Sleep(2 * time.Second) // until the refresh has ended
	}
	slow.mu.Unlock()
	if r := w.get("/page"); r.Status != 200 || r.Asked {
		t.Errorf("status %d, asked the origin %v", r.Status, r.Asked)
	}
	time.Sleep(5 * time.Second)
	w.wantSeen(1, "one refresh")
	if r := w.get("/page"); r.Asked || r.FirstByte != 0 {
		t.Errorf("later: %q after %v, want a fresh hit", r.Header.Get("cache-status"), r.FirstByte)
	}
}

// TestWarmedMeanwhile: the same for a warm-up.
func TestWarmedMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := new(slowReader)
		w := newWorld(t, `{ttl: {default: 60s}}`, page(time.Second), func(o *extproc.Options) {
			slow.Store, o.Store = o.Store, slow
		})
		slow.then = func() { w.get("/page") }
		w.wantWarm(w.warm(t.Context(), "/page"), warm.Outcome{Result: warm.Skipped})
		w.wantSeen(1, "one fetch")
	})
}

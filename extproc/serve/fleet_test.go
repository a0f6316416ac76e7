package serve

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/weirproxy/weir/extproc/admin"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/metrics"
	"github.com/weirproxy/weir/extproc/popularity"
	"github.com/weirproxy/weir/extproc/store"
)

// patience is for what must not depend on how loaded the machine is.
const patience = time.Minute

// member is an assembled process in a fleet whose background runs.
type member struct {
	*backend
	stop func() // ends the background
}

// joins starts a process of the fleet in the Redis.
func joins(t *testing.T, m *miniredis.Miniredis, name string) *member {
	t.Helper()
	secret := tlsDir(t.TempDir())
	secret.write(t, "secret", []byte(strings.Repeat("5a", 32)))
	return joinsAs(t, name, func(cfg *Config) {
		cfg.RedisURL, cfg.SecretFile = RedisURL("redis://"+m.Addr()), secret.path("secret")
	})
}

// joinsAs starts a process of a fleet, which change says how to reach.
func joinsAs(t *testing.T, name string, change func(*Config)) *member {
	t.Helper()
	cfg := defaultConfig()
	cfg.PolicyDir, cfg.ReplicaName = t.TempDir(), name
	change(cfg)
	if err := os.WriteFile(filepath.Join(cfg.PolicyDir, "catalog.yaml"), []byte(catalog), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewPedanticRegistry()
	p, err := assemble(t.Context(), environment{cfg: cfg, memory: memoryPlan{store: 1 << 20}, log: quiet(),
		registry: registry, metrics: metrics.New(registry, metrics.Build{}), ready: newReadiness(checkServing)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var g errgroup.Group
	for _, f := range p.background {
		g.Go(func() error { return f(ctx) })
	}
	b := &member{backend: p.admin.(*backend)}
	b.stop = func() {
		cancel()
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() {
		b.stop()
		if err := p.close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *member) inTouch(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(patience); !b.fleet.fleet.InTouch(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not in touch with the fleet")
		}
	}
}

// TestFleetStatus: what the admin API says of a fleet.
func TestFleetStatus(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	a, b := joins(t, m, "a"), joins(t, m, "b")
	a.inTouch(t)
	b.inTouch(t)
	want := &admin.FleetStatus{
		Replica: "a", Redis: "redis://" + m.Addr(), InTouch: true, CaughtUp: true,
		Replicas: []admin.Replica{{Name: "a", Alive: true, Current: true}, {Name: "b", Alive: true, Current: true}},
		Circuit:  admin.Circuit{State: "closed", Nodes: 1},
	}
	got := a.Status().Fleet
	// A replica says that it has caught up with its second beat.
	behind := func(r admin.Replica) bool { return !r.Current }
	for range 1000 {
		if len(got.Replicas) == 2 && !slices.ContainsFunc(got.Replicas, behind) {
			break
		}
		time.Sleep(10 * time.Millisecond)
		got = a.Status().Fleet
	}
	if diff := cmp.Diff(want, got,
		cmpopts.IgnoreFields(admin.FleetStatus{}, "SilentSeconds", "Position", "Claims", "Waits", "Errors", "Refused"),
		cmpopts.IgnoreFields(admin.Replica{}, "SilentSeconds", "Position"),
		cmpopts.IgnoreFields(admin.Circuit{}, "Slow")); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	for name, counts := range map[string]map[string]uint64{
		"claims": got.Claims, "waits": got.Waits, "errors": got.Errors, "refused": got.Refused,
	} {
		if len(counts) < 4 {
			t.Errorf("%s: %v, want a count of each", name, counts)
		}
	}
	m.Close()
	if s := a.Status().Fleet; s.ReplicasError == "" || len(s.Replicas) != 0 {
		t.Errorf("without Redis: %+v", s)
	}
}

// TestFleetInvalidates: the admin API says how far an invalidation has gone.
func TestFleetInvalidates(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	a, b := joins(t, m, "a"), joins(t, m, "b")
	a.inTouch(t)
	b.inTouch(t)
	b.put(t, "https://shop.example/a", nil)
	byTag := admin.InvalidateRequest{By: "Tag", Namespace: "shop", Value: "p7", Mode: "Hard"}
	all := admin.InvalidateRequest{By: "All", Mode: "Soft"}
	invalidate := func(r admin.InvalidateRequest, want admin.InvalidateResult) {
		t.Helper()
		got, err := a.Invalidate(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if (got.Position == 0) != got.Queued || got.TookSeconds <= 0 || (len(got.Warnings) == 0) != got.Certain {
			t.Errorf("%+v", got)
		}
		want.InvalidateRequest = r
		ignore := cmpopts.IgnoreFields(admin.InvalidateResult{}, "Position", "TookSeconds", "Warnings")
		if diff := cmp.Diff(want, got, ignore); diff != "" {
			t.Errorf("result (-want +got):\n%s", diff)
		}
	}
	invalidate(byTag, admin.InvalidateResult{Covers: "all 2 replicas", Confirmed: 2, Replicas: 2, Certain: true})
	if got := b.decision(t, "https://shop.example/a"); got != "Fetch" {
		t.Errorf("b would %s what a has invalidated", got)
	}
	b.stop()
	invalidate(all, admin.InvalidateResult{Covers: "the only replica", Confirmed: 1, Replicas: 1, Certain: true})
	m.Close()
	invalidate(all, admin.InvalidateResult{
		Covers: "this process only, until Redis is back", Confirmed: 1, Replicas: 1, Queued: true,
	})
	if s := a.Status().Fleet; s.Pending != 1 {
		t.Errorf("%d invalidations are pending, want 1", s.Pending)
	}
}

// TestHotKeysAreLoadedFromRedis: a process that ends leaves the list, and one that
// starts loads of it what the fleet has stored.
func TestHotKeysAreLoadedFromRedis(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	a := joins(t, m, "a")
	a.inTouch(t)
	now := time.Now()
	sketch := a.service.Popularity()
	for path, stored := range map[string]bool{"/1": true, "/2": true, "/gone": false} {
		var e *store.Entry
		a.put(t, "https://shop.example"+path, func(made *store.Entry) { e = made })
		if stored {
			if err := a.fleet.tiered.Put(t.Context(), e, 16, now); err != nil {
				t.Fatal(err)
			}
		}
		for range 10 {
			sketch.Touch(&e.Key.Hash, now)
		}
		sketch.Describe(&e.Key.Hash, popularity.Description{
			URI: "https://shop.example" + path, Policy: "shop/catalog", Route: "products",
		}, now)
	}
	a.stop()

	b := joins(t, m, "b")
	if err := b.warmUpAll(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"https://shop.example/1": 1, "https://shop.example/2": 1}
	if diff := cmp.Diff(want, b.list(t, 10)); diff != "" {
		t.Errorf("in memory (-want +got):\n%s", diff)
	}
}

// TestNoHotKeysWithoutRedis: a process is ready all the same.
func TestNoHotKeysWithoutRedis(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	a := joins(t, m, "a")
	m.Close()
	if err := a.warmUpAll(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "Redis is away") {
		t.Errorf("error %v, want to hear that Redis is away", err)
	}
}

func TestMergeHot(t *testing.T) {
	t.Parallel()
	hot := func(uri string, rate float64, change ...func(*popularity.Hot)) popularity.Hot {
		h := popularity.Hot{Description: popularity.Description{URI: uri, Policy: "shop/catalog"}, Rate: rate}
		for _, f := range change {
			f(&h)
		}
		return h
	}
	zipped := func(h *popularity.Hot) { h.Header = httpcache.Fields{{Name: "accept-encoding", Value: "gzip"}} }
	secret := func(h *popularity.Hot) { h.Cookies = []string{"sid"} }
	saved := []popularity.Hot{hot("a", 100), hot("b", 8), hot("b", 6, zipped), hot("cold", 0.0015)}
	own := []popularity.Hot{hot("a", 2), hot("c", 5), hot("mine", 50, secret)}
	got := mergeHot(saved, own)
	want := []popularity.Hot{hot("c", 5), hot("b", 4), hot("b", 3, zipped), hot("a", 2)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(got, decodeHot(encodeHot(got))); diff != "" {
		t.Errorf("written and read (-want +got):\n%s", diff)
	}
	var many []popularity.Hot
	for range 3000 {
		many = append(many, hot(strings.Repeat("x", 2000), 1))
	}
	if n := len(decodeHot(encodeHot(many))); n == 0 || n > maxHotKeys {
		t.Errorf("%d of very many are left", n)
	}
	if got := decodeHot([]byte("{")); got != nil {
		t.Errorf("no list is read as %v", got)
	}
}

func TestReplicaNamesDiffer(t *testing.T) {
	t.Parallel()
	a, b := replicaName(), replicaName()
	c := &Config{ReplicaName: a, RedisOutage: outageFetch}
	if err := c.validateFleet(); a == b || err != nil {
		t.Errorf("%q and %q: %v", a, b, err)
	}
}

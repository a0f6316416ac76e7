package controller

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	wire "github.com/weirproxy/weir/cachepolicy/feed"
	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	"github.com/weirproxy/weir/controller/feed"
	"github.com/weirproxy/weir/controller/status"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// TestTrafficPeriods holds that traffic is written at most every 5 minutes, whoever led before, and only if there was any.
func TestTrafficPeriods(t *testing.T) {
	t.Parallel()
	w := &writer{counted: map[string]wire.Traffic{}, since: map[string]time.Time{}}
	p := &v1alpha1.CachePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p"}}
	at := func(after time.Duration, requests uint64) *state {
		return &state{now: noon.Add(after), traffic: map[string]wire.Traffic{
			"shop/p": {Requests: requests, OriginSaved: requests / 2},
		}}
	}
	if w.trafficOf(at(0, 1000), p) != nil {
		t.Error("written of what was counted before this term")
	}
	if w.trafficOf(at(status.TrafficPeriod-time.Second, 1100), p) != nil {
		t.Error("written before the period is over")
	}
	if w.trafficOf(at(status.TrafficPeriod, 1000), p) != nil {
		t.Error("written without a request")
	}
	got := w.trafficOf(at(status.TrafficPeriod, 1100), p)
	if got == nil || *got.HitPercent != 50 || *got.OriginRequestsSaved != 50 {
		t.Fatalf("after a period: %+v", got)
	}
	p.Status.Traffic = got
	w.startPeriod(at(status.TrafficPeriod, 1100), "shop/p")
	if w.trafficOf(at(2*status.TrafficPeriod-time.Second, 1300), p) != nil {
		t.Error("written again before the next period is over")
	}
	other := &writer{counted: map[string]wire.Traffic{}, since: map[string]time.Time{"shop/p": noon}}
	if other.trafficOf(at(status.TrafficPeriod+time.Minute, 1300), p) != nil {
		t.Error("written although another leader has just done so")
	}
	w.forget(nil)
	if len(w.since)+len(w.counted) > 0 {
		t.Error("what is remembered of a policy that is gone stays")
	}
}

// TestStarting holds for how long a replica that is ready, and not connected, is waited for.
func TestStarting(t *testing.T) {
	t.Parallel()
	w := &writer{}
	at := func(after time.Duration, connected bool, ready ...string) bool {
		return w.starting(&state{now: noon.Add(after), ready: ready, connected: map[string]bool{"a": connected}})
	}
	if !at(0, false, "a") || !at(startGrace, false, "a") || at(startGrace+time.Second, false, "a") {
		t.Error("one that never connected")
	}
	if !at(time.Hour, true, "a") || !at(time.Hour+startGrace, false, "a") || at(time.Hour+startGrace+time.Second, false, "a") {
		t.Error("one that was connected, from when it went")
	}
	if !at(2*time.Hour, true, "a", "b") || at(3*time.Hour, true, "a", "b") {
		t.Error("one beside another")
	}
}

// TestMetrics holds the metrics to Prometheus' conventions and the reference to the metrics.
func TestMetrics(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m := newMetrics(registry, feed.New(feed.Options{}))
	m.writes.WithLabelValues(writePolicy).Inc()
	problems, err := testutil.GatherAndLint(registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join("..", "docs", "reference", "controller-metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if !strings.Contains(string(page), "`"+f.GetName()) || !strings.Contains(string(page), strings.TrimSuffix(f.GetHelp(), ".")) {
			t.Errorf("the reference does not have %s: %s", f.GetName(), f.GetHelp())
		}
	}
	if n := strings.Count(string(page), "| `weir_"); n != len(families) {
		t.Errorf("the reference has %d metrics, there are %d", n, len(families))
	}
}

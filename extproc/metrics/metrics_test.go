package metrics

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func newTestMetrics(t *testing.T) (*Metrics, *prometheus.Registry) {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	m := New(reg, Build{Version: "v1.2.3", Revision: "abc", GoVersion: "go1.26"})
	Observe(reg, Sources{
		Store: func() StoreStats {
			s := StoreStats{Bytes: 10, Limit: 100, Entries: 2, Rejected: 3}
			s.Evicted[EvictCapacity] = 7
			return s
		},
		Flights: func() FlightStats { return FlightStats{Flights: 4, Marks: 5, Refills: 8} },
		Policies: func() PolicyStats {
			return PolicyStats{Policies: 6, Generation: 9, Failures: 2, Errors: 1, LoadedAt: time.UnixMilli(1500)}
		},
	})
	NewRedisCommands(reg)
	ObserveFleet(reg, testFleet)
	ObserveFeed(reg, func() FeedStats {
		return FeedStats{Connected: true, Resources: 7, Rejected: 2, Reporting: 3, Updates: 11, Failures: 4,
			UpdatedAt: time.UnixMilli(2500)}
	})
	return m, reg
}

// values returns what the registry holds, by "name" or "name{label value}".
func values(t *testing.T, reg prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			if labels := metric.GetLabel(); len(labels) == 1 {
				name += "{" + labels[0].GetValue() + "}"
			}
			switch {
			case metric.GetCounter() != nil:
				got[name] = metric.GetCounter().GetValue()
			case metric.GetGauge() != nil:
				got[name] = metric.GetGauge().GetValue()
			case metric.GetHistogram() != nil:
				got[name] = float64(metric.GetHistogram().GetSampleCount())
			}
		}
	}
	return got
}

func TestLint(t *testing.T) {
	t.Parallel()
	_, reg := newTestMetrics(t)
	problems, err := testutil.GatherAndLint(reg)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestClosedSets(t *testing.T) {
	t.Parallel()
	for name, set := range labelSets() {
		seen := map[string]bool{}
		for i, v := range set {
			if !regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`).MatchString(v.name) {
				t.Errorf("%s: value %d is %q, want snake case", name, i, v.name)
			}
			if !strings.HasSuffix(v.help, ".") {
				t.Errorf("%s: %s wants a sentence of help, has %q", name, v.name, v.help)
			}
			if seen[v.name] {
				t.Errorf("%s: %s stands twice", name, v.name)
			}
			seen[v.name] = true
		}
	}
}

// TestEachMethodMovesItsSeries calls each method once and compares everything
// that moved.
func TestEachMethodMovesItsSeries(t *testing.T) {
	t.Parallel()
	failed := errors.New("no such file")
	tests := []struct {
		name string
		do   func(m *Metrics)
		want map[string]float64
	}{
		{"panic", func(m *Metrics) { m.Panic() }, map[string]float64{"weir_grpc_panics_total": 1}},
		{"mode", func(m *Metrics) { m.ModeUnusable() }, map[string]float64{"weir_mode_unusable_total": 1}},
		{"capped", func(m *Metrics) { m.HoldCapped() }, map[string]float64{"weir_hold_capped_total": 1}},
		{"stream", func(m *Metrics) { m.StreamStart() }, map[string]float64{"weir_streams": 1}},
		{"stream ends", func(m *Metrics) { m.StreamStart(); m.StreamEnd() }, map[string]float64{}},
		{"wait", func(m *Metrics) { m.WaitStart() }, map[string]float64{"weir_waiting": 1}},
		{"wait ends", func(m *Metrics) { m.WaitStart(); m.WaitEnd(time.Second) },
			map[string]float64{"weir_wait_seconds": 1}},
		{"fetched", func(m *Metrics) { m.Fetched(time.Second) }, map[string]float64{"weir_fetch_seconds": 1}},
		{"tls", func(m *Metrics) { m.TLSReload(nil) }, map[string]float64{"weir_tls_reload_total{success}": 1}},
		{"bad tls", func(m *Metrics) { m.TLSReload(failed) },
			map[string]float64{"weir_tls_reload_total{failure}": 1}},
	}
	for _, tt := range tests {
		m, reg := newTestMetrics(t)
		before := values(t, reg)
		tt.do(m)
		if diff := cmp.Diff(tt.want, moved(before, values(t, reg))); diff != "" {
			t.Errorf("%s: moved (-want +got):\n%s", tt.name, diff)
		}
	}
}

// moved returns what differs between two readings.
func moved(before, after map[string]float64) map[string]float64 {
	diff := map[string]float64{}
	for name, v := range after {
		if d := v - before[name]; d != 0 {
			diff[name] = d
		}
	}
	return diff
}

// TestEachValueHasItsSeries counts each value of each closed set once, and wants
// the series of that very value to move and no other.
func TestEachValueHasItsSeries(t *testing.T) {
	t.Parallel()
	m, reg := newTestMetrics(t)
	check := func(family string, v interface{ String() string }, count func()) {
		t.Helper()
		before := values(t, reg)
		count()
		want := map[string]float64{family + "{" + v.String() + "}": 1}
		if diff := cmp.Diff(want, moved(before, values(t, reg))); diff != "" {
			t.Errorf("moved (-want +got):\n%s", diff)
		}
	}
	if len(evictValues()) != int(numEvictReasons) || len(reloadValues()) != int(numReloadResults) {
		t.Error("a value has no name")
	}
	for o := range numOutcomes {
		check("weir_requests_total", o, func() { m.Request(o) })
	}
	for r := range numFillResults {
		check("weir_fills_total", r, func() { m.Fill(r) })
	}
	for r := range numRefillResults {
		check("weir_refills_total", r, func() { m.Refill(r) })
	}
}

func TestSourcesAreReadAtScrape(t *testing.T) {
	t.Parallel()
	_, reg := newTestMetrics(t)
	got := values(t, reg)
	want := map[string]float64{
		"weir_store_bytes": 10, "weir_store_limit_bytes": 100, "weir_store_entries": 2,
		"weir_store_rejected_total": 3, "weir_store_evictions_total{capacity}": 7,
		"weir_store_evictions_total{expired}": 0,
		"weir_flights":                        4, "weir_uncoalesced_keys": 5, "weir_refills_running": 8,
		"weir_policies": 6, "weir_policy_errors": 1, "weir_policy_loaded_timestamp_seconds": 1.5,
		"weir_policy_reload_total{success}": 9, "weir_policy_reload_total{failure}": 2,
	}
	for name, v := range want {
		if g, ok := got[name]; !ok || g != v {
			t.Errorf("%s = %v (present: %v), want %v", name, g, ok, v)
		}
	}
}

// TestHitPathDoesNotAllocate guards what a hit pays for being counted.
func TestHitPathDoesNotAllocate(t *testing.T) {
	m, _ := newTestMetrics(t)
	allocs := testing.AllocsPerRun(100, func() {
		m.StreamStart()
		m.Request(OutcomeHit)
		m.StreamEnd()
	})
	if allocs != 0 {
		t.Errorf("counting a hit allocates %v times, want 0", allocs)
	}
}

func BenchmarkHit(b *testing.B) {
	m := New(prometheus.NewRegistry(), Build{})
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			m.Request(OutcomeHit)
		}
	})
}

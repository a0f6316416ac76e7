package bench_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/e2e/bench"
)

// TestEverythingIsMeasured runs all parts with very little in them. How long anything took is not looked at: only that
// each row is there, and what is counted.
func TestEverythingIsMeasured(t *testing.T) {
	report := bench.Run(t, bench.Scale{
		Rounds: 1, Requests: 40, Clients: 4, CacheRounds: 1, Crowds: []int{20}, Groups: 1, Changes: 2, Scanned: 3, Stalled: 2, Small: 100, Large: 2,
	}, "", time.Now())
	names := map[string]bench.Row{}
	for _, r := range report.Rows {
		if _, twice := names[r.Name]; twice {
			t.Errorf("two rows %s", r.Name)
		}
		names[r.Name] = r
	}
	for _, g := range bench.Goals() {
		if strings.HasPrefix(g.Name, "origin_requests_") {
			continue // of crowds that are larger than this test's
		}
		if r, ok := names[g.Name]; !ok || r.Goal != g.Max || r.Value == 0 {
			t.Errorf("row for the goal %s: %+v", g.Name, r)
		}
	}
	for _, name := range []string{"origin_requests_20_x1", "origin_requests_20_x3"} {
		if r := names[name]; r.Value != 1 {
			t.Errorf("%s: the origin was asked %v times, want once", name, r.Value)
		}
	}
	for _, s := range report.Samples {
		if s.Envoy < 0 || s.Server < 0 || s.Envoy+s.Server == 0 {
			t.Errorf("a sample that cost nothing: %+v", s)
		}
	}
	if !slices.ContainsFunc(report.Samples, func(s bench.Sample) bool { return s.Case == "hit" && s.What == "weir" }) {
		t.Error("no sample of weir's hits")
	}
}

package bench_test

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirproxy/weir/e2e/bench"
)

// TestPagesAreCurrent holds docs to the results that are committed: go generate ./e2e/bench writes them.
func TestPagesAreCurrent(t *testing.T) {
	t.Parallel()
	report, err := bench.ReadReport("measured.json")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := report.Pages()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range pages {
		got, err := os.ReadFile(filepath.Join("../../docs", name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("docs/%s is not what measured.json says (-want +got):\n%s", name, diff)
		}
		if strings.HasSuffix(name, ".svg") {
			wellFormed(t, name, string(want))
		}
	}
	for _, g := range bench.Goals() {
		if !strings.Contains(string(pages["performance.md"]), g.What) {
			t.Errorf("docs/performance.md does not show the goal %s", g.Name)
		}
	}
}

func wellFormed(t *testing.T, name, text string) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
}

// TestWhatMeetsAGoal: a ratio is held against the goal where there is a baseline, and a count must be exact.
func TestWhatMeetsAGoal(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		row  bench.Row
		want bool
	}{
		"ratio below":      {bench.Row{Name: "hit_cpu_vs_stock", Value: 50, Baseline: 100, Ratio: 0.5}, true},
		"ratio above":      {bench.Row{Name: "hit_cpu_vs_stock", Value: 95, Baseline: 100, Ratio: 0.95}, false},
		"value below":      {bench.Row{Name: "follower_ttfb_same_p99_ms", Value: 4.9}, true},
		"value above":      {bench.Row{Name: "follower_ttfb_same_p99_ms", Value: 5.1}, false},
		"one request":      {bench.Row{Name: "origin_requests_250_x1", Value: 1}, true},
		"two requests":     {bench.Row{Name: "origin_requests_250_x1", Value: 2}, false},
		"none is not one":  {bench.Row{Name: "origin_requests_250_x1", Value: 0}, false},
		"no goal":          {bench.Row{Name: "anything", Value: 1000}, true},
		"goal of its name": {bench.Row{Name: "lookup_10k_vs_10", Value: 2, Baseline: 2, Ratio: 1}, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := bench.Judged(tt.row); got.OK != tt.want {
				t.Errorf("judged %+v, want OK %v", got, tt.want)
			}
		})
	}
}

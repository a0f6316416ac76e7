package metrics

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
)

var update = flag.Bool("update", false, "rewrite docs/reference/metrics.md")

// labelSets names the family that each closed set of label values belongs to.
func labelSets() map[string][]value {
	return map[string][]value{
		"weir_requests_total":        outcomeValues(),
		"weir_fills_total":           fillValues(),
		"weir_refills_total":         refillValues(),
		"weir_store_evictions_total": evictValues(),
		"weir_policy_reload_total":   reloadValues(),
		"weir_tls_reload_total":      reloadValues(),
		"weir_fleet_claims_total":    claimValues(),
		"weir_fleet_waits_total":     waitValues(),
		"weir_fleet_wakes_total":     wakeValues(),
		"weir_redis_errors_total":    redisErrorValues(),
		"weir_redis_reads_total":     readValues(),
		"weir_redis_commits_total":   commitValues(),
		"weir_redis_refused_total":   refusalValues(),
	}
}

// TestReference wants docs/reference/metrics.md to say what the code registers.
func TestReference(t *testing.T) {
	t.Parallel()
	_, reg := newTestMetrics(t)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := reference(families)
	path := filepath.Join("..", "..", "docs", "reference", "metrics.md")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is out of date; run go generate ./extproc/metrics (-file +code):\n%s", path, diff)
	}
}

func reference(families []*dto.MetricFamily) []byte {
	var b bytes.Buffer
	b.WriteString("# Metrics of weir-extproc\n\n" +
		"Generated from `extproc/metrics`; do not edit.\n" +
		"Served on `--metrics-bind-address` under `/metrics`, beside those of the Go runtime and the process.\n" +
		"Label values come from closed sets: no path, host, key or policy name is ever a label.\n" +
		"`weir_fleet_…` and `weir_redis_…` are there with `--redis-url` only, `weir_feed_…` with `--controller-address`.\n\n" +
		"| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n")
	for _, f := range families {
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, "`"+l.GetName()+"`")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.GetName(), strings.ToLower(f.GetType().String()),
			strings.Join(labels, ", "), f.GetHelp())
	}
	for _, f := range families {
		set, ok := labelSets()[f.GetName()]
		if !ok {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n| `%s` | meaning |\n| --- | --- |\n", f.GetName(),
			f.GetMetric()[0].GetLabel()[0].GetName())
		for _, v := range set {
			fmt.Fprintf(&b, "| `%s` | %s |\n", v.name, v.help)
		}
	}
	return b.Bytes()
}

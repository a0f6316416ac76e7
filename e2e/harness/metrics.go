package harness

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Metrics are samples in Prometheus' text format, by series as written: `weir_requests_total{outcome="hit"}`.
type Metrics map[string]float64

// ReadMetrics returns the metrics at a URL as they are now.
func ReadMetrics(tb TB, url string) Metrics {
	tb.Helper()
	resp := Do(tb, Get(url))
	if resp.Status != http.StatusOK {
		tb.Fatalf("read %s: status %d", url, resp.Status)
	}
	metrics, err := parseMetrics(string(resp.Body))
	if err != nil {
		tb.Fatalf("read %s: %v", url, err)
	}
	return metrics
}

// parseMetrics reads samples without timestamps, which is what client_golang writes.
func parseMetrics(text string) (Metrics, error) {
	metrics := make(Metrics)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		i := strings.LastIndexByte(line, ' ')
		if i < 0 {
			return nil, fmt.Errorf("not a sample: %q", line)
		}
		value, err := strconv.ParseFloat(line[i+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("not a sample: %q: %w", line, err)
		}
		metrics[line[:i]] = value
	}
	return metrics, nil
}

// Sum adds up all series of a metric.
func (m Metrics) Sum(name string) float64 {
	var sum float64
	for series, value := range m {
		if series == name || strings.HasPrefix(series, name+"{") {
			sum += value
		}
	}
	return sum
}

// Since returns what the series of a metric gained after an earlier reading, without those that gained nothing.
func (m Metrics) Since(before Metrics, name string) Metrics {
	gained := make(Metrics)
	for series, value := range m {
		if (series == name || strings.HasPrefix(series, name+"{")) && value != before[series] {
			gained[series] = value - before[series]
		}
	}
	return gained
}

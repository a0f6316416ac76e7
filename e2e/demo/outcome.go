package main

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/weirproxy/weir/e2e/harness"
)

// outcome is what clients and the origin saw in one scene.
type outcome struct {
	requests, errors int
	fetches          int // requests the origin saw
	latencies        []time.Duration
	statuses         map[int]int
	cache            map[string]int // by class, see classify
	bodies           int            // how many different ones; 0 when not counted
}

func (o outcome) max() time.Duration              { return harness.Percentile(o.latencies, 100) }
func (o outcome) p(percent float64) time.Duration { return harness.Percentile(o.latencies, percent) }

// burst sends n requests at the same time.
func (s *stage) burst(n int, path string) outcome {
	before := s.origin.Count("/")
	results := harness.Burst(s.tb, n, harness.Same(harness.Get(s.envoy.URL(path))))
	s.settle()
	o := outcome{
		requests: n, fetches: s.origin.Count("/") - before,
		statuses: make(map[int]int), cache: make(map[string]int),
	}
	bodies := make(map[[sha256.Size]byte]bool)
	for _, r := range results {
		if r.Err != nil {
			o.errors++
			continue
		}
		o.statuses[r.Status]++
		o.cache[classify(r.Header.Get("Cache-Status"))]++
		o.latencies = append(o.latencies, r.LastByte)
		bodies[r.Hash] = true
	}
	o.bodies = len(bodies)
	slices.Sort(o.latencies)
	return o
}

// load sends requests at a steady rate.
func (s *stage) load(path string, rate int, d time.Duration) outcome {
	before := s.origin.Count("/")
	r := harness.Load(s.tb, harness.LoadOptions{
		Request: harness.Get(s.envoy.URL(path)), Rate: rate, Duration: d, Connections: rate,
	})
	s.settle()
	o := outcome{
		requests: len(r.Latencies) + r.Errors, errors: r.Errors, fetches: s.origin.Count("/") - before,
		latencies: r.Latencies, statuses: r.Statuses, cache: make(map[string]int),
	}
	for value, n := range r.CacheStatus {
		o.cache[classify(value)] += n
	}
	return o
}

// classify says in a word or two what a Cache-Status field (RFC 9211) reports of weir.
func classify(value string) string {
	list, err := httpsfv.UnmarshalList([]string{value})
	if err != nil || len(list) == 0 {
		return "none"
	}
	item, ok := list[len(list)-1].(httpsfv.Item)
	if !ok {
		return "none"
	}
	class := "passed"
	if _, hit := item.Params.Get("hit"); hit {
		class = "hit"
		if ttl, ok := item.Params.Get("ttl"); ok {
			if seconds, ok := ttl.(int64); ok && seconds < 0 {
				class = "stale"
			}
		}
	}
	if fwd, ok := item.Params.Get("fwd"); ok {
		class = fmt.Sprint(fwd)
		if token, ok := fwd.(httpsfv.Token); ok {
			class = string(token)
		}
	}
	if _, ok := item.Params.Get("collapsed"); ok {
		class += ", collapsed"
	}
	return class
}

// tally writes counts by size: "200 ×249  503 ×1".
func tally[K cmp.Ordered](counts map[K]int) string {
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b K) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	parts := make([]string, len(keys))
	for i, k := range keys {
		parts[i] = fmt.Sprintf("%v ×%d", k, counts[k])
	}
	return strings.Join(parts, "  ")
}

package bench

import (
	"slices"
)

// Row is one result.
type Row struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	// Value is what was measured; Baseline what it is held against, 0 if nothing.
	Value    float64 `json:"value"`
	Baseline float64 `json:"baseline,omitempty"`
	// Ratio is Value ÷ Baseline, as the median of the ratios of rounds where there are rounds.
	Ratio float64 `json:"ratio,omitempty"`
	// Goal is that of design §8 (0: none), for Ratio if there is a baseline, else for Value. OK says whether it is met.
	Goal float64 `json:"goal,omitempty"`
	OK   bool    `json:"ok"`
	What string  `json:"what"`
}

// Goal is a goal of the design: what a row of this name is held to.
type Goal struct {
	Name  string
	Max   float64
	Exact bool // the value itself, not at most
	What  string
}

// Goals are the goals of design §8, in its order.
func Goals() []Goal {
	return []Goal{
		{Name: "hit_cpu_vs_stock", Max: 0.9, What: "CPU of weir per 1 KiB hit ÷ stock grpc-go server with a constant"},
		{Name: "pass_cpu_vs_close", Max: 1.1, What: "CPU of weir per pass-through ÷ server that closes with OK at once"},
		{Name: "hit_total_vs_raw_floor", Max: 1.1, What: "CPU of Envoy + weir per hit ÷ Envoy + raw-codec constant server"},
		{Name: "origin_requests_250_x1", Max: 1, Exact: true, What: "origin requests, 250 clients, cold key, 1 process"},
		{Name: "origin_requests_250_x3", Max: 1, Exact: true, What: "origin requests, 250 clients, cold key, 3 processes"},
		{Name: "origin_requests_5000_x1", Max: 1, Exact: true, What: "origin requests, 5,000 clients, cold key, 1 process"},
		{Name: "origin_requests_5000_x3", Max: 1, Exact: true, What: "origin requests, 5,000 clients, cold key, 3 processes"},
		{Name: "follower_ttfb_same_p99_ms", Max: 5, What: "same process: a follower's first byte after the leader's, p99"},
		{Name: "follower_ttfb_other_p99_ms", Max: 25, What: "other process: a follower's first byte after the commit, p99"},
		{Name: "held_bytes_ratio_1m_1k", Max: 1.5, What: "bytes held ÷ payload, 1 M × 1 KiB"},
		{Name: "held_bytes_ratio_10k_1m", Max: 1.1, What: "bytes held ÷ payload, 10 k × 1 MiB"},
		{Name: "lookup_10k_vs_10", Max: 1.2, What: "policy look-up at 10,000 routes ÷ at 10"},
		{Name: "feed_change_p99_ms", Max: 250, What: "one policy of 10,000 routes changed: every replica serves by it, p99"},
	}
}

// Judged returns r with what the goal of its name says.
func Judged(r Row) Row {
	r.OK = true
	i := slices.IndexFunc(Goals(), func(g Goal) bool { return g.Name == r.Name })
	if i < 0 {
		return r
	}
	g := Goals()[i]
	got := r.Value
	if r.Baseline != 0 {
		got = r.Ratio
	}
	r.Goal, r.What = g.Max, g.What
	r.OK = got <= g.Max && (!g.Exact || got == g.Max)
	return r
}

package bench

import (
	"slices"
	"time"

	"github.com/weirproxy/weir/e2e/harness"
)

// cost is the CPU time of one request.
type cost struct{ envoy, server time.Duration }

func (c cost) total() time.Duration { return c.envoy + c.server }

// subject is what a load is sent to.
type subject struct {
	name          string
	load          load
	envoy, server []int // processes; either may be none
}

// measurement is what the rounds brought, one cost a round, of each subject.
type measurement struct {
	names  []string
	rounds map[string][]cost
}

// measure sends each subject's load in turn, rounds times, after once to warm up. Every other round goes backwards, so
// that none always runs after the same one.
func measure(tb harness.TB, rounds int, subjects ...subject) measurement {
	tb.Helper()
	m := measurement{rounds: map[string][]cost{}}
	for _, s := range subjects {
		m.names = append(m.names, s.name)
		s.once(tb)
	}
	order := slices.Clone(subjects)
	for range rounds {
		for _, s := range order {
			m.rounds[s.name] = append(m.rounds[s.name], s.once(tb))
		}
		slices.Reverse(order)
	}
	return m
}

func (s subject) once(tb harness.TB) cost {
	tb.Helper()
	envoy, server := cpuTimes(tb, s.envoy), cpuTimes(tb, s.server)
	s.load.run(tb)
	n := time.Duration(s.load.requests)
	return cost{since(envoy, cpuTimes(tb, s.envoy)) / n, since(server, cpuTimes(tb, s.server)) / n}
}

// median returns the median cost of a subject.
func (m measurement) median(name string) cost {
	return cost{
		envoy:  m.medianOf(name, func(c cost) time.Duration { return c.envoy }),
		server: m.medianOf(name, func(c cost) time.Duration { return c.server }),
	}
}

func (m measurement) medianOf(name string, part func(cost) time.Duration) time.Duration {
	all := make([]time.Duration, 0, len(m.rounds[name]))
	for _, c := range m.rounds[name] {
		all = append(all, part(c))
	}
	return median(all)
}

// row compares a part of the cost of weir with that of another subject: the ratio is the median of the rounds' ratios.
func (m measurement) row(name, baseline string, part func(cost) time.Duration) Row {
	ratios := make([]float64, 0, len(m.rounds[laneWeir]))
	for i, c := range m.rounds[laneWeir] {
		if b := part(m.rounds[baseline][i]); b > 0 {
			ratios = append(ratios, float64(part(c))/float64(b))
		}
	}
	return Judged(Row{
		Name: name, Unit: "µs", Value: micros(m.medianOf(laneWeir, part)), Baseline: micros(m.medianOf(baseline, part)),
		Ratio: median(ratios),
	})
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// median returns the middle of the values, 0 of none.
func median[T int | float64 | time.Duration](values []T) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirproxy/weir/extproc/fleet"
	"github.com/weirproxy/weir/extproc/store/redis"
)

// FleetStats is what a process in a fleet has to do with the others at one moment.
type FleetStats struct {
	Fleet    fleet.Stats
	CaughtUp bool
	Guard    redis.GuardStats
	Shared   redis.Stats
	Errors   [numRedisErrors]uint64 // indexed by RedisErrorKind
}

// ObserveFleet registers the metrics of a process in a fleet; read as in [Sources].
func ObserveFleet(reg prometheus.Registerer, read func() FleetStats) {
	reg.MustRegister(&fleetCollector{read: read, descs: fleetDescs()})
}

type fleetCollector struct {
	read  func() FleetStats
	descs map[string]*prometheus.Desc
}

// fleetState is a state as it stands in a label.
func fleetState(s fleet.State) string { return strings.ReplaceAll(s.String(), "-", "_") }

// claimStates and waitStates are what can become of a claim and of a wait.
func claimStates() []fleet.State {
	return []fleet.State{fleet.Granted, fleet.Found, fleet.Held, fleet.VaryChanged, fleet.Apart, fleet.Unavailable}
}

func waitStates() []fleet.State {
	return []fleet.State{fleet.Found, fleet.VaryChanged, fleet.Apart, fleet.Failed, fleet.Free, fleet.Held,
		fleet.Unavailable}
}

// Claims returns the claims by the value of the label state.
func (s *FleetStats) Claims() map[string]uint64 { return byState(claimStates(), s.Fleet.Claims[:]) }

// Waits returns the waits by the value of the label state.
func (s *FleetStats) Waits() map[string]uint64 { return byState(waitStates(), s.Fleet.Waits[:]) }

func byState(states []fleet.State, counts []uint64) map[string]uint64 {
	m := make(map[string]uint64, len(states))
	for _, state := range states {
		m[fleetState(state)] = counts[state]
	}
	return m
}

func claimValues() []value {
	return []value{
		{"granted", "This process fetches for the fleet."},
		{"found", "Another process has stored the answer."},
		{"held", "Another process fetches; this one waits for it."},
		{"vary_changed", "The resource varies by other fields than this process knew."},
		{"apart", "The last answer could not be shared: everybody fetches."},
		{"unavailable", "Redis did not answer in time: this process goes on by itself."},
	}
}

func waitValues() []value {
	return []value{
		{"found", "The answer was stored."},
		{"vary_changed", "The answer came, and varies by fields that select another."},
		{"apart", "The answer could not be shared."},
		{"failed", "The fetch failed."},
		{"free", "The process that fetched gave up, or died."},
		{"held", "Given up: nobody here wants the answer any more."},
		{"unavailable", "Redis did not answer in time: this process goes on by itself."},
	}
}

func commitValues() []value {
	return []value{
		{"stored", "Stored for all."},
		{"fenced", "Not stored: another process has fetched or stored since."},
		{"outlived", "Not stored: what is there has seen a later invalidation."},
		{"too_large", "Not stored: larger than what replicas share."},
	}
}

func refusalValues() []value {
	return []value{
		{"mac", "Made with a key that is not in `--secret-file`, for another place, or altered."},
		{"format", "Of a release that is too new or too old."},
		{"malformed", "Not to be understood."},
		{"incomplete", "A part of the body is not there."},
		{"too_large", "Larger than a process reads."},
	}
}

func readValues() []value {
	return []value{
		{"hit", "An answer was there."},
		{"miss", "None was there, or none to be believed."},
	}
}

func wakeValues() []value {
	return []value{
		{"message", "The process that fetched said so."},
		{"look", "No message came in time; it was looked for."},
	}
}

func fleetDescs() map[string]*prometheus.Desc {
	descs := map[string]*prometheus.Desc{}
	add := func(name, help string, labels ...string) {
		descs[name] = prometheus.NewDesc(name, help, labels, nil)
	}
	add("weir_fleet_claims_total", "Fetches claimed in the fleet, by what became of the claim.", "state")
	add("weir_fleet_waits_total", "Waits for the fetch of another process, by how they ended.", "state")
	add("weir_fleet_waiting", "Fetches of other processes that this one waits for at this moment.")
	add("weir_fleet_wakes_total", "Times that a wait was looked after, by why.", "by")
	add("weir_fleet_leases", "Leases that this process holds at this moment: fetches that it makes for the fleet.")
	add("weir_fleet_lease_renewals_total", "Renewals of leases whose fetch made progress.")
	add("weir_fleet_leases_lost_total", "Leases that ended before their fetch did.")
	add("weir_fleet_in_touch", "1 while Redis answers and this process knows what the fleet knows, else 0.")
	add("weir_fleet_caught_up",
		"1 while this process may judge what was stored before, else 0: it then serves nothing from the cache.")
	add("weir_fleet_silent_seconds", "Time since Redis answered last.")
	add("weir_fleet_losses_total", "Times that Redis went away.")
	add("weir_fleet_histories_total",
		"Times that Redis came back with another history (failover, restart, flush); older answers are stale then.")
	add("weir_fleet_invalidation_position", "Position up to which this process has applied all invalidations.")
	add("weir_fleet_invalidations_queued_total", "Invalidations that Redis did not take at once.")
	add("weir_fleet_invalidations_pending", "Of these, those that the fleet has yet to be told.")
	add("weir_redis_nodes", "Nodes of Redis that were met.")
	add("weir_redis_nodes_open", "Nodes that are left alone at this moment (circuit open).")
	add("weir_redis_circuit_opened_total", "Times that a node was left alone, since it failed or was slow.")
	add("weir_redis_commands_refused_total", "Commands that were not sent, since the circuit was open.")
	add("weir_redis_slow_commands_total", "Commands that took longer than a node may.")
	add("weir_redis_errors_total", "Commands to Redis that went wrong, by what was wrong.", "kind")
	add("weir_redis_reads_total", "Reads of shared answers.", "result")
	add("weir_redis_commits_total", "Answers offered to the shared store, by what became of them.", "result")
	add("weir_redis_refused_total", "Answers found in Redis that were not believed; each counts as a miss.", "reason")
	return descs
}

// Describe implements [prometheus.Collector].
func (c *fleetCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *fleetCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.read()
	gauge := func(name string, v float64) {
		ch <- prometheus.MustNewConstMetric(c.descs[name], prometheus.GaugeValue, v)
	}
	counter := func(name string, v uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(c.descs[name], prometheus.CounterValue, float64(v), labels...)
	}
	f := &s.Fleet
	for state, n := range s.Claims() {
		counter("weir_fleet_claims_total", n, state)
	}
	for state, n := range s.Waits() {
		counter("weir_fleet_waits_total", n, state)
	}
	gauge("weir_fleet_waiting", float64(f.Waiting))
	counter("weir_fleet_wakes_total", f.Wakes, "message")
	counter("weir_fleet_wakes_total", f.Looks, "look")
	gauge("weir_fleet_leases", float64(f.Held))
	counter("weir_fleet_lease_renewals_total", f.Renewals)
	counter("weir_fleet_leases_lost_total", f.Lost)
	gauge("weir_fleet_in_touch", truth(f.InTouch))
	gauge("weir_fleet_caught_up", truth(s.CaughtUp))
	gauge("weir_fleet_silent_seconds", f.SilentFor.Seconds())
	counter("weir_fleet_losses_total", f.Losses)
	counter("weir_fleet_histories_total", f.Histories)
	gauge("weir_fleet_invalidation_position", float64(f.Position))
	counter("weir_fleet_invalidations_queued_total", f.Queued)
	gauge("weir_fleet_invalidations_pending", float64(f.Pending))
	collectRedis(&s, gauge, counter)
}

func collectRedis(s *FleetStats, gauge func(string, float64), counter func(string, uint64, ...string)) {
	gauge("weir_redis_nodes", float64(s.Guard.Nodes))
	gauge("weir_redis_nodes_open", float64(s.Guard.Open))
	counter("weir_redis_circuit_opened_total", s.Guard.Opened)
	counter("weir_redis_commands_refused_total", s.Guard.Refused)
	counter("weir_redis_slow_commands_total", s.Guard.Slow)
	for kind, n := range s.Errors {
		counter("weir_redis_errors_total", n, RedisErrorKind(kind).String())
	}
	e := &s.Shared
	counter("weir_redis_reads_total", e.Hits, "hit")
	counter("weir_redis_reads_total", e.Misses, "miss")
	for result, n := range map[string]uint64{
		"stored": e.Commits, "fenced": e.Fenced, "outlived": e.Outlived, "too_large": e.TooLarge,
	} {
		counter("weir_redis_commits_total", n, result)
	}
	for reason, n := range RefusalsByReason(&e.Refused) {
		counter("weir_redis_refused_total", n, reason)
	}
}

// RefusalsByReason returns the counts by the value of the label reason.
func RefusalsByReason(r *redis.Refusals) map[string]uint64 {
	return map[string]uint64{
		"mac": r.MAC, "format": r.Format, "malformed": r.Malformed, "incomplete": r.Incomplete, "too_large": r.TooLarge,
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

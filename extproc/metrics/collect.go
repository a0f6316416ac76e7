package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// StoreStats is what the memory store holds at one moment.
type StoreStats struct {
	Bytes    int64 // headers, bodies, keys and overhead
	Limit    int64 // bytes the store may hold
	Entries  int64
	Evicted  [numEvictReasons]uint64 // indexed by EvictReason
	Rejected uint64                  // answers that admission or the limit turned away
}

// FlightStats is what coalescing holds at one moment.
type FlightStats struct {
	Flights, Marks, Refills int
	// Running, Queued and Refused are the fetches of all policies together, Ramps the
	// policies whose fetches are ramped.
	Running, Queued, Ramps int
	Refused                uint64
}

// PolicyStats is what the policies in use are.
type PolicyStats struct {
	Policies   int
	Generation uint64    // sets taken into use so far
	Failures   uint64    // contents of the directory that were refused so far
	Errors     int       // faults of what it holds now
	LoadedAt   time.Time // when the set in use was taken into use
}

// Sources are read once for each scrape. Each must be safe for concurrent use
// and quick; none may be nil.
type Sources struct {
	Store    func() StoreStats
	Flights  func() FlightStats
	Policies func() PolicyStats
}

// Observe registers the metrics that are read from the parts themselves.
func Observe(reg prometheus.Registerer, s Sources) { reg.MustRegister(newCollector(s)) }

type collector struct {
	sources Sources

	storeBytes, storeLimit, storeEntries, evictions, rejected *prometheus.Desc
	flights, marks, refills                                   *prometheus.Desc
	running, queued, refused, ramps                           *prometheus.Desc
	policies, policyErrors, policyLoaded, policyReloads       *prometheus.Desc
}

func newCollector(s Sources) *collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &collector{
		sources:    s,
		storeBytes: desc("weir_store_bytes", "Bytes held by the memory store: headers, bodies, keys, overhead."),
		storeLimit: desc("weir_store_limit_bytes", "Bytes the memory store may hold (`--memory-limit`)."),
		storeEntries: desc("weir_store_entries",
			"Entries in the memory store; each variant counts as one."),
		evictions: desc("weir_store_evictions_total", "Entries that left the memory store, by reason.", "reason"),
		rejected:  desc("weir_store_rejected_total", "Answers the memory store did not admit."),
		flights:   desc("weir_flights", "Fetches under way that other requests may follow."),
		marks: desc("weir_uncoalesced_keys",
			"Keys whose requests are not coalesced for the moment, since their last answer could not be shared."),
		refills: desc("weir_refills_running", "Detached fetches that run at this moment."),
		running: desc("weir_origin_running", "Fetches under `originLimits` that are at the origin at this moment."),
		queued: desc("weir_origin_queue",
			"Fetches that wait for their turn at the origin (`originLimits`, `--ramp-rate`); "+
				"the admin API says of which policies."),
		refused:  desc("weir_origin_refused_total", "Fetches for which `originLimits` had no room left in the queue."),
		ramps:    desc("weir_origin_ramps", "Policies whose fetches are ramped after a cold start."),
		policies: desc("weir_policies", "Policies in use."),
		policyErrors: desc("weir_policy_errors",
			"Faults in the policy files as they are now; while there are any, the last good policies stay."),
		policyLoaded: desc("weir_policy_loaded_timestamp_seconds",
			"When the policies in use were loaded, as Unix time."),
		policyReloads: desc("weir_policy_reload_total",
			"Contents of the policy directory, by whether they were usable.", "result"),
	}
}

// Describe implements [prometheus.Collector].
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.storeBytes, c.storeLimit, c.storeEntries, c.evictions, c.rejected,
		c.flights, c.marks, c.refills, c.running, c.queued, c.refused, c.ramps,
		c.policies, c.policyErrors, c.policyLoaded, c.policyReloads} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v)
	}
	counter := func(d *prometheus.Desc, v uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	s := c.sources.Store()
	gauge(c.storeBytes, float64(s.Bytes))
	gauge(c.storeLimit, float64(s.Limit))
	gauge(c.storeEntries, float64(s.Entries))
	counter(c.rejected, s.Rejected)
	for r, n := range s.Evicted {
		counter(c.evictions, n, EvictReason(r).String())
	}
	f := c.sources.Flights()
	gauge(c.flights, float64(f.Flights))
	gauge(c.marks, float64(f.Marks))
	gauge(c.refills, float64(f.Refills))
	gauge(c.running, float64(f.Running))
	gauge(c.queued, float64(f.Queued))
	counter(c.refused, f.Refused)
	gauge(c.ramps, float64(f.Ramps))
	p := c.sources.Policies()
	gauge(c.policies, float64(p.Policies))
	gauge(c.policyErrors, float64(p.Errors))
	gauge(c.policyLoaded, float64(p.LoadedAt.UnixMilli())/1e3)
	counter(c.policyReloads, p.Generation, reloadSuccess.String())
	counter(c.policyReloads, p.Failures, reloadFailure.String())
}

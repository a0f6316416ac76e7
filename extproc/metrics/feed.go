package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// FeedStats is what a process has from its controller at one moment.
type FeedStats struct {
	Connected, Synced              bool
	Resources, Rejected, Reporting int
	Updates, Failures              uint64
	UpdatedAt                      time.Time
}

// ObserveFeed registers the metrics of a process under a controller; read as in
// [Sources].
func ObserveFeed(reg prometheus.Registerer, read func() FeedStats) {
	gauge := func(name, help string, value func(s *FeedStats) float64) {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			s := read()
			return value(&s)
		}))
	}
	counter := func(name, help string, value func(s *FeedStats) uint64) {
		reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 {
			s := read()
			return float64(value(&s))
		}))
	}
	gauge("weir_feed_connected", "1 while the controller is subscribed to; without, the last policies stay.",
		func(s *FeedStats) float64 { return oneIf(s.Connected) })
	gauge("weir_feed_synced", "1 once the controller said all that there was; before, requests pass by.",
		func(s *FeedStats) float64 { return oneIf(s.Synced) })
	gauge("weir_feed_resources", "Policies, routes and entrances of the controller that are in force as they came.",
		func(s *FeedStats) float64 { return float64(s.Resources) })
	gauge("weir_feed_rejected", "Those that were refused; what was in force before under their names stays.",
		func(s *FeedStats) float64 { return float64(s.Rejected) })
	gauge("weir_feed_reporting", "Replicas of the controller that hear what this process runs.",
		func(s *FeedStats) float64 { return float64(s.Reporting) })
	gauge("weir_feed_updated_timestamp_seconds", "When the policies were last changed by the controller, as Unix time.",
		func(s *FeedStats) float64 { return max(float64(s.UpdatedAt.UnixMilli())/1e3, 0) })
	counter("weir_feed_updates_total", "Changes of the controller that were taken into use.",
		func(s *FeedStats) uint64 { return s.Updates })
	counter("weir_feed_failures_total", "Subscriptions to the controller that broke or could not be made.",
		func(s *FeedStats) uint64 { return s.Failures })
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

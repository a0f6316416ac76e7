package controller

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirproxy/weir/controller/feed"
	"github.com/weirproxy/weir/controller/translate"
)

// metrics count what the controller does; docs/reference/controller-metrics.md lists them.
type metrics struct {
	translateSeconds prometheus.Histogram
	translateErrors  prometheus.Counter
	changes          prometheus.Counter
	policies         prometheus.Gauge
	routes           prometheus.Gauge
	writes           *prometheus.CounterVec
}

// The kinds of writes.
const (
	writePolicy       = "cachepolicy"
	writeAffected     = "affected"
	writeInvalidation = "cacheinvalidation"
)

func newMetrics(r prometheus.Registerer, server *feed.Server) *metrics {
	m := &metrics{
		translateSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "weir_controller_translate_seconds",
			Help:    "How long it took from a change to what is served.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
		}),
		translateErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_controller_translate_errors_total", Help: "Translations that failed; what was served stayed.",
		}),
		changes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_controller_feed_changes_total", Help: "Resources of the feed that changed.",
		}),
		policies: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "weir_controller_policies", Help: "CachePolicies that are served.",
		}),
		routes: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "weir_controller_routes", Help: "Routes on which CachePolicies are in force.",
		}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_controller_status_writes_total", Help: "Writes of status, by what it is the status of.",
		}, []string{"kind"}),
	}
	r.MustRegister(m.translateSeconds, m.translateErrors, m.changes, m.policies, m.routes, m.writes,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "weir_controller_replicas", Help: "Replicas of the data plane that are connected to this one.",
		}, func() float64 { return float64(len(server.Replicas())) }))
	return m
}

func (m *metrics) translated(took time.Duration, out *translate.Output, changed int) {
	m.translateSeconds.Observe(took.Seconds())
	m.changes.Add(float64(changed))
	m.policies.Set(float64(len(out.Policies)))
	m.routes.Set(float64(len(out.Routes)))
}

package metrics

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Build says which weir this is.
type Build struct {
	Version, Revision, GoVersion string
}

// Metrics counts what the data plane does. All methods are safe for concurrent
// use; those on the way of a hit neither allocate nor lock.
type Metrics struct {
	requests []prometheus.Counter
	fills    []prometheus.Counter
	refills  []prometheus.Counter

	streams, waiting atomic.Int64
	waitSeconds      prometheus.Histogram
	fetchSeconds     prometheus.Histogram

	tlsReloads []prometheus.Counter

	panics, modeUnusable, holdCapped prometheus.Counter
}

// New registers the metrics with reg and resolves their children. It panics if
// reg already holds one of them.
func New(reg prometheus.Registerer, b Build) *Metrics {
	f := factory{reg}
	m := &Metrics{
		requests: f.counters("weir_requests_total", "Client requests, each counted once, by how they ended.",
			"outcome", outcomeValues()),
		fills: f.counters("weir_fills_total", "Fetches followed in the hope of storing them, by how they ended.",
			"result", fillValues()),
		refills: f.counters("weir_refills_total", "Detached fetches (refresh, take-over, warm-up), by how they ended.",
			"result", refillValues()),
		waitSeconds: f.histogram("weir_wait_seconds", "Time that held requests waited."),
		fetchSeconds: f.histogram("weir_fetch_seconds",
			"Time from asking the origin to its response headers, for fetches weir followed."),
		tlsReloads: f.counters("weir_tls_reload_total", "Reads of certificate, key and CA files, by how they ended.",
			"result", reloadValues()),
		panics: f.counter("weir_grpc_panics_total", "Panics recovered in ext_proc streams; each is a bug to report."),
		modeUnusable: f.counter("weir_mode_unusable_total",
			"Streams whose processing mode weir cannot work with; it passed them by."),
		holdCapped: f.counter("weir_hold_capped_total",
			"Holds that ended early because Envoy's message timeout is shorter than the policy's wait."),
	}
	f.gaugeFunc("weir_streams", "Open ext_proc streams.", m.streams.Load)
	f.gaugeFunc("weir_waiting", "Requests held at this moment.", m.waiting.Load)
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_build_info",
		Help: "Always 1; the labels say which build runs.",
		ConstLabels: prometheus.Labels{
			"version": b.Version, "revision": b.Revision, "goversion": b.GoVersion,
		},
	}, func() float64 { return 1 }))
	return m
}

// Request counts one client request under its outcome.
func (m *Metrics) Request(o Outcome) { m.requests[o].Inc() }

// StreamStart counts an ext_proc stream that was opened.
func (m *Metrics) StreamStart() { m.streams.Add(1) }

// StreamEnd takes back what StreamStart counted.
func (m *Metrics) StreamEnd() { m.streams.Add(-1) }

// WaitStart counts a request that is held from now on. Each call is followed by
// one of WaitEnd.
func (m *Metrics) WaitStart() { m.waiting.Add(1) }

// WaitEnd counts the end of a hold that lasted d.
func (m *Metrics) WaitEnd(d time.Duration) {
	m.waiting.Add(-1)
	m.waitSeconds.Observe(d.Seconds())
}

// Waiting returns the number of requests held at this moment.
func (m *Metrics) Waiting() int64 { return m.waiting.Load() }

// Streams returns the number of open ext_proc streams.
func (m *Metrics) Streams() int64 { return m.streams.Load() }

// HoldCapped counts a hold that Envoy's message timeout cut shorter than the
// policy wanted.
func (m *Metrics) HoldCapped() { m.holdCapped.Inc() }

// Fill counts one followed fetch by its result.
func (m *Metrics) Fill(r FillResult) { m.fills[r].Inc() }

// Fetched records the time d from asking the origin to its response headers.
func (m *Metrics) Fetched(d time.Duration) { m.fetchSeconds.Observe(d.Seconds()) }

// Refill counts one detached fetch by its result.
func (m *Metrics) Refill(r RefillResult) { m.refills[r].Inc() }

// TLSReload counts one read of changed certificate, key or CA files: nil err
// means they are in use.
func (m *Metrics) TLSReload(err error) {
	if err != nil {
		m.tlsReloads[reloadFailure].Inc()
		return
	}
	m.tlsReloads[reloadSuccess].Inc()
}

// Panic counts a panic that was recovered in a stream.
func (m *Metrics) Panic() { m.panics.Inc() }

// ModeUnusable counts a stream whose processing mode weir cannot work with.
func (m *Metrics) ModeUnusable() { m.modeUnusable.Inc() }

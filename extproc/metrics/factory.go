package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
)

// waitBuckets span a hit's microseconds to a hold at Envoy's usual limit of 60 s.
func waitBuckets() []float64 {
	return []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
}

// factory makes metrics and registers them with reg.
type factory struct{ reg prometheus.Registerer }

// counters returns one resolved counter per value of the label, in order.
func (f factory) counters(name, help, label string, values []value) []prometheus.Counter {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	f.reg.MustRegister(vec)
	children := make([]prometheus.Counter, len(values))
	for i, v := range values {
		children[i] = vec.WithLabelValues(v.name)
	}
	return children
}

func (f factory) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	f.reg.MustRegister(c)
	return c
}

func (f factory) gaugeFunc(name, help string, read func() int64) {
	f.reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help},
		func() float64 { return float64(read()) }))
}

// histogram makes a histogram of seconds, classic and native.
func (f factory) histogram(name, help string) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: waitBuckets(),
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160,
	})
	f.reg.MustRegister(h)
	return h
}

// Package metrics holds every Prometheus metric of the data plane. Metric names
// start with weir_; label values come from the closed sets in this package,
// never from a path, a host, a key or a policy's name.
//
// The children of each vector are resolved when [New] runs, so that counting on
// the hit path is one atomic addition. docs/reference/metrics.md is generated
// from this package (go generate).
package metrics

//go:generate go test . -run TestReference -update

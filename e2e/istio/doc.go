// Package istio starts a real Istio for tests, in its light form: istiod beside an API server (package kube), and a
// plain Envoy for each gateway, all as processes on loopback. There is no node, no container and no agent; xDS is
// plain text and proxies speak no mTLS. Services have their endpoints by WorkloadEntry, which, other than an
// EndpointSlice, takes a loopback address.
//
// Plain Envoy lacks Istio's own filters, so istiod is told not to send them: what tests here cannot show is the order
// of filters relative to those. See docs/design/0013-istio.md.
package istio

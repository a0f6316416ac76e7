// Package istio installs a real Istio in the cluster of package cluster: istiod, its sidecar injector, and plain Envoy
// as the proxy of gateways and sidecars. .ci/tools istio-cluster installs what it needs on top of .ci/tools cluster;
// make e2e-istio runs its tests.
//
// Plain Envoy lacks Istio's own filters, which istiod is told not to send: what the tests cannot show is the order of
// filters relative to those, nor what waypoints and ztunnel do.
package istio

// Package kube starts a real Kubernetes API server for tests: kube-apiserver and etcd of the versions that tools.env
// pins, on loopback, with the CRDs of weir, of the Gateway API (standard channel) and of Envoy Gateway. No controller
// of Kubernetes runs: namespaces are not emptied, Deployments make no Pods, owner references delete nothing.
//
// A package with many tests starts one for all of them:
//
//	var server *kube.Server
//
//	func TestMain(m *testing.M) { os.Exit(kube.Main(m, &server)) }
//
// and keeps its tests apart by namespaces (Server.Namespace).
package kube

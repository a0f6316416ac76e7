// Package cluster starts a real Kubernetes cluster of one node for tests: API server, controller-manager, scheduler,
// kubelet, kube-proxy, containerd and CoreDNS of the versions that tools.env pins, with real pods. .ci/tools cluster
// installs what it needs; make e2e-cluster runs its tests. It needs root, and Linux.
//
// The whole cluster, and the test process with it, lives in namespaces of its own (PID, mount, network, IPC): nothing
// of it can be reached from outside, none of its traffic can leave the machine, and the kernel ends all of it when the
// test process ends, however that happens. What the cluster writes is in memory. Of a run that was killed only empty
// cgroups and a folder of logs remain; the next run removes them.
//
// A package with tests on a cluster starts one for all of them:
//
//	var kubernetes *cluster.Cluster
//
//	func TestMain(m *testing.M) { os.Exit(cluster.Main(m, &kubernetes)) }
//
// Only one cluster runs at a time on a machine; another waits.
package cluster

package cluster

import "path/filepath"

// programs are the paths of what the cluster runs.
type programs struct {
	etcd, apiServer, controllerManager, scheduler, kubelet, kubeProxy, pause, coreDNS, kubectl, helm string
}

// identity returns the path of a file that writeIdentities wrote.
func identity(file string) string { return filepath.Join(stateDir, "identities", file) }

// startAPIServer starts etcd and the API server.
func (d daemons) startAPIServer(p programs) error {
	const client, peer = "http://127.0.0.1:2379", "http://127.0.0.1:2380"
	err := d.start(p.etcd, "--data-dir="+filepath.Join(stateDir, "etcd"), "--unsafe-no-fsync",
		"--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer)
	if err != nil {
		return err
	}
	return d.start(p.apiServer, "--etcd-servers="+client,
		"--bind-address=0.0.0.0", "--secure-port=6443", "--advertise-address="+NodeIP,
		"--tls-cert-file="+identity("apiserver.crt"), "--tls-private-key-file="+identity("apiserver.key"),
		"--client-ca-file="+identity("ca.crt"), "--token-auth-file="+identity("tokens.csv"),
		"--service-account-key-file="+identity("serviceaccounts.key"),
		"--service-account-signing-key-file="+identity("serviceaccounts.key"),
		"--service-account-issuer=https://kubernetes.default.svc."+clusterDomain,
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--service-cluster-ip-range="+serviceCIDR, "--kubelet-preferred-address-types=InternalIP",
		"--allow-privileged=true")
}

// startControllers starts what acts on the API server's objects, which must be ready.
func (d daemons) startControllers(p programs) error {
	err := d.start(p.controllerManager, append(as("kube-controller-manager"),
		"--use-service-account-credentials", "--root-ca-file="+identity("ca.crt"),
		"--service-account-private-key-file="+identity("serviceaccounts.key"),
		"--cluster-signing-cert-file="+identity("ca.crt"), "--cluster-signing-key-file="+identity("ca.key"))...)
	if err != nil {
		return err
	}
	return d.start(p.scheduler, as("kube-scheduler")...)
}

// as returns the flags that the controller-manager and the scheduler share.
func as(name string) []string {
	kubeconfig := identity(name + ".kubeconfig")
	return []string{
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig, "--bind-address=127.0.0.1", "--leader-elect=false",
	}
}

// startRuntime starts containerd, and returns when it answers.
func (d daemons) startRuntime() error {
	config, err := writeConfig("containerd.toml", "containerd.toml")
	if err != nil {
		return err
	}
	if _, err := writeConfig("pods.conflist", "cni/pods.conflist"); err != nil {
		return err
	}
	if err := d.start("containerd", "--config="+config); err != nil {
		return err
	}
	return d.await("containerd answers", func() error { return run(ctrCommand + " version") })
}

// ctrCommand is the client of this cluster's containerd, as the kubelet sees it.
const ctrCommand = "ctr --address " + stateDir + "/containerd.sock --namespace k8s.io"

// startNode starts the kubelet and kube-proxy.
func (d daemons) startNode(p programs) error {
	config, err := writeConfig("kubelet.yaml", "kubelet.yaml")
	if err != nil {
		return err
	}
	err = d.start(p.kubelet, "--config="+config, "--kubeconfig="+identity("kubelet.kubeconfig"),
		"--root-dir="+filepath.Join(stateDir, "kubelet"), "--cert-dir="+filepath.Join(stateDir, "kubelet-certificates"),
		"--hostname-override="+nodeName, "--node-ip="+NodeIP)
	if err != nil {
		return err
	}
	if config, err = writeConfig("kube-proxy.yaml", "kube-proxy.yaml"); err != nil {
		return err
	}
	return d.start(p.kubeProxy, "--config="+config)
}

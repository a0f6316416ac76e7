package harness

// EtcdBinary returns the path of the etcd that tools.env pins, and fails when it is not installed.
func EtcdBinary(tb TB) string {
	tb.Helper()
	return tool(tb, "etcd", "ETCD_VERSION", "bin/etcd")
}

// KubeAPIServerBinary returns the path of the kube-apiserver that tools.env pins, and fails when it is not installed.
func KubeAPIServerBinary(tb TB) string {
	tb.Helper()
	return tool(tb, "kube-apiserver", "KUBERNETES_VERSION", "bin/kube-apiserver")
}

// KubectlBinary returns the path of the kubectl that tools.env pins, and fails when it is not installed.
func KubectlBinary(tb TB) string {
	tb.Helper()
	return tool(tb, "kube-cli", "KUBE_CLI_WHEEL_VERSION", "bin/kubectl")
}

// HelmBinary returns the path of the helm that tools.env pins, and fails when it is not installed.
func HelmBinary(tb TB) string {
	tb.Helper()
	return tool(tb, "kube-cli", "KUBE_CLI_WHEEL_VERSION", "bin/helm")
}

// EnvoyGatewayCRDs returns the folder of Envoy Gateway's CRDs, in the version tools.env pins.
func EnvoyGatewayCRDs(tb TB) string {
	tb.Helper()
	return tool(tb, "envoy-gateway-crds", "ENVOY_GATEWAY_VERSION", "")
}

// KubeNodeBinary returns the path of a program of a node or its control plane, in the version tools.env pins. .ci/tools
// cluster installs it.
func KubeNodeBinary(tb TB, program string) string {
	tb.Helper()
	return tool(tb, "kube-node", "KUBERNETES_VERSION", "bin/"+program)
}

// CoreDNSBinary returns the path of the CoreDNS that tools.env pins. .ci/tools cluster installs it.
func CoreDNSBinary(tb TB) string {
	tb.Helper()
	return tool(tb, "coredns", "COREDNS_VERSION", "bin/coredns")
}

// EnvoyGatewayDir returns the folder of the Envoy Gateway that tools.env pins: bin/envoy-gateway, and chart. .ci/tools
// cluster installs it.
func EnvoyGatewayDir(tb TB) string {
	tb.Helper()
	return tool(tb, "envoy-gateway", "ENVOY_GATEWAY_VERSION", "")
}

// CertManagerCRDs returns the folder of those CRDs of cert-manager that charts/weir makes objects of.
func CertManagerCRDs(tb TB) string {
	tb.Helper()
	return tool(tb, "cert-manager-crds", "CERT_MANAGER_VERSION", "")
}

// PrometheusOperatorCRDs returns the folder of those CRDs of the Prometheus operator that weir has objects of.
func PrometheusOperatorCRDs(tb TB) string {
	tb.Helper()
	return tool(tb, "prometheus-operator-crds", "PROMETHEUS_OPERATOR_VERSION", "")
}

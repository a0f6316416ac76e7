package harness

// IstiodBinary returns the path of the istiod that tools.env pins, and fails when it is not installed.
func IstiodBinary(tb TB) string {
	tb.Helper()
	return tool(tb, "istiod", "ISTIO_VERSION", "bin/pilot-discovery")
}

// IstioCharts returns the folder of Istio's Helm charts (base, istio-discovery), in the version tools.env pins.
func IstioCharts(tb TB) string {
	tb.Helper()
	return tool(tb, "istiod", "ISTIO_VERSION", "charts")
}

// IstioProxyFile returns the path of a file of Istio's proxy and of istioctl, as tools.env pins them.
func IstioProxyFile(tb TB, file string) string {
	tb.Helper()
	return tool(tb, "istio-proxy", "ISTIO_VERSION", file)
}

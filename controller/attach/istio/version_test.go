package istio

import (
	"regexp"
	"testing"
)

func TestIstioMinor(t *testing.T) {
	t.Parallel()
	tests := []struct {
		image string
		minor int
		ok    bool
	}{
		{"registry.test/istio/proxyv2:1.28.1", 28, true},
		{"registry.test:5000/istio/proxyv2:1.31.0-distroless", 31, true},
		{"proxyv2:1.29", 29, true},
		{"registry.test/proxyv2:1.9@sha256:00", 9, true},
		{"registry.test/proxyv2@sha256:00", 0, false},
		{"registry.test/proxyv2:latest", 0, false},
		{"registry.test/proxyv2:2.0.0", 0, false},
		{"registry.test/our-proxy:1.28.1", 0, false},
		{"auto", 0, false},
		{"", 0, false},
	}
	for _, tc := range tests {
		if minor, ok := istioMinor(tc.image); minor != tc.minor || ok != tc.ok {
			t.Errorf("%q: %d, %t; want %d, %t", tc.image, minor, ok, tc.minor, tc.ok)
		}
	}
}

func TestNotTooOld(t *testing.T) {
	t.Parallel()
	matches := regexp.MustCompile(notTooOld).MatchString
	for version, want := range map[string]bool{
		"1.31.0": true, "1.29.0": true, "1.29": true, "1.30-alpha.0": true, "1.100.2": true, "1.31-eed52ebb66ad": true,
		"2.0.0": true, "master-20260827": true, "1": true, "10.1": true, "unknown": true,
		"1.28.9": false, "1.28-rc.1": false, "1.9.0": false, "1.0": false,
	} {
		if got := matches(version); got != want {
			t.Errorf("%q: %t, want %t", version, got, want)
		}
	}
}

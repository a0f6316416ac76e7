package istio_test

import (
	"strings"
	"testing"
)

// TestSamples: the API server takes the samples, Istio's own kinds included, and the chart the values.
func TestSamples(t *testing.T) {
	mesh.Kubectl(t, "create", "namespace", "shop")
	for _, name := range []string{"gateway", "virtualservice", "mesh"} {
		mesh.Kubectl(t, "apply", "--dry-run=server", "--validate=strict", "-f", "config/samples/istio/"+name+".yaml")
	}
	out, err := mesh.Kube.Helm(t.Context(), "template", "weir", "charts/weir", "--namespace", "weir-system",
		"--values", "config/samples/istio/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"envoyfilters", "grpc-insecure: true", "appProtocol: kubernetes.io/h2c",
		`sidecar.istio.io/inject: "true"`} {
		if !strings.Contains(out, want) {
			t.Errorf("the chart with the sample's values has no %q", want)
		}
	}
}

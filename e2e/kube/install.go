package kube

import (
	"os/exec"
	"path/filepath"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	"github.com/weirproxy/weir/e2e/harness"
)

// Scheme knows the types of Kubernetes, of CRDs, of the Gateway API (v1, v1beta1) and of weir.
func Scheme(tb harness.TB) *runtime.Scheme {
	tb.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, gatewayv1.Install, gatewayv1beta1.Install,
		v1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			tb.Fatalf("make a scheme: %v", err)
		}
	}
	return scheme
}

// CRDFolders are the folders of the CRDs that Start installs: those of weir, of the Gateway API (standard channel) and
// of Envoy Gateway.
func CRDFolders(tb harness.TB) []string {
	tb.Helper()
	root, err := harness.ModuleRoot()
	if err != nil {
		tb.Fatalf("%v", err)
	}
	list := exec.CommandContext(tb.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api")
	list.Dir = root
	out, err := list.Output()
	gatewayAPI := strings.TrimSpace(string(out))
	if err != nil || gatewayAPI == "" {
		tb.Fatalf("find the module of the Gateway API: %q, %v", gatewayAPI, err)
	}
	return []string{
		filepath.Join(root, "config", "crd"),
		filepath.Join(gatewayAPI, "config", "crd", "standard"),
		harness.EnvoyGatewayCRDs(tb),
	}
}

package istio_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	"github.com/weirproxy/weir/e2e/cluster/istio"
	"github.com/weirproxy/weir/e2e/harness"
)

// TestIstio goes from an empty cluster to caching behind every kind of Istio's proxies, with Envoy Gateway beside it
// on the same HTTPRoute, and back to one without weir. Its parts follow one another.
func TestIstio(t *testing.T) {
	kubernetes.InstallEnvoyGateway(t) // it brings the CRDs of the Gateway API
	istio.Install(t, kubernetes)
	s := newStage(t)
	installWeir(s)
	s.apply("classic.yaml", nil)
	s.apply("mesh.yaml", nil)

	gateway := s.serviceURL("gw-istio")
	classic := s.serviceURL("classic")
	envoyGateway := kubernetes.GatewayURL(t, s.namespace, "web", 80)
	s.serves(gateway+"/", "catalog.test")
	s.serves(envoyGateway+"/", "catalog.test")
	s.serves(classic+"/", "classic.test")

	t.Run("HTTPRoute", func(t *testing.T) {
		s := s.in(t)
		const target = "{group: gateway.networking.k8s.io, kind: HTTPRoute, name: catalog, sectionName: products}"
		s.policy(s.namespace, "products", target, "Require", 1) // not at the Gateway of Envoy Gateway
		s.asked(gateway+"/products/probe", "catalog.test")
		s.want(gateway+"/products/1", "catalog.test", "weir; fwd=uri-miss")
		s.want(gateway+"/products/1", "catalog.test", "weir; hit")
		s.want(gateway+"/", "catalog.test", "")
	})
	t.Run("VirtualService", func(t *testing.T) {
		s := s.in(t)
		const target = "{group: networking.istio.io, kind: VirtualService, name: catalog, sectionName: products}"
		s.policy(s.namespace, "classic", target, "Require", 1)
		s.asked(classic+"/products/probe", "classic.test")
		s.want(classic+"/products/3", "classic.test", "weir; fwd=uri-miss")
		s.want(classic+"/products/3", "classic.test", "weir; hit")
		s.want(classic+"/", "classic.test", "")
	})
	t.Run("sidecars", func(t *testing.T) {
		s := s.in(t)
		s.kubectl("-n", s.mesh, "rollout", "status", "deploy/caller", "--timeout="+waitLimit.String())
		s.kubectl("-n", s.mesh, "rollout", "status", "deploy/server", "--timeout="+waitLimit.String())
		const target = "{group: gateway.networking.k8s.io, kind: HTTPRoute, name: server}"
		s.apply("policy.yaml", map[string]any{"Namespace": s.mesh, "Name": "mesh", "Target": target,
			"ServerAuthorization": "Require"})
		s.wantCondition(s.mesh, "mesh", string(gatewayv1.PolicyConditionAccepted), metav1.ConditionFalse, 1)
		if status, _ := s.call("/page"); status != "" {
			t.Errorf("Cache-Status %q without the policy's word", status)
		}
		s.policy(s.mesh, "mesh", target, "SkipOnHit", 1)
		harness.Eventually(t, waitLimit, "the caller's sidecar asks weir", func() bool {
			status, _ := s.call("/probe")
			return status != ""
		})
		_, first := s.call("/page")
		status, second := s.call("/page")
		if !strings.HasPrefix(status, "weir; hit") || first != second {
			t.Errorf("Cache-Status %q, body %q after %q", status, second, first)
		}
	})
	t.Run("Envoy Gateway beside it", func(t *testing.T) {
		s := s.in(t)
		helm(t, "upgrade", "weir", "charts/weir", "--namespace="+weirNamespace,
			"--values=e2e/cluster/istio/testdata/beside.yaml", "--wait", "--timeout="+waitLimit.String())
		s.wantCondition(s.namespace, "products", v1alpha1.PolicyConditionProgrammed, metav1.ConditionTrue, 2)
		s.asked(gateway+"/products/probe", "catalog.test")
		s.asked(envoyGateway+"/products/probe", "catalog.test")
		// One cache for both: the key is made of the route, not of the Gateway.
		s.want(envoyGateway+"/products/2", "catalog.test", "weir; fwd=uri-miss")
		s.want(envoyGateway+"/products/2", "catalog.test", "weir; hit")
		s.want(gateway+"/products/2", "catalog.test", "weir; hit")
		s.want(gateway+"/", "catalog.test", "")
		s.want(envoyGateway+"/", "catalog.test", "")
	})
	t.Run("without the data plane", func(t *testing.T) {
		s := s.in(t)
		s.kubectl("-n", weirNamespace, "scale", "deployment/weir-extproc", "--replicas=0")
		harness.Eventually(t, waitLimit, "no replica is left", func() bool {
			return s.kubectl("-n", weirNamespace, "get", "pods", "-l", "app.kubernetes.io/component=extproc", "-o", "name") == ""
		})
		s.want(gateway+"/products/1", "catalog.test", "")
		s.want(classic+"/products/1", "classic.test", "")
		if status, _ := s.call("/page"); status != "" {
			t.Errorf("Cache-Status %q", status)
		}
		s.kubectl("-n", weirNamespace, "scale", "deployment/weir-extproc", "--replicas=2")
		s.wantCondition(s.namespace, "products", v1alpha1.PolicyConditionProgrammed, metav1.ConditionTrue, 2)
	})
	t.Run("uninstalled", func(t *testing.T) {
		s := s.in(t)
		helm(t, "uninstall", "weir", "--namespace="+weirNamespace, "--wait", "--timeout="+waitLimit.String())
		harness.Eventually(t, waitLimit, "no EnvoyFilter is left", func() bool {
			return s.kubectl("get", "envoyfilters", "-A", "-o", "name") == ""
		})
		s.want(gateway+"/products/1", "catalog.test", "")
		s.want(classic+"/products/1", "classic.test", "")
		if status, _ := s.call("/page"); status != "" {
			t.Errorf("Cache-Status %q", status)
		}
		s.serves(envoyGateway+"/products/1", "catalog.test")
	})
}

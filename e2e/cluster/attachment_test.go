package cluster_test

import (
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	"github.com/weirproxy/weir/e2e/harness"
)

// TestNoDataPlane: without a replica, and without the Service even, traffic flows uncached and the policy says that it
// is not in force.
func TestNoDataPlane(t *testing.T) {
	s := startFleet(t)
	s.applyPolicy()
	notInForce := map[string]metav1.ConditionStatus{v1alpha1.PolicyConditionProgrammed: metav1.ConditionFalse}
	s.underLoad(func() {
		scaleDataPlane(t, 0)
		s.wantConditions(notInForce)
		scaleDataPlane(t, replicas)
		s.applyPolicy()
	})
	s.underLoad(func() {
		weirKubectl(t, "delete", "service", "weir-extproc")
		s.wantConditions(notInForce)
	})
	helmWeir(t, "upgrade")
	s.applyPolicy()
	s.wantCacheStatus(harness.Do(t, s.get("/page")), "weir; ")
}

// TestOthersExtensionsStay: a CachePolicy never silences somebody else's EnvoyExtensionPolicy. Either both work, or the
// policy is not in force and names what is in the way.
func TestOthersExtensionsStay(t *testing.T) {
	for kind, name := range map[string]string{"Gateway": "web", "HTTPRoute": "catalog"} {
		t.Run(kind, func(t *testing.T) {
			s := startFleet(t)
			s.servePage("/page", "max-age=60")
			s.apply("lua.yaml", map[string]any{"Kind": kind, "Name": name})
			fromLua := func() bool { return s.header(s.get("/page"), "X-From-Lua") == "yes" }
			s.eventually("the header is there", fromLua)
			before := s.kubectl("get", "envoyextensionpolicy", "header", "--output=jsonpath={.spec}")

			s.apply("policy.yaml", nil)
			s.wantConditions(map[string]metav1.ConditionStatus{
				string(gatewayv1.PolicyConditionAccepted): metav1.ConditionTrue,
			})
			var programmed *metav1.Condition
			s.eventually("the policy says whether it is in force", func() bool {
				programmed = meta.FindStatusCondition(s.conditions(), v1alpha1.PolicyConditionProgrammed)
				return programmed != nil && programmed.Reason != v1alpha1.PolicyReasonReconciling
			})
			switch programmed.Status {
			case metav1.ConditionTrue:
				harness.Do(t, s.get("/page"))
				s.wantCacheStatus(harness.Do(t, s.get("/page")), "weir; hit")
			default:
				if !strings.Contains(programmed.Message, "header") {
					t.Errorf("Programmed says %q, which does not name the policy in the way", programmed.Message)
				}
			}
			if !fromLua() {
				t.Error("the header is gone")
			}
			if after := s.kubectl("get", "envoyextensionpolicy", "header", "--output=jsonpath={.spec}"); after != before {
				t.Errorf("somebody else's policy was changed:\n%s\nbefore:\n%s", after, before)
			}
			if status := s.status(s.get("/page")); status != http.StatusOK {
				t.Errorf("status %d, want 200", status)
			}
		})
	}
}

package istio_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weirproxy/weir/controller/attach"
)

const gatewayPolicy = `
apiVersion: weir.dev/v1alpha1
kind: CachePolicy
metadata: {name: pages}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw}]}
`

// TestOwnership: what is written is written once, belongs to the release, and goes when it is not wanted; what
// somebody else made is never touched.
func TestOwnership(t *testing.T) {
	c := newCached(t)
	c.apply(catalogRoute)
	c.apply("%s", gatewayPolicy)
	c.release = &metav1.OwnerReference{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole",
		Name: "weir-controller", UID: "00000000-0000-0000-0000-000000000001"}
	c.attached()
	const name = "weir-gateway-gw"
	before := c.envoyFilter(name, "{.metadata.resourceVersion} {.metadata.ownerReferences[0].kind}")
	if !strings.HasSuffix(before, " ClusterRole") {
		t.Errorf("resource version and owner: %q", before)
	}
	c.reconcile()
	if after := c.envoyFilter(name, "{.metadata.resourceVersion} {.metadata.ownerReferences[0].kind}"); after != before {
		t.Errorf("written again without a change: %q, before %q", after, before)
	}

	// What a user changes in it is put right.
	mesh.Kubectl(t, "-n", c.namespace, "patch", "envoyfilter", name, "--type=merge", "-p", `{"spec":{"priority":0}}`)
	c.reconcile()
	if got := c.envoyFilter(name, "{.spec.priority}"); got != "10" {
		t.Errorf("priority %q after a user changed it", got)
	}

	// Without a data plane there is nothing to call.
	c.resolves = false
	_, verdicts := c.reconcile()
	for _, v := range verdicts {
		if v.State != attach.Pending || !strings.Contains(v.Message, "weir-extproc") {
			t.Errorf("without a data plane: %+v", v)
		}
	}
	if left := c.envoyFilters(); left != "" {
		t.Errorf("without a data plane there is %s", left)
	}

	// Somebody else's of the name.
	c.resolves = true
	c.apply(`
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: weir-gateway-gw}
spec: {priority: 3}
`)
	_, verdicts = c.reconcile()
	for _, v := range verdicts {
		if v.State != attach.Blocked || !strings.Contains(v.Message, c.namespace+"/"+name) {
			t.Errorf("with somebody else's EnvoyFilter: %+v", v)
		}
	}
	if got := c.envoyFilter(name, "{.spec}"); got != `{"priority":3}` {
		t.Errorf("somebody else's EnvoyFilter became %s", got)
	}
	mesh.Kubectl(t, "-n", c.namespace, "delete", "envoyfilter", name)
	c.attached()
	c.remove(gatewayPolicy)
	c.reconcile()
	if left := c.envoyFilters(); left != "" {
		t.Errorf("left behind: %s", left)
	}
}

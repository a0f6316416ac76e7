package controller_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/weirproxy/weir/e2e/harness"
)

// writes counts the writes that the API server has taken, by resource and subresource, but for Leases, which are
// renewed, and what the API server writes itself.
func writes(t *testing.T) map[string]int {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	text, err := d.RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for _, m := range families["apiserver_request_total"].GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		switch labels["verb"] {
		case "POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION":
		default:
			continue
		}
		switch labels["group"] {
		case "weir.dev", "gateway.networking.k8s.io", "gateway.envoyproxy.io", "events.k8s.io":
			out[labels["verb"]+" "+labels["resource"]+"/"+labels["subresource"]] += int(m.GetCounter().GetValue())
		}
	}
	return out
}

// difference is what was written between two counts.
func difference(before, after map[string]int) map[string]int {
	out := map[string]int{}
	for k, n := range after {
		if n != before[k] {
			out[k] = n - before[k]
		}
	}
	return out
}

// count is how often a controller's output has a text.
func (p *process) count(text string) int { return strings.Count(p.output(), text) }

// lookAgain has the controller translate and look at what is to be written, by a change that matters to nobody, and
// waits until it has.
func lookAgain(t *testing.T, p *process, namespace string) {
	t.Helper()
	before := p.count(`"Status looked at"`)
	out, err := server.Kubectl(t.Context(), "", "label", "namespace", namespace, "--overwrite", "look=again-"+rand())
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	harness.Eventually(t, limit, "the controller has looked", func() bool { return p.count(`"Status looked at"`) > before })
}

// TestRestWritesNothing (case 32) holds that nothing is written while nothing changes, whatever the controller looks at;
// that one change is one write; and that a controller that starts anew writes nothing.
func TestRestWritesNothing(t *testing.T) {
	setUp(t)
	namespace := newShop(t)
	setReplicas(t, "a", "b")
	c := startController(t, "--attach=envoy-gateway")
	a, stopA := startReplica(t, "a", c.address())
	b, stopB := startReplica(t, "b", c.address())
	apply(t, namespace, policyOnRoute)
	apply(t, namespace, `
apiVersion: weir.dev/v1alpha1
kind: CachePolicy
metadata: {name: all}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: public}], mode: Shadow}
---
apiVersion: weir.dev/v1alpha1
kind: CachePolicy
metadata: {name: lost}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: nowhere}]}
`)
	acceptExtension(t, namespace, "weir-gateways", "public", metav1.ConditionTrue)
	awaitCondition(t, namespace, "catalog", "Programmed", metav1.ConditionTrue, "Programmed")
	awaitCondition(t, namespace, "all", "Programmed", metav1.ConditionTrue, "")
	awaitCondition(t, namespace, "lost", "Accepted", metav1.ConditionFalse, "TargetNotFound")
	lookAgain(t, c, namespace) // what the conditions led to was written
	lookAgain(t, c, namespace)

	before := writes(t)
	for range 5 {
		lookAgain(t, c, namespace)
	}
	if got := difference(before, writes(t)); len(got) > 0 {
		t.Errorf("at rest: %v", got)
	}

	changed := getPolicy(t, namespace, "catalog")
	transition := ours(changed)[0].Conditions[0].LastTransitionTime
	before = writes(t)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"jitterPercent":5}}`))
	if err := server.Client.Patch(t.Context(), changed, patch); err != nil {
		t.Fatal(err)
	}
	p := awaitCondition(t, namespace, "catalog", "Programmed", metav1.ConditionTrue, "Programmed")
	if got := ours(p)[0].Conditions[0].LastTransitionTime; !got.Equal(&transition) {
		t.Errorf("Accepted, which stayed True, turned at %v instead of %v", got, transition)
	}
	lookAgain(t, c, namespace)
	got := difference(before, writes(t))
	delete(got, "PATCH cachepolicies/") // the test's own
	// A replica that takes longer than the controller waits makes two writes of one.
	if n := got["PATCH cachepolicies/status"]; n < 1 || n > 2 || len(got) > 2 {
		t.Errorf("after a change: %v", got)
	}

	before = writes(t)
	stopA()
	stopB()
	c.stop()
	again := startController(t, "--attach=envoy-gateway")
	a.start(t, again.address())
	b.start(t, again.address())
	harness.Eventually(t, limit, "it leads", func() bool { return again.says(`"Status looked at"`) })
	for range 3 {
		lookAgain(t, again, namespace)
	}
	if got := difference(before, writes(t)); len(got) > 0 {
		t.Errorf("after a start: %v", got)
	}
}

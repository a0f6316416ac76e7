package envoygateway

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/controller/attach"
	"github.com/weirproxy/weir/controller/translate"
)

// verdictOf reads from our object's status what Envoy Gateway says of it at the
// attachment's Gateway. Its entries are by Gateway, or by listener where the route or
// our target names one. there is nil while the cache does not have the object.
func verdictOf(a *translate.Attachment, key objectKey, there *unstructured.Unstructured) attach.Verdict {
	waiting := attach.Verdict{State: attach.Pending, Message: fmt.Sprintf(
		"Envoy Gateway has not accepted EnvoyExtensionPolicy %s/%s yet.", key.namespace, key.name)}
	if there == nil {
		return waiting
	}
	content, _, err := unstructured.NestedMap(there.Object, "status")
	if err != nil {
		return waiting
	}
	var status gatewayv1.PolicyStatus
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &status); err != nil {
		return waiting
	}
	accepted, aggregated := false, false
	for i := range status.Ancestors {
		entry := &status.Ancestors[i]
		if entry.ControllerName != controllerName {
			continue
		}
		aggregated = aggregated || meta.IsStatusConditionTrue(entry.Conditions, "Aggregated")
		condition := meta.FindStatusCondition(entry.Conditions, string(gatewayv1.PolicyConditionAccepted))
		if !isAt(entry.AncestorRef, a) || condition == nil || condition.ObservedGeneration != there.GetGeneration() {
			continue
		}
		if condition.Status != metav1.ConditionTrue {
			return attach.Verdict{State: attach.Blocked, Message: fmt.Sprintf(
				"Envoy Gateway does not accept EnvoyExtensionPolicy %s/%s: %s", key.namespace, key.name, condition.Message)}
		}
		accepted = true
	}
	// Envoy Gateway leaves out what does not fit into the 16 entries, the worst first in.
	if accepted || aggregated {
		return attach.Verdict{State: attach.Attached}
	}
	return waiting
}

// isAt reports whether an entry speaks of the attachment's Gateway.
func isAt(ref gatewayv1.ParentReference, a *translate.Attachment) bool {
	namespace, section := ref.Namespace, ref.SectionName
	sameNamespace := namespace == nil || a.Parent.Namespace == nil || *namespace == *a.Parent.Namespace
	return ref.Name == a.Parent.Name && sameNamespace && (section == nil || string(*section) == a.Listener)
}

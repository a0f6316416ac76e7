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

// judged is what Envoy Gateway says of one of our objects.
type judged struct {
	key        objectKey
	ancestors  []gatewayv1.PolicyAncestorStatus // its own
	generation int64                            // of the object; 0: the cache does not have it
}

// readStatus decodes the status of our object; there is nil while the cache does not
// have it.
func readStatus(key objectKey, there *unstructured.Unstructured) *judged {
	j := &judged{key: key}
	if there == nil {
		return j
	}
	content, _, err := unstructured.NestedMap(there.Object, "status")
	var status gatewayv1.PolicyStatus
	if err != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(content, &status) != nil {
		return j // the API server holds it to its schema
	}
	j.generation = there.GetGeneration()
	for i := range status.Ancestors {
		if status.Ancestors[i].ControllerName == controllerName {
			j.ancestors = append(j.ancestors, status.Ancestors[i])
		}
	}
	return j
}

// verdict says what has become of an attachment. Envoy Gateway's entries are by Gateway,
// or by listener where the route or our target names one.
func (j *judged) verdict(a *translate.Attachment) attach.Verdict {
	accepted, aggregated := false, false
	for i := range j.ancestors {
		entry := &j.ancestors[i]
		aggregated = aggregated || meta.IsStatusConditionTrue(entry.Conditions, "Aggregated")
		condition := meta.FindStatusCondition(entry.Conditions, string(gatewayv1.PolicyConditionAccepted))
		if !isAt(&entry.AncestorRef, a) || condition == nil || condition.ObservedGeneration != j.generation {
			continue
		}
		if condition.Status != metav1.ConditionTrue {
			return attach.Verdict{State: attach.Blocked, Message: fmt.Sprintf(
				"Envoy Gateway does not accept EnvoyExtensionPolicy %s/%s: %s", j.key.namespace, j.key.name, condition.Message)}
		}
		accepted = true
	}
	// Envoy Gateway leaves out what does not fit into the 16 entries, the worst first in.
	if accepted || aggregated {
		return attach.Verdict{State: attach.Attached}
	}
	return attach.Verdict{State: attach.Pending, Message: fmt.Sprintf(
		"Envoy Gateway has not accepted EnvoyExtensionPolicy %s/%s yet.", j.key.namespace, j.key.name)}
}

// isAt reports whether an entry speaks of the attachment's Gateway.
func isAt(ref *gatewayv1.ParentReference, a *translate.Attachment) bool {
	namespace, section := ref.Namespace, ref.SectionName
	sameNamespace := namespace == nil || a.Parent.Namespace == nil || *namespace == *a.Parent.Namespace
	return ref.Name == a.Parent.Name && sameNamespace && (section == nil || string(*section) == a.Listener)
}

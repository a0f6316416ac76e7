package controller

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
)

// effect is what a change asks for. To translate leads to writing too.
type effect int

const (
	effectNone effect = iota
	effectWrite
	effectTranslate
)

// effectOf says what an update asks for. Ten thousand routes get a new condition when a
// policy of their Gateway changes, each an update that says nothing new: not to look at
// them spares ten thousand translations.
func effectOf(before, after client.Object) effect {
	if before.GetResourceVersion() == after.GetResourceVersion() {
		return effectNone // the informer's resync
	}
	_, isSlice := after.(*discoveryv1.EndpointSlice)
	switch {
	case isSlice:
		return effectWrite
	case !sameMetadata(before, after) || !sameContent(before, after):
		return effectTranslate
	}
	return effectWrite
}

// sameMetadata reports whether what translations read of metadata is the same. The API
// server counts generations of all kinds that are watched but Services and Namespaces.
func sameMetadata(a, b client.Object) bool {
	return a.GetUID() == b.GetUID() && a.GetGeneration() == b.GetGeneration() &&
		a.GetDeletionTimestamp().IsZero() == b.GetDeletionTimestamp().IsZero() &&
		reflect.DeepEqual(a.GetLabels(), b.GetLabels())
}

// sameContent reports whether what translations read beside metadata and what the
// generation counts is the same.
func sameContent(before, after client.Object) bool {
	switch a := after.(type) {
	case *gatewayv1.HTTPRoute:
		b, ok := before.(*gatewayv1.HTTPRoute)
		return ok && reflect.DeepEqual(othersParents(b.Status.Parents), othersParents(a.Status.Parents))
	case *gatewayv1.Gateway:
		b, ok := before.(*gatewayv1.Gateway)
		return ok && reflect.DeepEqual(withoutOurs(b.Status), withoutOurs(a.Status))
	case *corev1.Service:
		b, ok := before.(*corev1.Service)
		return ok && reflect.DeepEqual(b.Spec, a.Spec)
	case *corev1.Namespace, *v1alpha1.CachePolicy, *gatewayv1.GatewayClass, *gatewayv1.ReferenceGrant:
		return true
	case *unstructured.Unstructured:
		return true // only the spec of what attachments read matters to a translation
	}
	return false
}

// othersParents are the entries without the condition that we write.
func othersParents(parents []gatewayv1.RouteParentStatus) []gatewayv1.RouteParentStatus {
	parents = slices.Clone(parents)
	for i := range parents {
		parents[i].Conditions = without(parents[i].Conditions, isAffected)
	}
	return parents
}

func isAffected(c metav1.Condition) bool { return c.Type == v1alpha1.ConditionCachePolicyAffected }

// withoutOurs is a Gateway's status without the condition that we write.
func withoutOurs(s gatewayv1.GatewayStatus) gatewayv1.GatewayStatus {
	s.Conditions = without(s.Conditions, isAffected)
	return s
}

// without returns a copy without what drop holds of; nil if nothing is left.
func without[T any](list []T, drop func(T) bool) []T {
	if list = slices.DeleteFunc(slices.Clone(list), drop); len(list) == 0 {
		return nil
	}
	return list
}

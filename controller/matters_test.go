package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	"github.com/weirproxy/weir/controller/attach/envoygateway"
)

// TestEffectOf holds which updates lead to a translation, and that none is missed.
func TestEffectOf(t *testing.T) {
	t.Parallel()
	theirs := gatewayv1.RouteParentStatus{ControllerName: "other/controller"}
	ours := theirs
	ours.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionCachePolicyAffected}}
	condition := func(o client.Object, name string) {
		g := o.(*gatewayv1.Gateway)
		g.Status.Conditions = append(g.Status.Conditions, metav1.Condition{Type: name})
	}
	extension := ofKind((&envoygateway.Attacher{}).Kinds()[0])
	tests := []struct {
		name   string
		object client.Object
		change func(client.Object)
		want   effect
	}{
		{"resync", &gatewayv1.HTTPRoute{}, func(o client.Object) { o.SetResourceVersion("1") }, effectNone},
		{"a spec", &gatewayv1.HTTPRoute{}, func(o client.Object) { o.SetGeneration(2) }, effectTranslate},
		{"labels", &gatewayv1.HTTPRoute{}, func(o client.Object) { o.SetLabels(map[string]string{"a": "b"}) }, effectTranslate},
		{"about to go", &v1alpha1.CachePolicy{}, func(o client.Object) { o.SetDeletionTimestamp(new(metav1.Now())) }, effectTranslate},
		{"another of the name", &v1alpha1.CachePolicy{}, func(o client.Object) { o.SetUID("other") }, effectTranslate},
		{"annotations", &v1alpha1.CachePolicy{}, func(o client.Object) { o.SetAnnotations(map[string]string{"a": "b"}) }, effectWrite},
		{"a policy's status", &v1alpha1.CachePolicy{}, func(o client.Object) {
			o.(*v1alpha1.CachePolicy).Status.Ancestors = []gatewayv1.PolicyAncestorStatus{{}}
		}, effectWrite},
		{"our condition of a route", &gatewayv1.HTTPRoute{}, func(o client.Object) {
			o.(*gatewayv1.HTTPRoute).Status.Parents = []gatewayv1.RouteParentStatus{ours}
		}, effectWrite},
		{"another's entry of a route", &gatewayv1.HTTPRoute{}, func(o client.Object) {
			o.(*gatewayv1.HTTPRoute).Status.Parents = []gatewayv1.RouteParentStatus{theirs, theirs}
		}, effectTranslate},
		{"our condition of a Gateway", &gatewayv1.Gateway{}, func(o client.Object) { condition(o, v1alpha1.ConditionCachePolicyAffected) }, effectWrite},
		{"another condition of a Gateway", &gatewayv1.Gateway{}, func(o client.Object) { condition(o, "Programmed") }, effectTranslate},
		{"a Gateway's address", &gatewayv1.Gateway{}, func(o client.Object) {
			o.(*gatewayv1.Gateway).Status.Addresses = []gatewayv1.GatewayStatusAddress{{Value: "10.0.0.1"}}
		}, effectTranslate},
		{"a Service's ports", &corev1.Service{}, func(o client.Object) {
			o.(*corev1.Service).Spec.Ports = []corev1.ServicePort{{Port: 1}}
		}, effectTranslate},
		{"a Service's status", &corev1.Service{}, func(client.Object) {}, effectWrite},
		{"endpoints", &discoveryv1.EndpointSlice{}, func(client.Object) {}, effectWrite},
		{"an attachment's spec", extension, func(o client.Object) { o.SetGeneration(2) }, effectTranslate},
		{"an attachment's status", extension, func(client.Object) {}, effectWrite},
		{"a kind not thought of", &corev1.Pod{}, func(client.Object) {}, effectTranslate},
	}
	for _, tt := range tests {
		before := tt.object.DeepCopyObject().(client.Object)
		before.SetResourceVersion("1")
		before.SetGeneration(1)
		if r, ok := before.(*gatewayv1.HTTPRoute); ok {
			r.Status.Parents = []gatewayv1.RouteParentStatus{theirs}
		}
		after := before.DeepCopyObject().(client.Object)
		after.SetResourceVersion("2")
		tt.change(after)
		if got := effectOf(before, after); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

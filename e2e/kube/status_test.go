package kube_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
)

// TestStatusIsASubresource holds that a write of the status neither changes the spec nor counts as a new generation,
// and that a write of the object does not change the status.
func TestStatusIsASubresource(t *testing.T) {
	t.Parallel()
	p := created(t, server.Namespace(t))
	p.Spec.JitterPercent = new(int32)
	p.Status.Ancestors = []gatewayv1.PolicyAncestorStatus{ancestor("public", metav1.ConditionTrue, "Programmed")}
	if err := server.Client.Status().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if p.Generation != 1 || p.Spec.JitterPercent != nil || len(p.Status.Ancestors) != 1 {
		t.Errorf("after a write of the status: generation %d, jitterPercent %v, %d ancestors, want 1, nil, 1",
			p.Generation, p.Spec.JitterPercent, len(p.Status.Ancestors))
	}
	p.Spec.JitterPercent = new(int32)
	p.Status.Ancestors = []gatewayv1.PolicyAncestorStatus{}
	if err := server.Client.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if p.Generation != 2 || len(p.Status.Ancestors) != 1 {
		t.Errorf("after a write of the object: generation %d, %d ancestors, want 2, 1", p.Generation, len(p.Status.Ancestors))
	}
}

// TestStatusBounds holds the bounds of GEP-713: 16 ancestors.
func TestStatusBounds(t *testing.T) {
	t.Parallel()
	p := created(t, server.Namespace(t))
	for i := range 16 {
		p.Status.Ancestors = append(p.Status.Ancestors,
			ancestor(fmt.Sprintf("gateway-%d", i), metav1.ConditionTrue, "Programmed"))
	}
	if err := server.Client.Status().Update(t.Context(), p); err != nil {
		t.Errorf("16 ancestors: %v", err)
	}
	p.Status.Ancestors = append(p.Status.Ancestors, ancestor("one-more", metav1.ConditionTrue, "Programmed"))
	if err := server.Client.Status().Update(t.Context(), p); !names(causesOf(err), "status.ancestors") {
		t.Errorf("17 ancestors: %v", err)
	}
}

// TestNameBounds holds the bound of an object's own name.
func TestNameBounds(t *testing.T) {
	t.Parallel()
	namespace := server.Namespace(t)
	for length, ok := range map[int]bool{253: true, 254: false} {
		p := &v1alpha1.CachePolicy{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("p", length), Namespace: namespace}}
		if err := server.Client.Create(t.Context(), p, dryRun); (err == nil) != ok {
			t.Errorf("a name of %d bytes: %v", length, err)
		}
	}
}

package controller_test

import (
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weirproxy/weir/cachepolicy/feed"
	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	"github.com/weirproxy/weir/e2e/harness"
)

// invalidate makes a CacheInvalidation.
func invalidate(t *testing.T, namespace, name, spec string) {
	t.Helper()
	apply(t, namespace, fmt.Sprintf("apiVersion: weir.dev/v1alpha1\nkind: CacheInvalidation\nmetadata: {name: %s}\nspec: %s\n", name, spec))
}

// TestCacheInvalidation holds that an invalidation reaches every replica once, with what the object says, and that the
// status says what came of it.
func TestCacheInvalidation(t *testing.T) {
	setUp(t)
	namespace := server.Namespace(t)
	c := startController(t)

	invalidate(t, namespace, "early", `{policy: catalog, mode: Soft}`)
	awaitConfirmed(t, namespace, "early", metav1.ConditionUnknown, "Unknown") // nobody to tell yet
	a, _ := startReplica(t, "a", c.address())
	early := awaitConfirmed(t, namespace, "early", metav1.ConditionTrue, "Confirmed")
	if s := early.Status; s.StartTime == nil || s.CompletionTime == nil || *s.Replicas.Total != 1 || *s.Replicas.Confirmed != 1 ||
		*s.Covered != "Policy catalog" || *s.ObservedGeneration != 1 {
		t.Errorf("status %+v", s)
	}
	if got := a.told(); len(got) != 1 || got[0] != (feed.Invalidate{By: "Policy", Value: "catalog", Namespace: namespace, Mode: "Soft"}) {
		t.Errorf("told %+v", got)
	}

	b := &replica{name: "b", answer: func(feed.Invalidate) feed.Result { return feed.Result{Error: "out of order"} }}
	b.start(t, c.address())
	harness.Eventually(t, limit, "the second replica is connected", func() bool { return c.count(`"Replica connected"`) == 2 })
	invalidate(t, namespace, "half", `{tag: shoes}`)
	half := awaitConfirmed(t, namespace, "half", metav1.ConditionFalse, "SilentReplicas")
	if r := half.Status.Replicas; *r.Confirmed != 1 || *r.Total != 2 || half.Status.CompletionTime == nil {
		t.Errorf("status %+v", half.Status)
	}

	invalidate(t, namespace, "brief", `{host: shop.example, ttlSecondsAfterFinished: 0}`)
	harness.Eventually(t, limit, "a finished invalidation goes when its time is up", func() bool {
		err := server.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "brief"}, &v1alpha1.CacheInvalidation{})
		return apierrors.IsNotFound(err)
	})
	if got := a.told(); len(got) != 3 {
		t.Errorf("told %d times: %+v", len(got), got)
	}
}

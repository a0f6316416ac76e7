package status

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy/feed"
	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	"github.com/weirproxy/weir/controller/translate"
)

// TestRouteParents holds that a route says which policies are in force at which parent, in entries of ours alone, and
// that it is not written twice.
func TestRouteParents(t *testing.T) {
	t.Parallel()
	theirs := gatewayv1.RouteParentStatus{
		ParentRef: refTo("a"), ControllerName: "other/controller", Conditions: []metav1.Condition{{Type: "Accepted"}},
	}
	want := &translate.Affected{Policies: []string{"shop/p"}, Parents: []gatewayv1.ParentReference{refTo("a"), refTo("b")}}
	first, changed := RouteParents([]gatewayv1.RouteParentStatus{theirs}, want, 1, noon)
	if !changed || len(first) != 3 || first[0].ControllerName != "other/controller" {
		t.Fatalf("first: %v, %+v", changed, first)
	}
	if _, changed = RouteParents(first, want, 1, later); changed {
		t.Error("written again")
	}
	moved := []gatewayv1.RouteParentStatus{first[1], first[2], theirs} // as another writer may leave it
	if _, changed = RouteParents(moved, want, 1, later); changed {
		t.Error("written again for the order alone")
	}
	want.Policies = append(want.Policies, "shop/q")
	more, changed := RouteParents(first, want, 2, later)
	if c := more[1].Conditions[0]; !changed || !c.LastTransitionTime.Time.Equal(noon) || c.ObservedGeneration != 2 ||
		c.Message != "In force: CachePolicy shop/p, shop/q." {
		t.Errorf("another policy: %v, %+v", changed, more[1])
	}
	gone, changed := RouteParents(more, nil, 2, later)
	if !changed || len(gone) != 1 || gone[0].ControllerName != "other/controller" {
		t.Errorf("without policies: %v, %+v", changed, gone)
	}
	if _, changed = RouteParents(gone, nil, 2, later); changed {
		t.Error("taken back twice")
	}
	full := make([]gatewayv1.RouteParentStatus, maxParents)
	for i := range full {
		full[i] = gatewayv1.RouteParentStatus{ControllerName: "other/controller", ParentRef: refTo(fmt.Sprint(i))}
	}
	if got, changed := RouteParents(full, want, 1, noon); changed || len(got) != maxParents {
		t.Errorf("no room: %v, %d", changed, len(got))
	}
}

// TestGatewayCondition holds the same of a Gateway, whose conditions are one list by type.
func TestGatewayCondition(t *testing.T) {
	t.Parallel()
	want := &translate.Affected{Policies: []string{"infra/p"}}
	c, changed := GatewayCondition(nil, want, 1, noon)
	if !changed || c.Type != "weir.dev/CachePolicyAffected" || c.Status != metav1.ConditionTrue {
		t.Fatalf("first: %v, %+v", changed, c)
	}
	if _, changed = GatewayCondition([]metav1.Condition{*c}, want, 1, later); changed {
		t.Error("written again")
	}
	if c, changed = GatewayCondition([]metav1.Condition{*c}, nil, 1, later); !changed || c != nil {
		t.Errorf("without policies: %v, %+v", changed, c)
	}
	if _, changed = GatewayCondition(nil, nil, 1, noon); changed {
		t.Error("taken back of nothing")
	}
}

// TestTraffic holds what is written of counters, and when.
func TestTraffic(t *testing.T) {
	t.Parallel()
	before := feed.Traffic{Requests: 100, OriginSaved: 10, Stale: 1}
	after := feed.Traffic{Requests: 400, OriginSaved: 209, Stale: 3}
	got := Traffic(nil, before, after, noon, noon.Add(5*time.Minute))
	if got == nil || *got.HitPercent != 66 || *got.OriginRequestsSaved != 199 || *got.StaleServed != 2 || got.PeriodSeconds != 300 {
		t.Errorf("got %+v", got)
	}
	if Traffic(nil, before, before, noon, later) != nil {
		t.Error("no request, and written")
	}
	if Traffic(got, before, after, noon, later) != nil {
		t.Error("the same numbers, and written")
	}
	zero := Traffic(nil, feed.Traffic{}, feed.Traffic{Requests: 5}, noon, later)
	if zero == nil || *zero.HitPercent != 0 {
		t.Errorf("no hit: %+v", zero)
	}
	restarted := Traffic(nil, after, feed.Traffic{Requests: 10, OriginSaved: 5}, noon, later)
	if restarted == nil || *restarted.HitPercent != 50 {
		t.Errorf("after counters began again: %+v", restarted)
	}
}

// TestInvalidation holds what the status of a CacheInvalidation says.
func TestInvalidation(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		end    func(*v1alpha1.CacheInvalidation)
		status metav1.ConditionStatus
		reason string
		done   bool
	}{
		{"begun", func(*v1alpha1.CacheInvalidation) {}, "False", "Pending", false},
		{"all", func(o *v1alpha1.CacheInvalidation) {
			Finish(o, Outcome{Covered: "tag a", Confirmed: 3, Total: 3}, later)
		}, "True", "Confirmed", true},
		{"some", func(o *v1alpha1.CacheInvalidation) {
			Finish(o, Outcome{Confirmed: 2, Total: 3, Silent: []string{"c"}}, later)
		}, "False", "SilentReplicas", true},
		{"none for now", func(o *v1alpha1.CacheInvalidation) { Fail(o, "nobody", later, false) }, "Unknown", "Unknown", false},
		{"none at all", func(o *v1alpha1.CacheInvalidation) { Fail(o, "nobody", later, true) }, "Unknown", "Unknown", true},
	}
	for _, tt := range tests {
		o := &v1alpha1.CacheInvalidation{}
		Begin(o, noon)
		tt.end(o)
		c := o.Status.Conditions[0]
		if c.Status != tt.status || c.Reason != tt.reason || (o.Status.CompletionTime != nil) != tt.done ||
			!o.Status.StartTime.Time.Equal(noon) {
			t.Errorf("%s: %+v", tt.name, o.Status)
		}
	}
}

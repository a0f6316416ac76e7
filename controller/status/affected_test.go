package status

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy/feed"
	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	"github.com/weirproxy/weir/controller/translate"
)

// TestRouteParents holds that a route says which policies are in force at which parent, in the entries that are there,
// of which nothing else changes, and that it is not written twice.
func TestRouteParents(t *testing.T) {
	t.Parallel()
	accepted := metav1.Condition{Type: "Accepted", Status: metav1.ConditionTrue}
	entry := func(name string, conditions ...metav1.Condition) gatewayv1.RouteParentStatus {
		return gatewayv1.RouteParentStatus{ParentRef: refTo(name), ControllerName: "other/controller", Conditions: conditions}
	}
	there := []gatewayv1.RouteParentStatus{entry("a", accepted), entry("b", accepted), entry("c", accepted)}
	there[1].ParentRef.Namespace = new(gatewayv1.Namespace("shop")) // as good as left out
	want := &translate.Affected{Policies: []string{"shop/p"}, Parents: []gatewayv1.ParentReference{refTo("a"), refTo("b")}}
	first, changed := RouteParents(there, want, "shop", 1, noon)
	if !changed || len(first) != 3 || len(first[0].Conditions) != 2 || len(first[1].Conditions) != 2 ||
		!cmp.Equal(first[2], there[2]) || !cmp.Equal(first[0].Conditions[0], accepted) || len(there[0].Conditions) != 1 {
		t.Fatalf("first: %v, %+v", changed, first)
	}
	if _, changed = RouteParents(first, want, "shop", 1, later); changed {
		t.Error("written again")
	}
	want.Policies, want.Parents = append(want.Policies, "shop/q"), want.Parents[:1]
	more, changed := RouteParents(first, want, "shop", 2, later)
	if c := more[0].Conditions[1]; !changed || !c.LastTransitionTime.Time.Equal(noon) || c.ObservedGeneration != 2 ||
		c.Message != "In force: CachePolicy shop/p, shop/q." || !cmp.Equal(more[1], there[1]) {
		t.Errorf("another policy, and one parent less: %v, %+v", changed, more)
	}
	gone, changed := RouteParents(more, nil, "shop", 2, later)
	if diff := cmp.Diff(there, gone); !changed || diff != "" {
		t.Errorf("without policies: %v (-want +got)\n%s", changed, diff)
	}
	if _, changed = RouteParents(gone, nil, "shop", 2, later); changed {
		t.Error("taken back twice")
	}
	if got, changed := RouteParents(nil, want, "shop", 1, noon); changed || len(got) > 0 {
		t.Errorf("nobody has accepted the route: %v, %+v", changed, got)
	}
	full := entry("a", make([]metav1.Condition, maxConditions)...)
	if got, changed := RouteParents([]gatewayv1.RouteParentStatus{full}, want, "shop", 1, noon); changed ||
		len(got[0].Conditions) != maxConditions {
		t.Errorf("no room: %v, %d", changed, len(got[0].Conditions))
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

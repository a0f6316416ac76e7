package status

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	"github.com/weirproxy/weir/controller/translate"
)

// maxParents bounds the status.parents of a route, as the Gateway API does.
const maxParents = 32

// AffectedMessage is what the condition weir.dev/CachePolicyAffected says of the
// policies in force on an object.
func AffectedMessage(policies []string) string {
	const most = 16
	if len(policies) > most {
		return fmt.Sprintf("In force: CachePolicy %s and %d more.", strings.Join(policies[:most], ", "), len(policies)-most)
	}
	return "In force: CachePolicy " + strings.Join(policies, ", ") + "."
}

// affected is the condition of an object.
func affected(a *translate.Affected) translate.Condition {
	return translate.Condition{
		Status: metav1.ConditionTrue, Reason: string(gatewayv1.PolicyReasonAccepted), Message: AffectedMessage(a.Policies),
	}
}

// GatewayCondition returns the condition weir.dev/CachePolicyAffected that a Gateway
// is to have; nil: none. changed reports whether it differs from what is there.
func GatewayCondition(there []metav1.Condition, want *translate.Affected, generation int64,
	now time.Time) (c *metav1.Condition, changed bool) {
	old := meta.FindStatusCondition(there, v1alpha1.ConditionCachePolicyAffected)
	if want == nil {
		return nil, old != nil
	}
	n := condition(old, v1alpha1.ConditionCachePolicyAffected, affected(want), generation, now)
	return &n, old == nil || !reflect.DeepEqual(*old, n)
}

// RouteParents returns the status.parents that a route is to have. Conditions belong
// to the controller of their entry, so the policies in force are told in entries of
// ours, one for each parent at which they are; those of others stay as they are.
func RouteParents(there []gatewayv1.RouteParentStatus, want *translate.Affected, generation int64,
	now time.Time) (parents []gatewayv1.RouteParentStatus, changed bool) {
	ours := map[int]bool{} // indexes of there
	for i := range there {
		if there[i].ControllerName == ControllerName {
			ours[i] = true
		} else {
			parents = append(parents, there[i])
		}
	}
	if want == nil {
		return parents, len(ours) > 0
	}
	for _, ref := range want.Parents {
		if len(parents) >= maxParents {
			break
		}
		var old *metav1.Condition
		for i := range ours {
			if reflect.DeepEqual(there[i].ParentRef, ref) {
				old = meta.FindStatusCondition(there[i].Conditions, v1alpha1.ConditionCachePolicyAffected)
			}
		}
		parents = append(parents, gatewayv1.RouteParentStatus{
			ParentRef: ref, ControllerName: ControllerName,
			Conditions: []metav1.Condition{
				condition(old, v1alpha1.ConditionCachePolicyAffected, affected(want), generation, now),
			},
		})
	}
	return parents, !sameParents(there, parents)
}

// sameParents compares without the order in which others and we stand: two writers
// that each want to be last would never come to rest.
func sameParents(a, b []gatewayv1.RouteParentStatus) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range b {
		found := false
		for j := range a {
			found = found || a[j].ControllerName == b[i].ControllerName && reflect.DeepEqual(a[j], b[i])
		}
		if !found {
			return false
		}
	}
	return true
}

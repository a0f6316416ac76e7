package status

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	"github.com/weirproxy/weir/controller/translate"
)

// maxConditions bounds the conditions of an entry of a route's status.parents, as the
// Gateway API does.
const maxConditions = 8

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

// RouteParents returns the status.parents that a route is to have: those there are, of
// which the entries for the wanted parents have the condition
// weir.dev/CachePolicyAffected, and others have not. Nothing else of them changes.
//
// The condition stands in the entries of whoever implements the Gateway, not in entries
// of our own beside them: Envoy Gateway 1.9 merges by parentRef whoever's the entry is, and
// would make a copy of its own of each of ours. What it does with a condition of ours is
// to leave it out when it writes, upon which it is added again.
func RouteParents(there []gatewayv1.RouteParentStatus, want *translate.Affected, namespace string, generation int64,
	now time.Time) (parents []gatewayv1.RouteParentStatus, changed bool) {
	parents = slices.Clone(there)
	for i := range parents {
		entry := &parents[i]
		old := meta.FindStatusCondition(entry.Conditions, v1alpha1.ConditionCachePolicyAffected)
		holds := want != nil && slices.ContainsFunc(want.Parents, func(ref gatewayv1.ParentReference) bool {
			return sameParent(&ref, &entry.ParentRef, namespace)
		})
		switch {
		case !holds && old == nil:
			continue
		case holds && old == nil && len(entry.Conditions) >= maxConditions:
			continue
		}
		conditions := slices.DeleteFunc(slices.Clone(entry.Conditions), func(c metav1.Condition) bool {
			return c.Type == v1alpha1.ConditionCachePolicyAffected
		})
		if holds {
			c := condition(old, v1alpha1.ConditionCachePolicyAffected, affected(want), generation, now)
			if old != nil && reflect.DeepEqual(*old, c) {
				continue
			}
			conditions = append(conditions, c)
		}
		entry.Conditions, changed = conditions, true
	}
	return parents, changed
}

// sameParent reports whether two references of routes in the namespace mean the same.
func sameParent(a, b *gatewayv1.ParentReference, namespace string) bool {
	return a.Name == b.Name && or(a.Group, gatewayv1.GroupName) == or(b.Group, gatewayv1.GroupName) &&
		or(a.Kind, "Gateway") == or(b.Kind, "Gateway") &&
		or(a.Namespace, gatewayv1.Namespace(namespace)) == or(b.Namespace, gatewayv1.Namespace(namespace)) &&
		or(a.SectionName, "") == or(b.SectionName, "") && or(a.Port, 0) == or(b.Port, 0)
}

// or is what p points at, or else the default.
func or[T any](p *T, byDefault T) T {
	if p == nil {
		return byDefault
	}
	return *p
}

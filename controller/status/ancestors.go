package status

import (
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	"github.com/weirproxy/weir/controller/translate"
)

// ControllerName marks the entries of weir-controller in lists that it shares with
// others.
const ControllerName gatewayv1.GatewayController = "weir.dev/controller"

// maxMessage bounds a condition's message, as the API server does.
const maxMessage = 32 << 10

// Ancestor is what is wanted of a policy at one ancestor.
type Ancestor struct {
	Ref                    gatewayv1.ParentReference
	Accepted, ResolvedRefs translate.Condition
	// Programmed is absent (no Status) unless the policy is accepted.
	Programmed translate.Condition
}

// Transition is a condition that changed its status or reason, for an event.
type Transition struct {
	Type string
	Ref  gatewayv1.ParentReference
	translate.Condition
}

// Merged is what Ancestors returns.
type Merged struct {
	Ancestors   []gatewayv1.PolicyAncestorStatus
	Changed     bool
	Transitions []Transition
	// Omitted is the number of wanted ancestors for which there was no room.
	Omitted int
}

// Ancestors merges what is wanted into the list of a policy's status. Entries of other
// controllers stay as they are, in their order; ours stand together, where the first of
// them stood. The wanted ones are sorted by importance: where all do not fit into the
// 16 entries that the API allows, the last are left out.
func Ancestors(there []gatewayv1.PolicyAncestorStatus, wanted []Ancestor, generation int64, now time.Time) Merged {
	var m Merged
	others, at := 0, -1
	for i := range there {
		if there[i].ControllerName != ControllerName {
			others++
		} else if at < 0 {
			at = others
		}
	}
	if room := max(0, translate.MaxAncestors-others); len(wanted) > room {
		m.Omitted = len(wanted) - room
		wanted = wanted[:room]
	}
	ours := make([]gatewayv1.PolicyAncestorStatus, 0, len(wanted))
	for i := range wanted {
		ours = append(ours, m.entry(there, &wanted[i], generation, now))
	}
	m.Ancestors = make([]gatewayv1.PolicyAncestorStatus, 0, others+len(ours))
	for i := range there {
		if there[i].ControllerName != ControllerName {
			m.Ancestors = append(m.Ancestors, there[i])
		}
	}
	if at < 0 {
		at = others
	}
	m.Ancestors = slices.Insert(m.Ancestors, at, ours...)
	m.Changed = len(m.Ancestors) != len(there) || len(there) > 0 && !reflect.DeepEqual(m.Ancestors, there)
	return m
}

// entry is one wanted ancestor, with what stays of its conditions.
func (m *Merged) entry(there []gatewayv1.PolicyAncestorStatus, w *Ancestor, generation int64,
	now time.Time) gatewayv1.PolicyAncestorStatus {
	var before []metav1.Condition
	for i := range there {
		if there[i].ControllerName == ControllerName && reflect.DeepEqual(there[i].AncestorRef, w.Ref) {
			before = there[i].Conditions
		}
	}
	entry := gatewayv1.PolicyAncestorStatus{AncestorRef: w.Ref, ControllerName: ControllerName}
	for _, c := range []struct {
		name string
		is   translate.Condition
	}{
		{string(gatewayv1.PolicyConditionAccepted), w.Accepted},
		{v1alpha1.PolicyConditionResolvedRefs, w.ResolvedRefs},
		{v1alpha1.PolicyConditionProgrammed, w.Programmed},
	} {
		if c.is.Status == "" {
			continue
		}
		old := meta.FindStatusCondition(before, c.name)
		if old == nil || old.Status != c.is.Status || old.Reason != c.is.Reason {
			m.Transitions = append(m.Transitions, Transition{Type: c.name, Ref: w.Ref, Condition: c.is})
		}
		entry.Conditions = append(entry.Conditions, condition(old, c.name, c.is, generation, now))
	}
	return entry
}

// condition is the wanted condition; its transition time moves only with its status.
func condition(old *metav1.Condition, name string, is translate.Condition, generation int64,
	now time.Time) metav1.Condition {
	c := metav1.Condition{
		Type: name, Status: is.Status, Reason: is.Reason, Message: truncate(is.Message), ObservedGeneration: generation,
		LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
	}
	if old != nil && old.Status == is.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	return c
}

func truncate(message string) string {
	const mark = "…"
	if len(message) <= maxMessage {
		return message
	}
	cut := maxMessage - len(mark)
	for cut > 0 && message[cut]&0xC0 == 0x80 { // not inside a character
		cut--
	}
	return message[:cut] + mark
}

// Find returns what a policy's status says, in our entry for the ancestor, of a
// condition; nil if nothing.
func Find(there []gatewayv1.PolicyAncestorStatus, ref *gatewayv1.ParentReference, name string) *metav1.Condition {
	for i := range there {
		if there[i].ControllerName == ControllerName && reflect.DeepEqual(there[i].AncestorRef, *ref) {
			return meta.FindStatusCondition(there[i].Conditions, name)
		}
	}
	return nil
}

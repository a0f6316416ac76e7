package status

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/controller/translate"
)

var (
	noon  = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	later = noon.Add(time.Hour)
)

func refTo(name string) gatewayv1.ParentReference {
	return gatewayv1.ParentReference{Name: gatewayv1.ObjectName(name)}
}

// wanted is an ancestor that accepts, with Programmed as given ("": absent).
func wanted(name string, programmed metav1.ConditionStatus, reason string) Ancestor {
	return Ancestor{
		Ref:          refTo(name),
		Accepted:     translate.Condition{Status: metav1.ConditionTrue, Reason: "Accepted", Message: "Accepted."},
		ResolvedRefs: translate.Condition{Status: metav1.ConditionTrue, Reason: "ResolvedRefs", Message: "Resolved."},
		Programmed:   translate.Condition{Status: programmed, Reason: reason, Message: "So."},
	}
}

// foreign is an entry of another controller.
func foreign(name string) gatewayv1.PolicyAncestorStatus {
	return gatewayv1.PolicyAncestorStatus{
		AncestorRef: refTo(name), ControllerName: "other/controller", Conditions: []metav1.Condition{{Type: "X"}},
	}
}

func names(list []gatewayv1.PolicyAncestorStatus) (out []string) {
	for _, a := range list {
		owner := ""
		if a.ControllerName != ControllerName {
			owner = "other:"
		}
		out = append(out, owner+string(a.AncestorRef.Name))
	}
	return out
}

// TestNothingChanges holds that what is there is not written again, whatever the time.
func TestNothingChanges(t *testing.T) {
	t.Parallel()
	want := []Ancestor{wanted("a", "True", "Programmed"), wanted("b", "", "")}
	first := Ancestors([]gatewayv1.PolicyAncestorStatus{foreign("x")}, want, 3, noon)
	if !first.Changed || len(first.Transitions) != 5 {
		t.Fatalf("first: changed %v, transitions %+v", first.Changed, first.Transitions)
	}
	again := Ancestors(first.Ancestors, want, 3, later)
	if again.Changed || len(again.Transitions) > 0 {
		t.Errorf("again: %s", cmp.Diff(first.Ancestors, again.Ancestors))
	}
	if none := Ancestors(nil, nil, 3, noon); none.Changed {
		t.Errorf("nothing wanted of nothing: %+v", none)
	}
}

// TestTransition holds that the transition time moves with the status alone, and what is an event.
func TestTransition(t *testing.T) {
	t.Parallel()
	first := Ancestors(nil, []Ancestor{wanted("a", "False", "Reconciling")}, 1, noon)
	at := func(m Merged) time.Time { return m.Ancestors[0].Conditions[2].LastTransitionTime.Time }
	otherReason := Ancestors(first.Ancestors, []Ancestor{wanted("a", "False", "Overridden")}, 1, later)
	if !otherReason.Changed || !at(otherReason).Equal(noon) || len(otherReason.Transitions) != 1 {
		t.Errorf("another reason: %+v", otherReason)
	}
	newGeneration := Ancestors(first.Ancestors, []Ancestor{wanted("a", "False", "Reconciling")}, 2, later)
	if !newGeneration.Changed || !at(newGeneration).Equal(noon) || len(newGeneration.Transitions) != 0 ||
		newGeneration.Ancestors[0].Conditions[0].ObservedGeneration != 2 {
		t.Errorf("a new generation: %+v", newGeneration)
	}
	turned := Ancestors(first.Ancestors, []Ancestor{wanted("a", "True", "Programmed")}, 1, later)
	if !at(turned).Equal(later) || len(turned.Transitions) != 1 || turned.Transitions[0].Type != "Programmed" {
		t.Errorf("turned: %+v", turned)
	}
	gone := Ancestors(first.Ancestors, []Ancestor{wanted("a", "", "")}, 1, later)
	if !gone.Changed || len(gone.Ancestors[0].Conditions) != 2 {
		t.Errorf("without Programmed: %+v", gone)
	}
}

// TestOthersEntries holds that entries of others keep their content and order, and where ours stand.
func TestOthersEntries(t *testing.T) {
	t.Parallel()
	x, y := foreign("x"), foreign("y")
	a := Ancestors(nil, []Ancestor{wanted("a", "", "")}, 1, noon).Ancestors[0]
	tests := []struct {
		name  string
		there []gatewayv1.PolicyAncestorStatus
		want  []Ancestor
		names []string
	}{
		{"alone", nil, []Ancestor{wanted("a", "", ""), wanted("b", "", "")}, []string{"a", "b"}},
		{"behind others", []gatewayv1.PolicyAncestorStatus{x, y}, []Ancestor{wanted("a", "", "")}, []string{"other:x", "other:y", "a"}},
		{"where the first stood", []gatewayv1.PolicyAncestorStatus{x, a, y}, []Ancestor{wanted("b", "", ""), wanted("a", "", "")},
			[]string{"other:x", "b", "a", "other:y"}},
		{"first", []gatewayv1.PolicyAncestorStatus{a, x}, []Ancestor{wanted("b", "", "")}, []string{"b", "other:x"}},
		{"gone", []gatewayv1.PolicyAncestorStatus{a, x}, nil, []string{"other:x"}},
	}
	for _, tt := range tests {
		got := Ancestors(tt.there, tt.want, 1, noon)
		if diff := cmp.Diff(tt.names, names(got.Ancestors)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		for _, e := range got.Ancestors {
			if e.ControllerName != ControllerName && !cmp.Equal(e, x) && !cmp.Equal(e, y) {
				t.Errorf("%s: an entry of others is now %+v", tt.name, e)
			}
		}
	}
}

// TestSixteen holds the API's limit: others' entries stay, and the least important of ours go.
func TestSixteen(t *testing.T) {
	t.Parallel()
	var there []gatewayv1.PolicyAncestorStatus
	for i := range 14 {
		there = append(there, foreign(fmt.Sprint(i)))
	}
	want := []Ancestor{wanted("a", "", ""), wanted("b", "", ""), wanted("c", "", "")}
	got := Ancestors(there, want, 1, noon)
	if len(got.Ancestors) != 16 || got.Omitted != 1 || got.Ancestors[15].AncestorRef.Name != "b" {
		t.Errorf("%d entries, %d omitted: %v", len(got.Ancestors), got.Omitted, names(got.Ancestors))
	}
	there = append(there, foreign("14"), foreign("15"), foreign("16"))
	if got = Ancestors(there, want, 1, noon); got.Omitted != 3 || got.Changed {
		t.Errorf("no room: %d omitted, changed %v", got.Omitted, got.Changed)
	}
}

// TestTruncate holds that a message too long for the API is cut between characters.
func TestTruncate(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", maxMessage)
	if got := truncate(long); len(got) > maxMessage || strings.ContainsRune(got, '\uFFFD') || !strings.HasSuffix(got, "é…") {
		t.Errorf("%d bytes, end %q", len(got), got[len(got)-6:])
	}
	if got := truncate("short"); got != "short" {
		t.Error(got)
	}
}

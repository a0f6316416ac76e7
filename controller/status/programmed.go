package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	"github.com/weirproxy/weir/controller/attach"
	"github.com/weirproxy/weir/controller/translate"
)

// Facts are what the condition Programmed of a policy at an ancestor follows from.
type Facts struct {
	Override        translate.Override
	OverrideMessage string
	// Ready is the number of replicas of the data plane that serve.
	Ready int
	// Waiting are those of them that are connected and do not run what is current.
	Waiting []string
	// Unheard are those that are not connected. Starting: they may have had no time for
	// it yet, since they or this controller have just started.
	Unheard  []string
	Starting bool
	// Rejections are, by replica, why one of the resources was refused.
	Rejections map[string]string
	// Attachments are the verdicts on what attaches the policy here. Manual: nothing is
	// attached by the controller; Instructions say what to configure, and Seen that
	// requests under the policy have reached the data plane.
	Attachments  []attach.Verdict
	Manual       bool
	Instructions string
	Seen         bool
	// Before is the condition as it is; nil: absent, or of an older generation.
	Before *metav1.Condition
}

// Programmed says whether a policy is in force at an ancestor: that every ready replica
// of the data plane runs it, and that what makes Envoy call them was accepted. The
// first rule that applies decides.
func Programmed(f *Facts) translate.Condition {
	attached := tally(f.Attachments)
	wasTrue := f.Before != nil && f.Before.Status == metav1.ConditionTrue
	switch {
	case f.Override == translate.OverrideFull:
		return no(v1alpha1.PolicyReasonOverridden, f.OverrideMessage)
	case len(f.Rejections) > 0:
		return no(v1alpha1.PolicyReasonRejected, rejected(f.Rejections))
	case attached.blocked > 0 && attached.blocked == len(f.Attachments):
		return no(v1alpha1.PolicyReasonNotAttached, attached.obstacle)
	}
	if waiting := f.waiting(wasTrue); waiting != "" {
		return no(v1alpha1.PolicyReasonReconciling, waiting)
	}
	switch {
	case attached.pending != "":
		return no(v1alpha1.PolicyReasonReconciling, attached.pending)
	case f.Manual && !f.Seen && !wasTrue:
		return translate.Condition{
			Status: metav1.ConditionUnknown, Reason: v1alpha1.PolicyReasonAttachmentUnknown, Message: f.Instructions,
		}
	case attached.blocked > 0:
		return yes(v1alpha1.PolicyReasonPartiallyProgrammed, fmt.Sprintf(
			"In force, but not on %d of %d rules: %s", attached.blocked, len(f.Attachments), attached.obstacle))
	case f.Override == translate.OverridePartial:
		return yes(v1alpha1.PolicyReasonPartiallyProgrammed, f.OverrideMessage)
	}
	return yes(v1alpha1.PolicyReasonProgrammed, "Every ready replica of the data plane runs it, and what attaches it was "+
		"accepted; Envoys take that up within seconds.")
}

// waiting says what of the data plane is waited for; empty: nothing.
func (f *Facts) waiting(wasTrue bool) string {
	switch {
	case f.Ready == 0:
		return "No replica of the data plane is ready. Requests pass uncached."
	case len(f.Waiting) > 0:
		return "Waiting until it runs on " + some(f.Waiting) + "."
	case len(f.Unheard) > 0 && (!f.Starting || !wasTrue):
		return "Waiting to hear from " + some(f.Unheard) + " of the data plane."
	}
	return ""
}

func yes(reason, message string) translate.Condition {
	return translate.Condition{Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

func no(reason, message string) translate.Condition {
	return translate.Condition{Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

// attachments is what verdicts say together.
type attachments struct {
	blocked  int    // how many are
	obstacle string // of the first that is
	pending  string // of the first that is; empty: none is
}

func tally(verdicts []attach.Verdict) (a attachments) {
	for _, v := range verdicts {
		switch v.State {
		case attach.Blocked:
			a.blocked++
			a.obstacle = cmp.Or(a.obstacle, v.Message)
		case attach.Pending:
			a.pending = cmp.Or(a.pending, v.Message, "It is being attached.")
		case attach.Attached:
		}
	}
	return a
}

// some names a few of many.
func some(names []string) string {
	const most = 3
	names = slices.Sorted(slices.Values(names))
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

func rejected(rejections map[string]string) string {
	first := ""
	for replica := range rejections {
		if first == "" || replica < first {
			first = replica
		}
	}
	return fmt.Sprintf("%d of the data plane's replicas refuse it; %s says: %s", len(rejections), first, rejections[first])
}

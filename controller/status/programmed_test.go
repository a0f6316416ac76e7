package status

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weirproxy/weir/controller/attach"
	"github.com/weirproxy/weir/controller/translate"
)

// TestProgrammed holds that the condition claims nothing that does not serve, and what it says instead.
func TestProgrammed(t *testing.T) {
	t.Parallel()
	yes := &metav1.Condition{Status: metav1.ConditionTrue}
	attached, pending := attach.Verdict{State: attach.Attached}, attach.Verdict{State: attach.Pending, Message: "Not yet."}
	blocked := attach.Verdict{State: attach.Blocked, Message: "X is in the way."}
	all := func(v ...attach.Verdict) []attach.Verdict { return v }
	tests := []struct {
		name    string
		facts   Facts
		status  metav1.ConditionStatus
		reason  string
		message string
	}{
		{"all of it", Facts{Ready: 2, Attachments: all(attached)}, "True", "Programmed", "Every ready replica"},
		{"superseded", Facts{Ready: 2, Override: translate.OverrideFull, OverrideMessage: "By a/b."}, "False", "Overridden", "By a/b."},
		{"superseded in part", Facts{Ready: 2, Attachments: all(attached), Override: translate.OverridePartial, OverrideMessage: "By a/b."},
			"True", "PartiallyProgrammed", "By a/b."},
		{"no replica", Facts{Attachments: all(attached)}, "False", "Reconciling", "No replica"},
		{"a replica is behind", Facts{Ready: 2, Waiting: []string{"a"}, Attachments: all(attached), Before: yes},
			"False", "Reconciling", "runs on a."},
		{"many replicas are behind", Facts{Ready: 9, Waiting: []string{"d", "c", "b", "a", "e"}}, "False", "Reconciling", "a, b, c and 2 more"},
		{"a replica refuses", Facts{Ready: 2, Waiting: []string{"a"}, Rejections: map[string]string{"b": "y", "a": "x"}},
			"False", "Rejected", "2 of the data plane's replicas refuse it; a says: x"},
		{"a replica is not heard", Facts{Ready: 2, Unheard: []string{"a"}, Before: yes}, "False", "Reconciling", "hear from a"},
		{"it has just started: what was true stays", Facts{Ready: 2, Unheard: []string{"a"}, Starting: true, Before: yes}, "True", "Programmed", ""},
		{"but what was not true does not become it", Facts{Ready: 2, Unheard: []string{"a"}, Starting: true}, "False", "Reconciling", "hear from a"},
		{"and one that is behind is behind", Facts{Ready: 2, Unheard: []string{"a"}, Waiting: []string{"b"}, Starting: true, Before: yes},
			"False", "Reconciling", "runs on b"},
		{"not accepted yet", Facts{Ready: 1, Attachments: all(attached, pending)}, "False", "Reconciling", "Not yet."},
		{"blocked", Facts{Ready: 1, Attachments: all(blocked, blocked)}, "False", "NotAttached", "X is in the way."},
		{"blocked on one of two rules", Facts{Ready: 1, Attachments: all(attached, blocked)}, "True", "PartiallyProgrammed", "not on 1 of 2 rules: X"},
		{"blocked on one, and the other is not there yet", Facts{Ready: 1, Attachments: all(blocked, pending)}, "False", "Reconciling", "Not yet."},
		{"attached by the user, nothing seen", Facts{Ready: 1, Manual: true, Instructions: "Do it."}, "Unknown", "AttachmentUnknown", "Do it."},
		{"attached by the user, seen", Facts{Ready: 1, Manual: true, Seen: true}, "True", "Programmed", ""},
		{"attached by the user, seen by the leader before", Facts{Ready: 1, Manual: true, Before: yes}, "True", "Programmed", ""},
		{"attached by the user, and behind", Facts{Ready: 1, Manual: true, Waiting: []string{"a"}}, "False", "Reconciling", "runs on a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := Programmed(&tt.facts)
			if got.Status != tt.status || got.Reason != tt.reason || !strings.Contains(got.Message, tt.message) || got.Message == "" {
				t.Errorf("%+v, want %s %s %q", got, tt.status, tt.reason, tt.message)
			}
		})
	}
}

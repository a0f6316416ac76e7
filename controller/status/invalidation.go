package status

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
)

// maxCovered bounds status.covered, as the API does.
const maxCovered = 8704

// Outcome is how an invalidation went.
type Outcome struct {
	Covered          string
	Confirmed, Total int
	Silent, Warnings []string
}

// Begin notes that the data plane is about to be told.
func Begin(o *v1alpha1.CacheInvalidation, now time.Time) {
	o.Status.StartTime = new(metav1.NewTime(now.Truncate(time.Second)))
	confirm(o, metav1.ConditionFalse, v1alpha1.InvalidationReasonPending, "The data plane is being told.", now)
}

// Finish notes what the data plane answered.
func Finish(o *v1alpha1.CacheInvalidation, is Outcome, now time.Time) {
	o.Status.CompletionTime = new(metav1.NewTime(now.Truncate(time.Second)))
	o.Status.Replicas = &v1alpha1.InvalidationReplicas{Total: new(count(is.Total)), Confirmed: new(count(is.Confirmed))}
	if is.Covered != "" {
		o.Status.Covered = new(is.Covered[:min(len(is.Covered), maxCovered)])
	}
	warnings := ""
	if len(is.Warnings) > 0 {
		warnings = " " + strings.Join(is.Warnings, " ")
	}
	if is.Confirmed == is.Total && len(is.Silent) == 0 {
		confirm(o, metav1.ConditionTrue, v1alpha1.InvalidationReasonConfirmed,
			fmt.Sprintf("All %d replicas have applied it.%s", is.Total, warnings), now)
		return
	}
	silent := ""
	if len(is.Silent) > 0 {
		silent = " Silent: " + some(is.Silent) + "."
	}
	confirm(o, metav1.ConditionFalse, v1alpha1.InvalidationReasonSilentReplicas,
		fmt.Sprintf("%d of %d replicas have applied it.%s One that was cut off serves nothing cached until it has "+
			"caught up.%s", is.Confirmed, is.Total, silent, warnings), now)
}

// Fail notes that the data plane could not be told; final: and that it was given up.
func Fail(o *v1alpha1.CacheInvalidation, reason string, now time.Time, final bool) {
	what := "The data plane could not be asked, and will be again: "
	if final {
		what = "The data plane could not be asked, and this was given up; create another CacheInvalidation: "
		o.Status.CompletionTime = new(metav1.NewTime(now.Truncate(time.Second)))
	}
	confirm(o, metav1.ConditionUnknown, v1alpha1.InvalidationReasonUnknown, what+reason+".", now)
}

func confirm(o *v1alpha1.CacheInvalidation, s metav1.ConditionStatus, reason, message string, now time.Time) {
	o.Status.ObservedGeneration = new(o.Generation)
	meta.SetStatusCondition(&o.Status.Conditions, metav1.Condition{
		Type: v1alpha1.InvalidationConfirmed, Status: s, Reason: reason, Message: truncate(message),
		ObservedGeneration: o.Generation, LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
	})
}

func count(n int) int32 { return int32(min(max(n, 0), math.MaxInt32)) }

// SameInvalidation reports whether two say the same in their status.
func SameInvalidation(a, b *v1alpha1.CacheInvalidation) bool {
	return reflect.DeepEqual(a.Status, b.Status)
}

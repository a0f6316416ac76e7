package v1alpha1

// The conditions of a CachePolicy at an ancestor, as GEP-713 has them. Accepted, with its reasons, is
// gatewayv1.PolicyConditionAccepted; the module of the Gateway API has no names for the others.
const (
	// PolicyConditionResolvedRefs says whether what the policy names exists.
	PolicyConditionResolvedRefs = "ResolvedRefs"
	// PolicyConditionProgrammed says whether every ready replica of the data plane
	// runs this generation and the attachment is accepted. Absent unless the policy
	// is accepted.
	PolicyConditionProgrammed = "Programmed"
)

// Reasons of the condition Programmed.
const (
	// PolicyReasonProgrammed (True): the whole policy is in force on all it targets.
	PolicyReasonProgrammed = "Programmed"
	// PolicyReasonPartiallyProgrammed (True): other policies supersede parts of it, or
	// something keeps the filter from some of the rules.
	PolicyReasonPartiallyProgrammed = "PartiallyProgrammed"
	// PolicyReasonReconciling (False): it is on its way to the data plane.
	PolicyReasonReconciling = "Reconciling"
	// PolicyReasonOverridden (False): other policies supersede all of it.
	PolicyReasonOverridden = "Overridden"
	// PolicyReasonNotAttached (False): something keeps the filter from being attached,
	// which a user must change.
	PolicyReasonNotAttached = "NotAttached"
	// PolicyReasonRejected (False): replicas of the data plane refuse it.
	PolicyReasonRejected = "Rejected"
	// PolicyReasonAttachmentUnknown (Unknown): with --attach=none the user attaches the
	// filter, and no request under the policy has been seen.
	PolicyReasonAttachmentUnknown = "AttachmentUnknown"
)

// ConditionCachePolicyAffected is the condition that objects have which a
// CachePolicy is in force on.
const ConditionCachePolicyAffected = "weir.dev/CachePolicyAffected"

// InvalidationConfirmed is the condition of a CacheInvalidation that says whether
// every replica of the data plane has applied it.
const InvalidationConfirmed = "Confirmed"

// Reasons of the condition InvalidationConfirmed.
const (
	// InvalidationReasonConfirmed (True): every replica has applied it.
	InvalidationReasonConfirmed = "Confirmed"
	// InvalidationReasonPending (False): replicas are still being waited for.
	InvalidationReasonPending = "Pending"
	// InvalidationReasonSilentReplicas (False): some replicas did not answer. One
	// that was cut off serves nothing cached until it has caught up.
	InvalidationReasonSilentReplicas = "SilentReplicas"
	// InvalidationReasonUnknown (Unknown): the fleet could not be asked.
	InvalidationReasonUnknown = "Unknown"
)

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// CacheInvalidation invalidates, once, what was stored before it: one URL, or all
// that has a tag, a host or a policy, within its own namespace. It is carried out
// when it is created and removed when its time is up; to invalidate again, create
// another.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:shortName=cinv,categories=weir,scope=Namespaced
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=weir"
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Confirmed",type=string,JSONPath=`.status.conditions[?(@.type=="Confirmed")].status`
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.status.replicas.confirmed`
// +kubebuilder:printcolumn:name="Of",type=integer,JSONPath=`.status.replicas.total`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Covered",type=string,priority=1,JSONPath=`.status.covered`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Confirmed")].reason`
type CacheInvalidation struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what is invalid. It cannot be changed, but for
	// ttlSecondsAfterFinished.
	// +required
	Spec CacheInvalidationSpec `json:"spec,omitzero"`

	// status says how far the invalidation has come.
	// +optional
	Status CacheInvalidationStatus `json:"status,omitzero"`
}

// CacheInvalidationList is a list of CacheInvalidation.
//
// +kubebuilder:object:root=true
type CacheInvalidationList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the invalidations.
	Items []CacheInvalidation `json:"items"`
}

// InvalidationMode says how an invalidation treats what it covers: Hard (never
// served again) or Soft (stale from now on).
// +kubebuilder:validation:Enum=Hard;Soft
type InvalidationMode string

// The modes of an invalidation.
const (
	InvalidationHard InvalidationMode = "Hard"
	InvalidationSoft InvalidationMode = "Soft"
)

// CacheInvalidationSpec says what is invalid: exactly one of url, tag, host and
// policy.
//
// +kubebuilder:validation:ExactlyOneOf=url;tag;host;policy
// +kubebuilder:validation:XValidation:rule="[has(self.url), has(self.tag), has(self.host), has(self.policy)] == [has(oldSelf.url), has(oldSelf.tag), has(oldSelf.host), has(oldSelf.policy)]",message="what is invalid cannot be changed: create another CacheInvalidation"
// +kubebuilder:validation:MinProperties=1
type CacheInvalidationSpec struct {
	// url is one resource, with its query: an absolute URL of scheme http or
	// https, without fragment. All its variants are covered.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8192
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHostname() != '' && !self.contains('#')",message="url must be an absolute URL of scheme http or https without fragment, such as https://shop.example/products?id=7"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="url cannot be changed: create another CacheInvalidation"
	URL *string `json:"url,omitempty"`

	// tag covers every answer that carries it in the header field that its policy
	// names in tags.responseHeader.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\s,]')",message="tag must not contain spaces or commas, which divide tags"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="tag cannot be changed: create another CacheInvalidation"
	Tag *string `json:"tag,omitempty"`

	// host covers every answer from it. The port belongs to it unless it is the
	// scheme's default.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=259
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-zA-Z0-9._-]+|\\\\[[0-9a-fA-F:.]+\\\\])(:[0-9]{1,5})?$')",message="host must be a host as in a URL, such as shop.example or shop.example:8443"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="host cannot be changed: create another CacheInvalidation"
	Host *string `json:"host,omitempty"`

	// policy is the name of a CachePolicy in the same namespace, and covers every
	// answer stored under it. It need not exist any more.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="policy cannot be changed: create another CacheInvalidation"
	Policy *gatewayv1.ObjectName `json:"policy,omitempty"`

	// mode is Hard (never served again) or Soft (stale from now on: served only as
	// far as the policy's stale windows allow).
	// +optional
	// +kubebuilder:default=Hard
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="mode cannot be changed: create another CacheInvalidation"
	Mode *InvalidationMode `json:"mode,omitempty"`

	// ttlSecondsAfterFinished is after how many seconds the object is removed,
	// counted from status.completionTime; at most 30 days.
	// +optional
	// +kubebuilder:default=3600
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2592000
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// CacheInvalidationStatus says how far an invalidation has come.
type CacheInvalidationStatus struct {
	// conditions has the condition Confirmed: whether every replica of the data
	// plane has applied the invalidation, or that it cannot be known.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that the status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`

	// covered says what is invalid, as the data plane understood it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8704
	Covered *string `json:"covered,omitempty"`

	// replicas says how many have applied the invalidation.
	// +optional
	Replicas *InvalidationReplicas `json:"replicas,omitempty"`

	// startTime is when the data plane was told first.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when the outcome was known: all replicas had confirmed, or
	// those that had not were given up on.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
}

// InvalidationReplicas counts replicas of the data plane.
type InvalidationReplicas struct {
	// total counts those that serve, and those that fell silent lately and may be
	// serving.
	// +required
	// +kubebuilder:validation:Minimum=0
	Total *int32 `json:"total,omitempty"`

	// confirmed counts those that have applied the invalidation.
	// +required
	// +kubebuilder:validation:Minimum=0
	Confirmed *int32 `json:"confirmed,omitempty"`
}

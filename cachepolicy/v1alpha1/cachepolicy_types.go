package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// CachePolicy attaches an HTTP response cache to routes.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=cpol,categories=weir,scope=Namespaced
// +kubebuilder:metadata:labels="gateway.networking.k8s.io/policy=Inherited"
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type CachePolicy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what is cached and how.
	// +required
	Spec CachePolicySpec `json:"spec"`

	// Status says, per ancestor, whether the policy is accepted and served
	// (GEP-713).
	// +optional
	Status gatewayv1.PolicyStatus `json:"status,omitempty"`
}

// CachePolicyList is a list of CachePolicy.
//
// +kubebuilder:object:root=true
type CachePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the policies.
	Items []CachePolicy `json:"items"`
}

// CachePolicySpec says what is cached and how. A field that is absent is
// inherited from a less specific policy; what no policy sets takes the default
// named at the field.
type CachePolicySpec struct {
	// TargetRefs are the HTTPRoutes and Gateways the policy applies to, in its
	// own namespace. With --policy-dir only the kind EnvoyRoute of the group
	// weir.dev is known; its name is the name of a route in Envoy's route
	// configuration, and it takes no sectionName.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(r, (r.group == 'gateway.networking.k8s.io' && r.kind in ['HTTPRoute', 'Gateway']) || (r.group == 'weir.dev' && r.kind == 'EnvoyRoute'))",message="must be an HTTPRoute or Gateway of gateway.networking.k8s.io, or an EnvoyRoute of weir.dev"
	// +kubebuilder:validation:XValidation:rule="self.all(r, r.kind != 'EnvoyRoute' || !has(r.sectionName))",message="an EnvoyRoute has no sections: sectionName must not be set"
	TargetRefs []gatewayv1.LocalPolicyTargetReferenceWithSectionName `json:"targetRefs,omitempty"`

	// Mode is Enabled (the default), Shadow (decide and count, serve nothing) or
	// Disabled.
	// +optional
	Mode *Mode `json:"mode,omitempty"`

	// TTL says how long an answer is fresh.
	// +optional
	TTL *TTL `json:"ttl,omitempty"`

	// JitterPercent shortens each lifetime by a random share of up to this many
	// percent; it never lengthens one. Default 10.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	JitterPercent *int32 `json:"jitterPercent,omitempty"`

	// NegativeTTL says how long error answers are kept. An exact status beats a
	// class. Empty by default: errors are kept only if the origin says how long.
	// +optional
	// +listType=map
	// +listMapKey=status
	// +kubebuilder:validation:MaxItems=32
	NegativeTTL []NegativeTTL `json:"negativeTTL,omitempty"`

	// XFetch refreshes hot entries shortly before they expire.
	// +optional
	XFetch *XFetch `json:"xfetch,omitempty"`

	// Stale says when an expired answer may stand in.
	// +optional
	Stale *Stale `json:"stale,omitempty"`

	// Coalescing makes one fetch out of many requests for the same thing.
	// +optional
	Coalescing *Coalescing `json:"coalescing,omitempty"`

	// OriginLimits bounds what the cache asks of the origin.
	// +optional
	OriginLimits *OriginLimits `json:"originLimits,omitempty"`

	// Key says what of a request tells two answers apart, beside scheme, host,
	// path and query. Empty by default.
	// +optional
	Key *Key `json:"key,omitempty"`

	// Storage says what is kept.
	// +optional
	Storage *Storage `json:"storage,omitempty"`

	// Tags names answers, so that they can be invalidated together.
	// +optional
	Tags *Tags `json:"tags,omitempty"`

	// RequestDirectives says whether Cache-Control of requests counts: Ignore
	// (the default) or Honor.
	// +optional
	RequestDirectives *RequestDirectives `json:"requestDirectives,omitempty"`
}

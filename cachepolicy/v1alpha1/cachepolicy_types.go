package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// CachePolicy attaches an HTTP response cache to routes.
//
// Its class is Inherited (GEP-713): a policy that targets a Gateway is in force on
// the routes below it, and is merged leaf by leaf with the policies that target
// those; Direct policies know one target kind, no descent and no merge.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:shortName=cpol,categories=weir,scope=Namespaced
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=weir"
// +kubebuilder:metadata:labels="gateway.networking.k8s.io/policy=Inherited"
// +kubebuilder:printcolumn:name="Target Kind",type=string,JSONPath=`.spec.targetRefs[0].kind`
// +kubebuilder:printcolumn:name="Target Name",type=string,JSONPath=`.spec.targetRefs[0].name`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.ancestors[0].conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Programmed",type=string,JSONPath=`.status.ancestors[0].conditions[?(@.type=="Programmed")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Section",type=string,priority=1,JSONPath=`.spec.targetRefs[0].sectionName`
// +kubebuilder:printcolumn:name="Mode",type=string,priority=1,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.ancestors[0].conditions[?(@.type=="Programmed")].reason`
// +kubebuilder:printcolumn:name="Hit %",type=integer,priority=1,JSONPath=`.status.traffic.hitPercent`
type CachePolicy struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what is cached and how.
	// +required
	Spec CachePolicySpec `json:"spec"`

	// status says what has become of the policy.
	// +optional
	Status CachePolicyStatus `json:"status,omitzero"`
}

// CachePolicyList is a list of CachePolicy.
//
// +kubebuilder:object:root=true
type CachePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the policies.
	Items []CachePolicy `json:"items"`
}

// CachePolicySpec says what is cached and how. A field that is absent is
// inherited from a less specific policy; what no policy sets takes the default
// named at the field.
type CachePolicySpec struct {
	// targetRefs are the HTTPRoutes, Gateways and VirtualServices (of Istio) the
	// policy applies to, in its own namespace. The sectionName is a rule's, a
	// listener's or a route's name. With --policy-dir only the kind EnvoyRoute of
	// the group weir.dev is known; its name is the name of a route in Envoy's route
	// configuration, and it takes no sectionName.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, a == b))",message="targetRefs must not repeat a target"
	// +kubebuilder:validation:items:XValidation:rule="self.kind in ['HTTPRoute', 'Gateway', 'VirtualService', 'EnvoyRoute']",message="kind must be one of HTTPRoute, Gateway, VirtualService, EnvoyRoute",fieldPath=".kind"
	// +kubebuilder:validation:items:XValidation:rule="!(self.kind in ['HTTPRoute', 'Gateway']) || self.group == 'gateway.networking.k8s.io'",message="group must be gateway.networking.k8s.io for the kinds HTTPRoute and Gateway",fieldPath=".group"
	// +kubebuilder:validation:items:XValidation:rule="self.kind != 'VirtualService' || self.group == 'networking.istio.io'",message="group must be networking.istio.io for the kind VirtualService",fieldPath=".group"
	// +kubebuilder:validation:items:XValidation:rule="self.kind != 'EnvoyRoute' || self.group == 'weir.dev'",message="group must be weir.dev for the kind EnvoyRoute",fieldPath=".group"
	// +kubebuilder:validation:items:XValidation:rule="self.kind != 'EnvoyRoute' || !has(self.sectionName)",message="sectionName must not be set, an EnvoyRoute has no sections",fieldPath=".sectionName"
	TargetRefs []gatewayv1.LocalPolicyTargetReferenceWithSectionName `json:"targetRefs,omitempty"`

	// mode is Enabled (the default), Shadow (decide and count, serve nothing) or
	// Disabled.
	// +optional
	Mode *Mode `json:"mode,omitempty"`

	// ttl says how long an answer is fresh.
	// +optional
	TTL *TTL `json:"ttl,omitempty"`

	// jitterPercent shortens each lifetime by a random share of up to this many
	// percent; it never lengthens one. Default 10.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	JitterPercent *int32 `json:"jitterPercent,omitempty"`

	// negativeTTL says how long error answers are kept. An exact status beats a
	// class. Empty by default: errors are kept only if the origin says how long.
	// +optional
	// +listType=map
	// +listMapKey=status
	// +kubebuilder:validation:MaxItems=32
	NegativeTTL []NegativeTTL `json:"negativeTTL,omitempty"`

	// xfetch refreshes hot entries shortly before they expire.
	// +optional
	XFetch *XFetch `json:"xfetch,omitempty"`

	// stale says when an expired answer may stand in.
	// +optional
	Stale *Stale `json:"stale,omitempty"`

	// coalescing makes one fetch out of many requests for the same thing.
	// +optional
	Coalescing *Coalescing `json:"coalescing,omitempty"`

	// originLimits bounds what the cache asks of the origin.
	// +optional
	OriginLimits *OriginLimits `json:"originLimits,omitempty"`

	// key says what of a request tells two answers apart, beside scheme, host,
	// path and query. Empty by default.
	// +optional
	Key *Key `json:"key,omitempty"`

	// storage says what is kept.
	// +optional
	Storage *Storage `json:"storage,omitempty"`

	// tags names answers, so that they can be invalidated together.
	// +optional
	Tags *Tags `json:"tags,omitempty"`

	// requestDirectives says whether Cache-Control of requests counts: Ignore
	// (the default) or Honor.
	// +optional
	RequestDirectives *RequestDirectives `json:"requestDirectives,omitempty"`

	// mesh says what holds where routes are between the workloads of a mesh: an
	// HTTPRoute with a Service as parent, a VirtualService without a gateway.
	// +optional
	Mesh *Mesh `json:"mesh,omitempty"`
}

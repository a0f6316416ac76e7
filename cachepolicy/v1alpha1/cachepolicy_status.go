package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// CachePolicyStatus says, per ancestor, whether the policy is accepted and served
// (GEP-713), and what it does.
type CachePolicyStatus struct {
	gatewayv1.PolicyStatus `json:",inline"`

	// traffic is what the policy did for the traffic it covers, all replicas
	// together. Absent until there is any.
	// +optional
	Traffic *CachePolicyTraffic `json:"traffic,omitempty"`
}

// CachePolicyTraffic is what a policy did for the traffic it covers, all replicas
// together, in a period that has ended. It is written at most every 5 minutes, and
// only when it moved.
type CachePolicyTraffic struct {
	// lastUpdateTime is when the period ended.
	// +required
	LastUpdateTime *metav1.Time `json:"lastUpdateTime,omitempty"`

	// periodSeconds is how long the period was.
	// +required
	// +kubebuilder:validation:Minimum=1
	PeriodSeconds int32 `json:"periodSeconds,omitempty"`

	// hitPercent is the share of requests, in percent and rounded down, that were
	// answered without asking the origin: fresh, stale, or together with others.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	HitPercent *int32 `json:"hitPercent,omitempty"`

	// originRequestsSaved is by how much the requests of clients outnumbered those
	// that reached the origin, refreshes included; 0 where they did not.
	// +optional
	// +kubebuilder:validation:Minimum=0
	OriginRequestsSaved *int64 `json:"originRequestsSaved,omitempty"`

	// staleServed is how many requests were answered with an expired answer.
	// +optional
	// +kubebuilder:validation:Minimum=0
	StaleServed *int64 `json:"staleServed,omitempty"`
}

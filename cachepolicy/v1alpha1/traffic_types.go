package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Coalescing makes one fetch out of many requests for the same thing.
type Coalescing struct {
	// Scope is Fleet (the default), Replica or Off.
	// +optional
	Scope *CoalescingScope `json:"scope,omitempty"`

	// MaxWait is how long a request waits for the fetch of another; at most 60s.
	// Default 5s.
	// +optional
	MaxWait *gatewayv1.Duration `json:"maxWait,omitempty"`

	// MaxWaiters bounds the waiting requests of this policy in one replica.
	// Default 10000.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	MaxWaiters *int32 `json:"maxWaiters,omitempty"`

	// OnTimeout says what a request gets that waited for maxWait: Fetch (the
	// default: its own), Stale, or Unavailable (503).
	// +optional
	OnTimeout *OnTimeout `json:"onTimeout,omitempty"`
}

// OriginLimits bounds what the cache asks of the origin.
type OriginLimits struct {
	// MaxConcurrentFetches bounds the fetches of this policy that run at one
	// time in one replica. Default 100.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	MaxConcurrentFetches *int32 `json:"maxConcurrentFetches,omitempty"`

	// MaxQueue bounds the fetches that wait for their turn. Default 1000.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	MaxQueue *int32 `json:"maxQueue,omitempty"`

	// OnOverflow says what a request gets beyond both: Stale (the default; 503
	// where there is none) or Unavailable (503).
	// +optional
	OnOverflow *OnOverflow `json:"onOverflow,omitempty"`
}

// Key says what of a request tells two answers apart, beside scheme, host, path
// and query.
type Key struct {
	// Query says which query parameters are part of the key. By default all.
	// +optional
	Query *Query `json:"query,omitempty"`

	// Headers are request header fields that are part of the key. Absent differs
	// from empty.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	Headers []gatewayv1.HeaderName `json:"headers,omitempty"`

	// Cookies are cookies that are part of the key.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	Cookies []string `json:"cookies,omitempty"`
}

// Query says which query parameters are part of the key.
type Query struct {
	// Mode is Exclude (the default: all but the names) or Include (none but the
	// names).
	// +optional
	Mode *QueryMode `json:"mode,omitempty"`

	// Names match parameter names, byte by byte as they are sent.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Names []NameMatch `json:"names,omitempty"`
}

// NameMatch matches a name.
type NameMatch struct {
	// Type is Exact (the default) or Prefix.
	// +optional
	Type *MatchType `json:"type,omitempty"`

	// Value is the name, or how it begins.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Value string `json:"value"`
}

// Storage says what is kept.
type Storage struct {
	// MaxObjectSize is the largest body that is kept, 1 to 1Gi bytes; larger ones
	// pass by. Default 1Mi.
	// +optional
	MaxObjectSize *resource.Quantity `json:"maxObjectSize,omitempty"`

	// MaxVariants bounds the variants (Vary) kept of one resource. Default 16.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=128
	MaxVariants *int32 `json:"maxVariants,omitempty"`

	// SetCookie is Refuse (the default: an answer with Set-Cookie is not kept) or
	// Strip (it is kept without).
	// +optional
	SetCookie *SetCookie `json:"setCookie,omitempty"`

	// RequestCookies is Bypass (the default: the policy's lifetimes do not apply
	// to the answer to a request with a cookie outside the key) or Ignore.
	// +optional
	RequestCookies *RequestCookies `json:"requestCookies,omitempty"`

	// Sharing is Shared (the default) or Replica (kept in memory only).
	// +optional
	Sharing *Sharing `json:"sharing,omitempty"`
}

// Tags names answers, so that they can be invalidated together.
type Tags struct {
	// ResponseHeader is the response header field that lists an answer's tags,
	// divided by spaces or commas. Off by default.
	// +optional
	ResponseHeader *gatewayv1.HeaderName `json:"responseHeader,omitempty"`
}

package v1alpha1

import gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

// TTL says how long an answer is fresh.
//
// +kubebuilder:validation:XValidation:rule="!has(self.min) || !has(self.max) || duration(self.min) <= duration(self.max)",message="min must not be above max",fieldPath=".min"
// +kubebuilder:validation:XValidation:rule="!has(self.default) || !has(self.max) || duration(self.default) <= duration(self.max)",message="default must not be above max",fieldPath=".default"
// +kubebuilder:validation:XValidation:rule="!has(self.default) || !has(self.min) || duration(self.default) >= duration(self.min)",message="default must not be below min",fieldPath=".default"
type TTL struct {
	// default is the lifetime of an answer whose origin states none. Absent by
	// default: what the origin does not make cacheable is not stored.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=28
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || duration(self) <= duration('8760h')",message="must be at most 8760h"
	Default *gatewayv1.Duration `json:"default,omitempty"`

	// min lengthens shorter lifetimes, where a policy may. Default 0s.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=28
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || duration(self) <= duration('8760h')",message="must be at most 8760h"
	Min *gatewayv1.Duration `json:"min,omitempty"`

	// max shortens longer lifetimes. Default 24h.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=28
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || duration(self) <= duration('8760h')",message="must be at most 8760h"
	Max *gatewayv1.Duration `json:"max,omitempty"`

	// origin is Honor (the default), IgnoreFreshness (prohibitions still count),
	// or IgnoreAll (no-store, private and no-cache do not count either: private
	// answers may be shown to others).
	// +optional
	Origin *Origin `json:"origin,omitempty"`

	// heuristic says whether an answer without a lifetime, but with
	// Last-Modified, gets a tenth of its age (RFC 9111, 4.2.2). Default Disabled.
	// +optional
	Heuristic *Heuristic `json:"heuristic,omitempty"`
}

// NegativeTTL is the lifetime of one kind of error answer.
type NegativeTTL struct {
	// status is a status from "400" to "599", a class ("4xx", "5xx"), or
	// "Unreachable": the answers Envoy makes itself when it cannot reach the
	// origin.
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=11
	// +kubebuilder:validation:Pattern=`^([45][0-9][0-9]|[45]xx|Unreachable)$`
	Status string `json:"status,omitempty"`

	// ttl is the lifetime; 0s keeps nothing of this kind.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=28
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || duration(self) <= duration('8760h')",message="must be at most 8760h"
	TTL *gatewayv1.Duration `json:"ttl,omitempty"`
}

// XFetch is probabilistic early refresh (Vattani, Chierichetti, Lowenstein, VLDB
// 2015).
type XFetch struct {
	// mode is Off, Fixed (the default: beta as given), or Auto (beta from the
	// measured rate and cost).
	// +optional
	Mode *XFetchMode `json:"mode,omitempty"`

	// beta scales how early a refresh comes: a decimal number above 0, at most
	// 100, as a string. Default "1.0".
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:Pattern=`^[0-9]{1,3}(\.[0-9]{1,6})?$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[0-9]{1,3}(\\\\.[0-9]{1,6})?$') || double(self) > 0.0 && double(self) <= 100.0",message="beta must be above 0 and at most 100"
	Beta *string `json:"beta,omitempty"`

	// maxLeadPercent bounds how early a refresh may come, as a share of the
	// lifetime. Default 20.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	MaxLeadPercent *int32 `json:"maxLeadPercent,omitempty"`
}

// Stale says when an expired answer may stand in. A window of 0s is off. What
// the origin forbids stays forbidden.
type Stale struct {
	// whileRevalidate is how long after its expiry an answer is served at once,
	// with a refresh behind it (RFC 5861, 3). Default 30s.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=28
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || duration(self) <= duration('8760h')",message="must be at most 8760h"
	WhileRevalidate *gatewayv1.Duration `json:"whileRevalidate,omitempty"`

	// ifError is how long after its expiry an answer stands in for a failing
	// origin (RFC 5861, 4). Default 10m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=28
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || duration(self) <= duration('8760h')",message="must be at most 8760h"
	IfError *gatewayv1.Duration `json:"ifError,omitempty"`

	// softTimeout is how long a request waits for a slow origin, within the
	// window of ifError, before the expired answer stands in. Default 250ms; 0s
	// waits to the end of the fetch.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=28
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || duration(self) <= duration('1m')",message="must be at most 1m"
	SoftTimeout *gatewayv1.Duration `json:"softTimeout,omitempty"`
}

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Coalescing makes one fetch out of many requests for the same thing.
type Coalescing struct {
	// scope is Fleet (the default), Replica or Off.
	// +optional
	Scope *CoalescingScope `json:"scope,omitempty"`

	// maxWait is how long a request waits for the fetch of another; at most 60s.
	// Default 5s.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=28
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || duration(self) <= duration('1m')",message="must be at most 1m"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || duration(self) > duration('0s')",message="must be above 0s; not to wait at all is coalescing.scope: Off"
	MaxWait *gatewayv1.Duration `json:"maxWait,omitempty"`

	// maxWaiters bounds the waiting requests of this policy in one replica.
	// Default 10000.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	MaxWaiters *int32 `json:"maxWaiters,omitempty"`

	// onTimeout says what a request gets that waited for maxWait: Fetch (the
	// default: its own), Stale, or Unavailable (503).
	// +optional
	OnTimeout *OnTimeout `json:"onTimeout,omitempty"`
}

// OriginLimits bounds what the cache asks of the origin.
type OriginLimits struct {
	// maxConcurrentFetches bounds the fetches of this policy that run at one
	// time in one replica. Default 100.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	MaxConcurrentFetches *int32 `json:"maxConcurrentFetches,omitempty"`

	// maxQueue bounds the fetches that wait for their turn. Default 1000.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	MaxQueue *int32 `json:"maxQueue,omitempty"`

	// onOverflow says what a request gets beyond both: Stale (the default; 503
	// where there is none) or Unavailable (503).
	// +optional
	OnOverflow *OnOverflow `json:"onOverflow,omitempty"`
}

// Key says what of a request tells two answers apart, beside scheme, host, path
// and query.
type Key struct {
	// query says which query parameters are part of the key. By default all.
	// +optional
	Query *Query `json:"query,omitempty"`

	// headers are request header fields that are part of the key. Absent differs
	// from empty.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, a.lowerAscii() == b.lowerAscii()))",message="headers must not repeat a name, in whatever case"
	// +kubebuilder:validation:items:XValidation:rule="self.lowerAscii() != 'cookie'",message="Cookie must not be in the key as a whole; name the cookies in key.cookies"
	// +kubebuilder:validation:items:XValidation:rule="self.lowerAscii() != 'host'",message="Host must not be named, the host is always in the key"
	// +kubebuilder:validation:items:XValidation:rule="!(self.lowerAscii() in ['x-forwarded-host', 'x-forwarded-port', 'x-forwarded-prefix', 'forwarded'])",message="X-Forwarded-Host, -Port, -Prefix and Forwarded must not be named, they are always in the key when present"
	// +kubebuilder:validation:items:XValidation:rule="!(self.lowerAscii() in ['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade'])",message="a header field about the connection must not be in the key"
	Headers []gatewayv1.HeaderName `json:"headers,omitempty"`

	// cookies are cookies that are part of the key.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[A-Za-z0-9!#$%&\\'*+.^_`|~-]+$')",message="must be a cookie name: letters, digits or any of !#$%&'*+-.^_`|~"
	Cookies []string `json:"cookies,omitempty"`
}

// Query says which query parameters are part of the key.
type Query struct {
	// mode is Exclude (the default: all but the names) or Include (none but the
	// names).
	// +optional
	Mode *QueryMode `json:"mode,omitempty"`

	// names match parameter names, byte by byte as they are sent.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, a.value == b.value && (has(a.type) ? a.type : 'Exact') == (has(b.type) ? b.type : 'Exact')))",message="names must not repeat a name of the same type"
	Names []NameMatch `json:"names,omitempty"`
}

// NameMatch matches a name.
type NameMatch struct {
	// type is Exact (the default) or Prefix.
	// +optional
	Type *MatchType `json:"type,omitempty"`

	// value is the name, or how it begins.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[!\"$%\\'-:<>-~]*$')",message="must be a parameter name as it is sent, percent-encoded, without = & ; # spaces and control characters"
	Value string `json:"value,omitempty"`
}

// Storage says what is kept.
type Storage struct {
	// maxObjectSize is the largest body that is kept, 1 to 1Gi bytes; larger ones
	// pass by. Default 1Mi.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('1')) >= 0 && quantity(string(self)).compareTo(quantity('1Gi')) <= 0 && double(int(quantity(string(self)).asApproximateFloat())) == quantity(string(self)).asApproximateFloat()",message="must be a whole number of bytes between 1 and 1Gi, such as 64Ki"
	MaxObjectSize *resource.Quantity `json:"maxObjectSize,omitempty"`

	// maxVariants bounds the variants (Vary) kept of one resource. Default 16.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=128
	MaxVariants *int32 `json:"maxVariants,omitempty"`

	// setCookie is Refuse (the default: an answer with Set-Cookie is not kept) or
	// Strip (it is kept without).
	// +optional
	SetCookie *SetCookie `json:"setCookie,omitempty"`

	// requestCookies is Bypass (the default: the policy's lifetimes do not apply
	// to the answer to a request with a cookie outside the key) or Ignore.
	// +optional
	RequestCookies *RequestCookies `json:"requestCookies,omitempty"`

	// sharing is Shared (the default) or Replica (kept in memory only).
	// +optional
	Sharing *Sharing `json:"sharing,omitempty"`
}

// Mesh says what holds where routes are between the workloads of a mesh.
type Mesh struct {
	// serverAuthorization is Require (the default) or SkipOnHit. In a mesh the
	// caller's sidecar asks the cache, so that a hit never comes to the server's
	// side: authorization that is asked for there (an AuthorizationPolicy on the
	// server) is not asked for on a hit, and what one caller was allowed to fetch is
	// answered to all callers of the route. With Require such routes are not cached;
	// SkipOnHit says that this is understood and wanted.
	// +optional
	ServerAuthorization *ServerAuthorization `json:"serverAuthorization,omitempty"`
}

// Tags names answers, so that they can be invalidated together.
type Tags struct {
	// responseHeader is the response header field that lists an answer's tags,
	// divided by spaces or commas. Off by default.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!(self.lowerAscii() in ['set-cookie', 'connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade'])",message="this header field cannot carry tags"
	ResponseHeader *gatewayv1.HeaderName `json:"responseHeader,omitempty"`
}

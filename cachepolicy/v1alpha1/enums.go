package v1alpha1

// Mode says what weir does with the requests a policy covers.
// +kubebuilder:validation:Enum=Enabled;Shadow;Disabled
type Mode string

// Origin says how far the origin's own caching information counts.
// +kubebuilder:validation:Enum=Honor;IgnoreFreshness;IgnoreAll
type Origin string

// Heuristic says whether a lifetime may be guessed from Last-Modified.
// +kubebuilder:validation:Enum=Enabled;Disabled
type Heuristic string

// XFetchMode says how the early-refresh draw gets its beta.
// +kubebuilder:validation:Enum=Off;Fixed;Auto
type XFetchMode string

// CoalescingScope says how far requests are coalesced.
// +kubebuilder:validation:Enum=Fleet;Replica;Off
type CoalescingScope string

// OnTimeout says what a request gets that waited for maxWait.
// +kubebuilder:validation:Enum=Fetch;Stale;Unavailable
type OnTimeout string

// OnOverflow says what a request gets that finds the origin limits used up.
// +kubebuilder:validation:Enum=Stale;Unavailable
type OnOverflow string

// QueryMode says what the query rules name.
// +kubebuilder:validation:Enum=Exclude;Include
type QueryMode string

// MatchType says how a name is compared.
// +kubebuilder:validation:Enum=Exact;Prefix
type MatchType string

// SetCookie says what becomes of an answer with Set-Cookie.
// +kubebuilder:validation:Enum=Refuse;Strip
type SetCookie string

// RequestCookies says what a request cookie outside the key does.
// +kubebuilder:validation:Enum=Bypass;Ignore
type RequestCookies string

// Sharing says where entries are kept.
// +kubebuilder:validation:Enum=Shared;Replica
type Sharing string

// RequestDirectives says whether Cache-Control of requests counts.
// +kubebuilder:validation:Enum=Ignore;Honor
type RequestDirectives string

// ServerAuthorization says what becomes of the authorization on the server's side of a mesh.
// +kubebuilder:validation:Enum=Require;SkipOnHit
type ServerAuthorization string

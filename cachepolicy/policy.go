package cachepolicy

import "time"

// Mode says what weir does with the requests a policy covers.
type Mode string

// The modes of a policy.
const (
	ModeEnabled  Mode = "Enabled"
	ModeShadow   Mode = "Shadow" // decide and count, serve nothing
	ModeDisabled Mode = "Disabled"
)

// OriginMode says how far the origin's own freshness information counts.
type OriginMode string

// The origin modes of a policy's ttl.origin.
const (
	OriginHonor           OriginMode = "Honor"
	OriginIgnoreFreshness OriginMode = "IgnoreFreshness"
	OriginIgnoreAll       OriginMode = "IgnoreAll"
)

// Policy is a CachePolicy after merging, with defaults applied and every
// notation parsed: what the data plane decides by. It is immutable and safe for
// concurrent use.
type Policy struct {
	// Namespace and Name identify the policy in metrics, logs and explain.
	Namespace, Name string
	// Layers are the names of the policies that this one is merged of, the least
	// specific first; empty: it is one policy.
	Layers        []string
	Mode          Mode
	TTL           TTL
	JitterPercent int // 0 to 100
	NegativeTTL   NegativeTTL
	XFetch        XFetch
	Stale         Stale
	Coalescing    Coalescing
	OriginLimits  OriginLimits
	Key           KeyRules
	Storage       Storage
	Tags          Tags
	// HonorRequestDirectives is requestDirectives: Honor.
	HonorRequestDirectives bool
	// ServerAuthorization is mesh.serverAuthorization: whether routes between the
	// workloads of a mesh are cached. The controller decides by it; where the data
	// plane is asked, it has been decided.
	ServerAuthorization ServerAuthorization
}

// String returns namespace/name.
func (p *Policy) String() string { return p.Namespace + "/" + p.Name }

// TTL is the compiled ttl block.
type TTL struct {
	Default    time.Duration // meaningful if HasDefault
	HasDefault bool
	Min, Max   time.Duration
	Origin     OriginMode
	Heuristic  bool
}

// XFetchMode says how the early-refresh draw gets its beta.
type XFetchMode string

// The modes of xfetch.mode.
const (
	XFetchOff   XFetchMode = "Off"
	XFetchFixed XFetchMode = "Fixed"
	XFetchAuto  XFetchMode = "Auto"
)

// XFetch is the compiled xfetch block.
type XFetch struct {
	Mode           XFetchMode
	Beta           float64
	MaxLeadPercent int // share of the lifetime that a refresh may come early, 0 to 100
}

// Stale is the compiled stale block; a window of 0 is off.
type Stale struct {
	WhileRevalidate, IfError, SoftTimeout time.Duration
}

// CoalescingScope says how far requests for one key are coalesced.
type CoalescingScope string

// The scopes of coalescing.scope.
const (
	ScopeFleet   CoalescingScope = "Fleet"
	ScopeReplica CoalescingScope = "Replica"
	ScopeOff     CoalescingScope = "Off"
)

// OnTimeout says what a follower gets that waited for maxWait.
type OnTimeout string

// The values of coalescing.onTimeout.
const (
	OnTimeoutFetch       OnTimeout = "Fetch"
	OnTimeoutStale       OnTimeout = "Stale"
	OnTimeoutUnavailable OnTimeout = "Unavailable"
)

// Coalescing is the compiled coalescing block.
type Coalescing struct {
	Scope      CoalescingScope
	MaxWait    time.Duration
	MaxWaiters int // held requests of this policy, per replica
	OnTimeout  OnTimeout
}

// OnOverflow says what a request gets that finds originLimits used up.
type OnOverflow string

// The values of originLimits.onOverflow.
const (
	OnOverflowStale       OnOverflow = "Stale"
	OnOverflowUnavailable OnOverflow = "Unavailable"
)

// OriginLimits is the compiled originLimits block.
type OriginLimits struct {
	MaxConcurrentFetches, MaxQueue int
	OnOverflow                     OnOverflow
}

// SetCookieMode says what becomes of an answer with Set-Cookie.
type SetCookieMode string

// The values of storage.setCookie.
const (
	SetCookieRefuse SetCookieMode = "Refuse"
	SetCookieStrip  SetCookieMode = "Strip"
)

// RequestCookieMode says what a request cookie outside the key does.
type RequestCookieMode string

// The values of storage.requestCookies.
const (
	RequestCookiesBypass RequestCookieMode = "Bypass"
	RequestCookiesIgnore RequestCookieMode = "Ignore"
)

// Storage is the compiled storage block.
type Storage struct {
	MaxObjectSize  int64 // bytes of body
	MaxVariants    int
	SetCookie      SetCookieMode
	RequestCookies RequestCookieMode
	ReplicaOnly    bool // sharing: Replica
}

// Tags is the compiled tags block; an empty ResponseHeader is off.
type Tags struct {
	ResponseHeader string // lower case
}

// ServerAuthorization says what becomes of the authorization on the server's side
// of a mesh.
type ServerAuthorization string

// The values of mesh.serverAuthorization.
const (
	ServerAuthorizationRequire   ServerAuthorization = "Require"   // nothing is cached in a mesh
	ServerAuthorizationSkipOnHit ServerAuthorization = "SkipOnHit" // a hit does not come there
)

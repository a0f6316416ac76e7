package cachepolicy

import "time"

// Bounds of a policy's fields. Validate holds them; the markers of v1alpha1
// repeat what a schema can say.
const (
	// MaxTargetRefs is the number of targets of one policy, as GEP-713 has it.
	MaxTargetRefs = 16
	// MaxNegativeTTLs is the number of negativeTTL entries.
	MaxNegativeTTLs = 32
	// MaxQueryNames is the number of query matchers: each parameter of a request
	// is compared with each of them.
	MaxQueryNames = 64
	// MaxKeyHeaders and MaxKeyCookies are the numbers of fields and cookies in a
	// key: each costs a look-up per request.
	MaxKeyHeaders = 16
	MaxKeyCookies = 16
	// MaxNameLength is the length in bytes of any name in a policy.
	MaxNameLength = 256
	// MaxLifetime bounds lifetimes and stale windows: a year, which HTTP has long
	// taken as for ever. Three of them added stay far below what a
	// time.Duration holds.
	MaxLifetime = 365 * 24 * time.Hour
	// MaxHold bounds maxWait and softTimeout: for as long a client, a stream and
	// a timer of Envoy are held, and Envoy's max_message_timeout, which ends a
	// hold in any case, is 60s as weir ships it.
	MaxHold = time.Minute
	// MaxWaiters, MaxConcurrentFetches and MaxQueue bound what one policy may
	// hold in one replica; a waiter costs a stream, some 10 KiB.
	MaxWaiters           = 100_000
	MaxConcurrentFetches = 100_000
	MaxQueue             = 100_000
	// MaxObjectSize bounds storage.maxObjectSize in bytes.
	MaxObjectSize = 1 << 30
	// MaxVariants bounds storage.maxVariants: a hit compares variants one by one.
	MaxVariants = 128
	// MaxBeta bounds xfetch.beta.
	MaxBeta = 100
)

// Defaults of the fields that no policy sets, applied after the merge.
const (
	DefaultMaxTTL               = 24 * time.Hour
	DefaultJitterPercent        = 10
	DefaultBeta                 = 1.0 // the optimum of the XFetch paper
	DefaultMaxLeadPercent       = 20
	DefaultWhileRevalidate      = 30 * time.Second
	DefaultIfError              = 10 * time.Minute
	DefaultSoftTimeout          = 250 * time.Millisecond
	DefaultMaxWait              = 5 * time.Second
	DefaultMaxWaiters           = 10_000
	DefaultMaxConcurrentFetches = 100
	DefaultMaxQueue             = 1000
	DefaultMaxObjectSize        = 1 << 20
	DefaultMaxVariants          = 16
)

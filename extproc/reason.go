package extproc

import "github.com/weirproxy/weir/extproc/httpcache"

// Reasons that the machine gives beside those of the HTTP rules; they show as the
// detail of Cache-Status.
const (
	reasonNoLifetime        httpcache.Reason = "no-lifetime"
	reasonTooLarge          httpcache.Reason = "too-large"
	reasonUncacheableLately httpcache.Reason = "uncacheable-lately"
	reasonWaitedTooLong     httpcache.Reason = "waited-too-long"
	reasonNotShareable      httpcache.Reason = "not-shareable"
	reasonStoredByAnother   httpcache.Reason = "stored-by-another"
	reasonOnlyIfCached      httpcache.Reason = "only-if-cached"
	reasonTooManyTags       httpcache.Reason = "too-many-tags"
	reasonInvalidField      httpcache.Reason = "invalid-field"
	reasonOriginFailed      httpcache.Reason = "origin-failed"
	reasonFleetAway         httpcache.Reason = "fleet-away"
	reasonLocalReply        httpcache.Reason = "local-reply"
	reasonForeign304        httpcache.Reason = "foreign-304"
	reasonStaleIfError      httpcache.Reason = "stale-if-error"
	reasonStaleSlow         httpcache.Reason = "stale-slow-origin"
	reasonNegative          httpcache.Reason = "negative"
	reasonMode              httpcache.Reason = "processing-mode"
	reasonProtocol          httpcache.Reason = "protocol-error"
	reasonClientGone        httpcache.Reason = "client-gone"
	reasonRefillFailed      httpcache.Reason = "refill-failed"
	reasonRefillStatus      httpcache.Reason = "refill-status"
	reasonOverflow          httpcache.Reason = "origin-limits"
	reasonRefillsFull       httpcache.Reason = "refills-full"
)

// Package refill makes detached fetches: HTTP requests of weir's own, sent back
// into Envoy, so that routing, TLS, retries and outlier detection stay Envoy's.
// They refresh entries, take over from leaders that went away, and warm up.
//
// A [Fetcher] sends them. [Tokens] mark them, so that weir lets them pass when
// they enter through a listener that has its filter. [Limiter], [Ramp], [Backoff]
// and [Budget] decide when a fetch may start; they are told the time and start no
// goroutine.
package refill

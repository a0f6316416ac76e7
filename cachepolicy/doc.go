// Package cachepolicy says what a CachePolicy means: how policies are merged,
// which one a request falls under, what its cache key is, how long an answer
// lives, when it is refreshed early and when a stale copy may stand in.
//
// The package is pure: no I/O, no clock, no goroutine. Every decision takes the
// clock's reading and its random draws as arguments.
package cachepolicy

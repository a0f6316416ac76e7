// Package httpcache holds the HTTP rules of the cache: RFC 9110 (HTTP), 9111
// (caching), 9211 (Cache-Status), 9213 (targeted cache control) and 5861 (stale
// extensions). May I store, may I serve, how old is it, which variant, what to
// validate.
//
// Every function is pure; the clock's reading is an argument. Each rule names
// its section, and each refusal a [Reason] that shows in Cache-Status, metrics
// and explain.
package httpcache

// Package admin is the admin API of weir-extproc: JSON over HTTP, described in
// docs/reference/admin-api.md. It answers what weir holds and does
// (/v1/status, /v1/entries, /v1/top), what it would do with a request (/v1/explain), and
// takes orders (/v1/warm, /v1/invalidate). pprof is served beside it.
//
// The package checks who asks and what, and leaves the answers to a [Backend].
package admin

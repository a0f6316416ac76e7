// Package feed serves policies and routes to the data plane over xDS (delta), and
// hears from its replicas what they run. See docs/design/0010-feed.md and, for what
// is said on the wire, package cachepolicy/feed.
package feed

// Package feedclient keeps a data plane at what its controller says: it subscribes to
// one replica of the controller, makes a [cachepolicy.Set] of what comes, and tells
// every replica of the controller what this process runs. What was good last stays
// when a resource is at fault or the controller is gone. See docs/design/0010-feed.md.
package feedclient

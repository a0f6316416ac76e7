// Package e2e holds tests of whole installations: real Envoy, weir as built, an origin that follows a script.
// What they run on is e2e/harness.
package e2e

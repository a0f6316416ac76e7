// Package redistest starts real Redis servers for tests: alone, as a Cluster,
// and under Sentinel. A test that cannot start one fails.
package redistest

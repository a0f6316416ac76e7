// Package bench measures weir against the floor (ext_proc servers that decide nothing, e2e/bench/floor) and against
// what a user would pick instead, in one run, as ratios.
//
// CPU is read from the kernel's accounts of each process, in rounds that alternate between what is compared; so other
// work on the machine changes little. Nothing here is a test with a limit of time: the results are rows, which
// docs/performance.md shows.
package bench

//go:generate go run ./cmd/bench -render measured.json -pages ../../docs

// Package simulation plays a day of traffic against the real ext_proc service, in
// one process and on the clock of testing/synctest, and compares ways to run weir:
// docs/simulation.md is what comes of it.
//
// Everything follows from the seed of the scene: who asks when for what, what an
// answer costs the origin, the draws of the service. Two events fall on the same
// nanosecond so rarely that the scheduler has no say.
package simulation

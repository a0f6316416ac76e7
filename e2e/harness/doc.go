// Package harness runs the real parts of a weir installation on loopback, for tests and for the demo: Envoy, weir, an
// origin that follows a script, and clients that measure. It runs on Linux.
//
// Ports come from the system, so any number of tests run side by side. What the processes print is shown only when a
// test fails. A tool that is missing fails the test and names the command that installs it; nothing skips.
//
// The usual order is: StartOrigin, StartEnvoy, StartWeir with the address of Envoy's refill listener, Envoy.SetWeir.
package harness

// Package serve is the process weir-extproc: flags and configuration, TLS,
// health, metrics, the admin port, the gRPC server, and the order in which all
// of it starts and stops. What a request gets is decided in package extproc.
package serve

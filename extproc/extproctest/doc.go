// Package extproctest plays Envoy's part against the ext_proc service, in one
// process and without a network: streams in memory, a clock that may be
// testing/synctest's, an origin that is a function. What it knows of Envoy is what
// a cache needs: the request phase, the response phase, the body that a mode
// override asks for, ImmediateResponse and StreamedImmediateResponse,
// CONTINUE_AND_REPLACE, and that a stream that ends or fails lets traffic flow.
package extproctest

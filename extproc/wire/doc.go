// Package wire reads and writes the messages of Envoy's ext_proc protocol
// (envoy.service.ext_proc.v3) without the generated types: a request is parsed
// in one pass into [Message], and replies are built as pieces of protobuf that
// are sent as they lie in memory.
//
// The reason is the hit path. A stored answer is kept as the bytes of a
// ProcessingResponse; only Age, Cache-Status and the access-log metadata are
// made per hit, as a second part of the same protobuf message, which Envoy
// merges with the first (protobuf: the last value of a scalar wins, messages
// are merged, repeated fields are appended). No body is copied.
//
// Field numbers are checked against go-control-plane by the package's tests.
package wire

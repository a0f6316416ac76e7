package wire

import "google.golang.org/protobuf/encoding/protowire"

// Field numbers of ProcessingRequest.
const (
	fieldRequestHeaders   protowire.Number = 2
	fieldResponseHeaders  protowire.Number = 3
	fieldRequestBody      protowire.Number = 4
	fieldResponseBody     protowire.Number = 5
	fieldRequestTrailers  protowire.Number = 6
	fieldResponseTrailers protowire.Number = 7
	fieldAttributes       protowire.Number = 9
	fieldObservability    protowire.Number = 10
	fieldProtocolConfig   protowire.Number = 11
)

// Field numbers of ProcessingResponse.
const (
	replyRequestHeaders   protowire.Number = 1
	replyResponseHeaders  protowire.Number = 2
	replyRequestBody      protowire.Number = 3
	replyResponseBody     protowire.Number = 4
	replyRequestTrailers  protowire.Number = 5
	replyResponseTrailers protowire.Number = 6
	replyImmediate        protowire.Number = 7
	replyMetadata         protowire.Number = 8
	replyModeOverride     protowire.Number = 9
	replyMessageTimeout   protowire.Number = 10
	replyStreamed         protowire.Number = 11
)

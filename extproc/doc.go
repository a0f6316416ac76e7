// Package extproc is weir's data plane: an Envoy external-processing service
// that answers requests from a cache.
//
// What happens to a request is decided by the stream machine ([machine]): it is
// given what happened (a message from Envoy, the store's answer, news of a
// flight, a timer) together with the clock's reading, and returns what to do
// about it (a list of [effect]). It does no I/O, reads no clock and starts no
// goroutine, so a whole dialogue can be written down and replayed: see
// testdata/*.txt. The gRPC loop around it ([Service]) carries the effects out.
//
// The way of a request through the files of this package:
//
//	request.go   request_headers: which policy, may the cache take part, which key
//	read.go      the store answered: serve, serve and refresh, wait, lead or follow
//	hold.go      while a request is held: news of the flight, timers, Envoy's own reply
//	response.go  response_headers, body and trailers of a request that went on
//	admit.go     may this response be stored and shared? (also asked by refills)
//	answer.go    the bytes of an answer: 200, 304, 206, 416, HEAD
package extproc

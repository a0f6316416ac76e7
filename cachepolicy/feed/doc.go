// Package feed is the contract between the controller and the data plane: what the
// controller says of policies and routes, and what the replicas report back. Both
// sides import it; it knows neither.
//
// What is configured travels as resources of xDS (delta), each a
// TypedExtensionConfig whose typed_config is a google.protobuf.BytesValue around the
// JSON of one type of this package. Policies and the rules of routes are resources of
// their own, so that a Gateway's policy over ten thousand routes is one resource, and
// a change costs bytes in proportion.
//
// What is reported, and what the controller asks the replicas to do, travels on a
// stream beside it (see Report and Command): a replica reports to every replica of
// the controller, so that whichever is elected knows all.
package feed

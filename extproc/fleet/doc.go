// Package fleet is what the processes of a fleet must agree on. For one process
// that is the invalidation stamps; leases and the stream of stamps in Redis come
// with the shared store.
package fleet

// Package fleet is what the processes of a fleet must agree on: who fetches
// ([Lease]), and what is invalid ([Stamps]). Alone, a process has its Stamps and
// needs nothing else of this package; with others it does both through a Redis
// that they share ([Fleet]).
//
// # Leases
//
// Whoever wants to fetch a variant of a resource claims it, in one round trip
// (Acquire). The claim brings the answer if somebody has stored it meanwhile, or
// the lease, or says who holds it; then Wait waits for what becomes of that fetch.
// A lease has a fencing token above all that were given out before, lives for a
// few seconds, and is renewed while its fetch makes progress. Commit stores only
// under the newest token, so an owner that slept can harm nobody.
//
// A lease saves the origin work. That no wrong answer is served does not depend
// on it: should Redis fail over and forget leases, two processes fetch, and both
// answers are good.
//
// # Invalidation
//
// An invalidation is a stamp at a position in one sequence. Every process
// follows the sequence and knows up to which position it has seen all of it; an
// entry carries as its birth that position of its fetcher when the fetch began.
// Readers, wherever they are, refuse an entry with a covering stamp that is
// younger than its birth. So no late fill can win, whoever commits it.
//
// # Trouble
//
// All calls have a time limit, and none is needed to answer a request: when Redis
// is away a process goes on by itself, and what it invalidates meanwhile is told
// to the others later. A process that was cut off serves nothing from before
// until it has caught up (CaughtUp).
//
// docs/design/0005-fleet.md has the reasons, and what happens in each case.
package fleet

// Package flight coalesces the requests of one process: of all that want the
// same answer at the same time one leads and fetches it, the others follow.
//
// A flight is one fetch that others may wait for. It begins when somebody joins
// an [ID] that nobody is fetching, and it lives through these states:
//
//	waiting    the leader has no answer yet; followers wait for their News
//	published  the head of an answer is known and may be shared; whoever joins
//	           now reads the body as it grows
//	ended      nobody finds the flight any more; the next to join begins another
//
// What must stay true, whatever the order of events:
//
//   - An ID has at most one flight, and a flight at most one [Lead].
//   - A waiter gets exactly one [News] unless it leaves before, and no waiter is
//     forgotten: whichever way a lead ends, everybody who waits is told.
//   - Nobody inherits another's cancellation: a leader that goes away hands the
//     flight over, a waiter that leaves starts nothing.
//   - The group keeps no time for waiters. Their deadline only says who has the
//     most time left when somebody must be promoted; the owner of a waiter ends
//     its wait with Leave.
//
// A Lead need not fetch: the leader of a process that finds the lease of the
// fleet taken waits for the other process and publishes what that one stored.
//
// A caller that becomes the leader looks into the store once more before it
// fetches: between its miss and its Join another flight may have committed and
// finished.
package flight

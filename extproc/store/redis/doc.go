// Package redis is the store that the replicas of a fleet share.
//
// # Layout
//
// All keys of one resource carry the same hash tag, a digest of its cache key, so
// that one script can work on them in a Cluster too:
//
//	weir:{D}                 hash: g (generation), last (last token), vary (names
//	                         of the newest variant) and, per variant V, v:V
//	weir:{D}:v:V             head: everything about the response but its body
//	weir:{D}:b:B:I           chunk I of body B, a random number of its writer
//	weir:{D}:l:V             lease (package fleet)
//
// A variant's field v:V is what scripts decide by: token, when it is no longer
// fresh and no longer of use, birth, and where its body lies. Nothing of it is
// believed when an answer is served: head and chunks are authenticated with keys
// that Redis does not have, so that who can write to Redis cannot speak to
// users. An entry that is not whole, not authentic, or of an unknown format is a
// miss, and counted.
//
// # Time
//
// Instants are Redis's own (TIME, in microseconds), read in the script that
// reads or writes the record. A head says when, by that clock, the response
// arrived; a reader learns how long ago that was and puts it on its own clock.
// So replicas whose clocks differ agree on ages. See [Store.Commit].
//
// docs/design/0005-fleet.md has the reasons.
package redis

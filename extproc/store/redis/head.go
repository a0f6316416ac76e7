package redis

import (
	"time"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/store"
)

// Formats of heads and chunks. A release writes the newest and reads it and the
// one before, so that an update under way costs no entries that were there.
const (
	format1 = 1 // ages in milliseconds; every body under the token of its commit
	format2 = 2 // microseconds; a body has a number of its own; cost of the fetch
	format  = format2
)

// Bounds of what is read. Heads come authenticated from a process of this fleet;
// the bounds hold off mistakes.
const (
	maxHead   = 512 << 10 // bytes of one head
	maxHeads  = 4 << 20   // bytes of all heads of a resource
	maxFields = 4096      // lines of a header
	maxTags   = 1024
	maxVary   = 64
	maxChunk  = sealSize + store.ChunkSize
)

// maxLife bounds how long Redis keeps anything: more than three of the longest
// windows a policy can set, and far from what a number in a script holds.
const maxLife = 4 * cachepolicy.MaxLifetime

// head is everything about a stored response but its body.
type head struct {
	entry    store.Entry // without Body, Wire and ResponseTime
	received int64       // when the response arrived: Redis's time in µs
	length   int64       // of the body
}

// chunks returns how many chunks the body has.
func (h *head) chunks() int { return int((h.length + store.ChunkSize - 1) / store.ChunkSize) }

// heldFor returns how long ago the response arrived, at redisNow.
func (h *head) heldFor(redisNow int64) time.Duration {
	return time.Duration(min(max(redisNow-h.received, 0), int64(maxLife/time.Microsecond))) * time.Microsecond
}

// on returns the entry as it is for a process whose clock read local when
// Redis's read redisNow, or a little earlier.
func (h *head) on(local time.Time, redisNow int64) *store.Entry {
	e := h.entry
	e.ResponseTime = local.Add(-h.heldFor(redisNow))
	return &e
}

// after returns the instant d after the response arrived, in Redis's time.
func (h *head) after(d time.Duration) int64 {
	return h.received + min(max(d, 0), maxLife).Microseconds()
}

// freshUntil returns when the response stops to be fresh, in Redis's time.
func (h *head) freshUntil() int64 {
	if h.entry.ValidateAlways {
		return 0
	}
	return h.after(h.entry.Lifetime - h.entry.InitialAge)
}

// usefulUntil returns when the response is of no more use, in Redis's time.
func (h *head) usefulUntil() int64 {
	return h.after(h.entry.ExpiresAt().Sub(h.entry.ResponseTime))
}

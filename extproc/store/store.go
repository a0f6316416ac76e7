package store

import (
	"context"
	"errors"
	"time"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/httpcache"
)

// Errors of a [Store].
var (
	// ErrNotWhole refuses an entry whose body has not ended, broke, or was
	// trimmed (RFC 9111 §3.3).
	ErrNotWhole = errors.New("body is not whole")
	// ErrTooLarge refuses an entry that is larger than the store may be.
	ErrTooLarge = errors.New("entry is larger than the store's limit")
)

// Result is the answer of [Store.Get].
type Result struct {
	// Entry is the stored response selected for the request, or nil. It may be
	// stale; it is never past ExpiresAt.
	Entry *Entry
	// Vary is the selected entry's or, for a miss, that of the newest variant.
	Vary httpcache.Vary
	// Known says that some variant of the resource is stored.
	Known bool
}

// Store keeps entries by key and variant. Implementations are safe for
// concurrent use and hand out entries that nobody may change. The time is the
// caller's: now never goes back by more than clocks do, and a store that is
// asked with an old now may answer as of a newer one.
type Store interface {
	// Get selects the stored response for a request with fields req. It compares
	// the whole canonical key, not the hash alone.
	Get(ctx context.Context, key *cachepolicy.Key, req httpcache.Fields, now time.Time) (Result, error)
	// Put stores e in place of the same variant of its key. When the key then has
	// more than maxVariants (at least 1), the oldest go. An entry past ExpiresAt
	// replaces its variant by nothing. The errors ErrNotWhole and ErrTooLarge
	// leave what was stored as it was.
	Put(ctx context.Context, e *Entry, maxVariants int, now time.Time) error
	// Update replaces all variants of a key that are of use by what fn makes of
	// them, newest first, in one step; an empty list deletes them. fn is not
	// called when nothing is stored, may be called again when another writer came
	// between, and must return entries of the same key with whole bodies, new or
	// as given, without changing those it is given.
	Update(ctx context.Context, key *cachepolicy.Key, now time.Time, fn func([]*Entry) []*Entry) error
	// Delete removes all variants of a key.
	Delete(ctx context.Context, key *cachepolicy.Key) error
}

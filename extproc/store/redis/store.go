package redis

import (
	"context"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/store"
)

// Defaults of [Options].
const (
	DefaultMaxObjectSize = 64 << 20
	DefaultTimeout       = 250 * time.Millisecond
)

// Options are the settings of a [Store].
type Options struct {
	// Keys authenticate entries; required.
	Keys *Keyring
	// MaxObjectSize bounds the body of an entry, in bytes: larger ones are not
	// written, and not read whatever their head says. 0 means 64 MiB.
	MaxObjectSize int64
	// Timeout bounds one round trip; 0 means 250 ms.
	Timeout time.Duration
	// Prepare makes of an entry that was read what the process keeps, such as the
	// bytes of its hits; nil leaves it as it is.
	Prepare func(*store.Entry) *store.Entry
	// Now is the local clock; nil means time.Now.
	Now func() time.Time

	clockLua string // a test's own idea of Redis's time
}

// Store is a [store.Store] in Redis, shared by all processes that have the same
// keys. Use it behind a [Guard], or a Redis that hangs costs every call Timeout.
type Store struct {
	opts   Options
	client goredis.UniversalClient
	clock  Clock

	read, commit, update, remove *Script

	reads, bodies singleflight.Group
	counts        counts
}

var _ store.Store = (*Store)(nil)

// New returns a store in the Redis of client.
func New(client goredis.UniversalClient, o Options) (*Store, error) {
	if o.Keys == nil {
		return nil, ErrNoKeys
	}
	if o.MaxObjectSize <= 0 {
		o.MaxObjectSize = DefaultMaxObjectSize
	}
	o.MaxObjectSize = min(o.MaxObjectSize, cachepolicy.MaxObjectSize)
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Prepare == nil {
		o.Prepare = func(e *store.Entry) *store.Entry { return e }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.clockLua == "" {
		o.clockLua = mustRead("scripts/clock.lua")
	}
	s := &Store{opts: o, client: client}
	s.read, s.commit, s.update, s.remove = s.script("read"), s.script("commit"), s.script("update"), s.script("delete")
	return s, nil
}

// Client returns the client that the store uses.
func (s *Store) Client() goredis.UniversalClient { return s.client }

// Delete implements [store.Store].
func (s *Store) Delete(ctx context.Context, key *cachepolicy.Key) error {
	n := NameOf(key)
	_, err := s.Run(ctx, s.remove, []string{n.Primary()})
	s.forget(n)
	return err
}

// forget lets no later read join one that began before now, so that a process
// reads what it wrote.
func (s *Store) forget(n Name) { s.reads.Forget(n.tag) }

// Stats counts what a [Store] did.
type Stats struct {
	Hits, Misses uint64
	Commits      uint64 // entries written
	Fenced       uint64 // not written: a newer token was out
	Outlived     uint64 // not written: the fetch began before an invalidation that the stored one's has seen
	TooLarge     uint64 // not written
	Refused      Refusals
}

// Refusals counts what was found in Redis and not believed, by reason.
type Refusals struct {
	MAC        uint64 // not made with a key of ours, for another place, or altered
	Format     uint64 // of a release that is too new or too old
	Malformed  uint64
	Incomplete uint64 // a part of the body is not there
	TooLarge   uint64
}

type counts struct {
	hits, misses, commits, fenced, outlived, tooLarge  atomic.Uint64
	mac, format, malformed, incomplete, tooLargeToRead atomic.Uint64
}

// Stats returns the counts so far.
func (s *Store) Stats() Stats {
	c := &s.counts
	return Stats{
		Hits: c.hits.Load(), Misses: c.misses.Load(), Commits: c.commits.Load(), Fenced: c.fenced.Load(),
		Outlived: c.outlived.Load(), TooLarge: c.tooLarge.Load(),
		Refused: Refusals{
			MAC: c.mac.Load(), Format: c.format.Load(), Malformed: c.malformed.Load(),
			Incomplete: c.incomplete.Load(), TooLarge: c.tooLargeToRead.Load(),
		},
	}
}

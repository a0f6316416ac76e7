package redis

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/store"
)

// Verdict is what became of a commit.
type Verdict string

// The verdicts of [Store.Commit].
const (
	Stored   Verdict = "stored"
	Expired  Verdict = "expired"  // of no more use: its variant is gone
	Outlived Verdict = "outlived" // an answer that has seen a later invalidation is there, and stays
	Fenced   Verdict = "fenced"   // a newer token was given out: nothing was done
)

// What else the script may say, for the writer to try again.
const (
	offClock Verdict = "clock"
	noToken  Verdict = "token"
	noBody   Verdict = "body"
	changed  Verdict = "changed"
	updated  Verdict = "updated"
)

// Errors of writing.
var (
	// ErrContended says that other writers came between again and again.
	ErrContended = errors.New("too many writers of one resource")
	errRejected  = errors.New("unexpected verdict")
)

// maxAttempts bounds how often a write is tried again when another came between.
const maxAttempts = 100

// yield lets other writers go first: for a random time up to a bound that
// doubles from attempt to attempt, up to 20 ms.
func yield(ctx context.Context, attempt int) error {
	limit := min(100*time.Microsecond<<min(attempt, 16), 20*time.Millisecond)
	t := time.NewTimer(mathrand.N(limit))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Fence is the lease under which an entry was fetched.
type Fence struct {
	Variant string // of the lease, which is not that of the entry if Vary became known by it
	Owner   string
	Token   uint64
	Clock   *Clock // of the Redis that gave the lease
	// Old is the entry whose body the new one shares, after a 304; nil if the body
	// is new.
	Old *store.Entry
}

// Put implements [store.Store]. The error store.ErrTooLarge also refuses an entry
// whose head exceeds what readers accept. An entry with Vary * is not stored.
func (s *Store) Put(ctx context.Context, e *store.Entry, maxVariants int, _ time.Time) error {
	_, _, err := s.Commit(ctx, e, nil, maxVariants)
	return err
}

// Commit stores e in place of its variant: in one round trip if the body has at
// most 64 KiB, else with one more for each MiB. With a fence it does so only if
// the fence's token is the newest, and ends its lease; without, under a token of
// its own. It returns the entry as the process should keep it: as given, with its
// place in Redis if it is there.
//
// The time of arrival is written in Redis's time, as the writer knows it. The
// script compares that with its own clock and refuses what is more than 500 ms
// behind (a writer that was stopped in between) or 20 ms ahead; the writer then
// tries again with what it learned.
func (s *Store) Commit(ctx context.Context, e *store.Entry, f *Fence, maxVariants int) (Verdict, *store.Entry, error) {
	if !e.Body.Whole() {
		return "", e, store.ErrNotWhole
	}
	if e.Vary.Any && f == nil {
		return Expired, e, nil
	}
	w := s.newWriting(e, f)
	defer s.forget(w.name)
	for attempt := range maxAttempts {
		verdict, err := s.tryCommit(ctx, w, maxVariants)
		if err == nil && verdict == noToken {
			err = yield(ctx, attempt)
		}
		switch {
		case err != nil:
			return "", e, err
		case verdict == offClock || verdict == noToken:
		case verdict == noBody:
			w.body, w.isNew, w.written = newBody(), true, false
		default:
			return s.committed(ctx, w, verdict)
		}
	}
	return "", e, ErrContended
}

// committed counts, and cleans up behind a commit that was refused.
func (s *Store) committed(ctx context.Context, w *writing, verdict Verdict) (Verdict, *store.Entry, error) {
	switch verdict {
	case Stored:
		s.counts.commits.Add(1)
		e := *w.entry
		e.Shared = store.Shared{Token: w.token, Body: w.body}
		return verdict, &e, nil
	case Fenced:
		s.counts.fenced.Add(1)
	case Outlived:
		s.counts.outlived.Add(1)
	case Expired:
	default:
		return "", w.entry, fmt.Errorf("redis commit: %w %q", errRejected, verdict)
	}
	return verdict, w.entry, s.removeChunks(ctx, w)
}

// writing is one entry on its way into Redis.
type writing struct {
	name    Name
	variant string
	entry   *store.Entry
	fence   *Fence
	clock   *Clock
	token   uint64
	body    uint64 // number that the body lies under
	isNew   bool   // the body is not there yet
	written bool   // its chunks were written
}

func (s *Store) newWriting(e *store.Entry, f *Fence) *writing {
	w := &writing{
		name: NameOf(&e.Key), variant: VariantName(e.Vary.Names, e.VaryValues), entry: e, fence: f,
		clock: &s.clock, body: newBody(), isNew: true,
	}
	if f == nil {
		return w
	}
	w.token, w.clock = f.Token, f.Clock
	if old := f.Old; old != nil && old.Shared.Body != 0 && old.Body.Len() == e.Body.Len() {
		w.body, w.isNew = old.Shared.Body, false
	}
	return w
}

// newBody returns a number for a body, which no other body has: its chunks are
// bound to it, so that those of two writers cannot be mixed.
func newBody() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return binary.BigEndian.Uint64(b[:]) | 1
}

// head returns the head to write, for a writer whose clock reads now.
func (w *writing) head(redisNow int64, now time.Time) *head {
	h := &head{entry: *w.entry, length: w.entry.Body.Len()}
	h.received = redisNow - now.Sub(w.entry.ResponseTime).Microseconds()
	h.entry.Shared = store.Shared{Token: w.token, Body: w.body}
	h.entry.Body, h.entry.Wire, h.entry.ResponseTime = nil, nil, time.Time{}
	return h
}

// tryCommit makes one attempt. What it learns of the time and of tokens is used
// by the next.
func (s *Store) tryCommit(ctx context.Context, w *writing, maxVariants int) (Verdict, error) {
	now := s.opts.Now()
	redisNow, known := w.clock.at(now)
	if w.fence == nil && w.token == 0 && known {
		w.token = uint64(max(redisNow, 1))
	}
	h := w.head(redisNow, now)
	sealed, chunk, err := s.seal(w, h)
	if err != nil {
		s.counts.tooLarge.Add(1)
		return "", err
	}
	if known { // else the script only tells the time
		if err := s.writeChunks(ctx, w, h); err != nil {
			return "", err
		}
	}
	owner, lease := "", w.variant
	if w.fence != nil {
		owner, lease = w.fence.Owner, w.fence.Variant
	}
	n := w.name
	r, err := s.Run(ctx, s.commit,
		[]string{n.Primary(), n.Lease(lease), n.Lease(w.variant), n.Lease(AnyVariant)},
		w.variant, VaryNames(w.entry.Vary.Names), w.token, redisNow, h.freshUntil(), s.usefulUntil(w, h),
		birth(h.entry.Birth), w.body, h.chunks(), min(max(maxVariants, 1), cachepolicy.MaxVariants), sealed, chunk, owner,
		n.Channel(), WakeCommitted.Message(n, lease, w.token), WakeUncacheable.Message(n, lease, w.token))
	if err != nil {
		return "", err
	}
	verdict := Verdict(r.Text(0))
	switch verdict {
	case offClock:
		w.clock = r.Clock
	case noToken:
		w.clock, w.token = r.Clock, r.Uint(1)
	}
	return verdict, nil
}

// usefulUntil is that of the head; an entry that nobody may be answered with is
// of no use at once.
func (s *Store) usefulUntil(w *writing, h *head) int64 {
	if w.entry.Vary.Any {
		return 0
	}
	return h.usefulUntil()
}

// seal returns the head and, if the body is new and has one chunk, that chunk,
// as they lie in Redis.
func (s *Store) seal(w *writing, h *head) (sealed, chunk []byte, err error) {
	e := &h.entry
	data := h.encode()
	if h.length > s.opts.MaxObjectSize || len(data)+sealSize > maxHead || len(e.Header) > maxFields ||
		len(e.Tags) > maxTags || len(e.Vary.Names) > maxVary {
		return nil, nil, store.ErrTooLarge
	}
	sealed = s.opts.Keys.seal(format, headScope(w.name, w.variant), data)
	if w.isNew && h.chunks() == 1 {
		chunk = s.sealChunk(w.name, h, w.entry.Body, 0)
	}
	return sealed, chunk, nil
}

func (s *Store) sealChunk(n Name, h *head, body *store.Body, i int) []byte {
	var parts [][]byte
	for part := range body.Bytes(int64(i)*store.ChunkSize, store.ChunkSize) {
		parts = append(parts, part)
	}
	return s.opts.Keys.seal(format, chunkScope(n, h.entry.Shared.Body, i, i == h.chunks()-1), parts...)
}

// writeChunks writes a new body of several chunks, once.
func (s *Store) writeChunks(ctx context.Context, w *writing, h *head) error {
	if !w.isNew || h.chunks() < 2 || w.written {
		return nil
	}
	w.written = true
	return s.putChunks(ctx, w.name, h, w.entry.Body)
}

// putChunks writes all chunks of a body, a MiB at a time.
func (s *Store) putChunks(ctx context.Context, n Name, h *head, body *store.Body) error {
	life := time.Duration(max(h.usefulUntil()-h.received, 0))*time.Microsecond + time.Second
	count := h.chunks()
	for first := 0; first < count; first += readAhead {
		err := s.pipelined(ctx, func(ctx context.Context, p goredis.Pipeliner) {
			for i := first; i < min(first+readAhead, count); i++ {
				p.Set(ctx, n.chunk(h.entry.Shared.Body, i), s.sealChunk(n, h, body, i), life)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// removeChunks removes the chunks that a refused commit has written.
func (s *Store) removeChunks(ctx context.Context, w *writing) error {
	if !w.written {
		return nil
	}
	count := (&head{length: w.entry.Body.Len()}).chunks()
	return s.pipelined(ctx, func(ctx context.Context, p goredis.Pipeliner) {
		for i := range count {
			p.Unlink(ctx, w.name.chunk(w.body, i))
		}
	})
}

func (s *Store) pipelined(ctx context.Context, fill func(context.Context, goredis.Pipeliner)) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	_, err := s.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
		fill(ctx, p)
		return nil
	})
	if err != nil {
		return fmt.Errorf("redis body: %w", err)
	}
	return nil
}

// birth is the form in which scripts compare births.
func birth(b uint64) string { return fmt.Sprintf("%020d", b) }

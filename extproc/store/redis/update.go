package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/store"
)

// ErrForeignKey refuses an Update whose function returned an entry of another key.
var ErrForeignKey = errors.New("update returned an entry of another key")

// Update implements [store.Store]. It reads all variants with their bodies and
// writes those that changed; an entry that keeps its body writes its head alone.
func (s *Store) Update(
	ctx context.Context, key *cachepolicy.Key, now time.Time, fn func([]*store.Entry) []*store.Entry,
) error {
	n := NameOf(key)
	defer s.forget(n)
	for attempt := range maxAttempts {
		res, err := s.load(ctx, n, key)
		if err != nil {
			return err
		}
		old, err := s.bodiesOf(ctx, res, now)
		if err != nil || len(old) == 0 {
			return err
		}
		entries := fn(slices.Clone(old))
		if err := checkUpdate(key, entries); err != nil {
			return err
		}
		verdict, err := s.replace(ctx, res, old, entries)
		switch {
		case err != nil || verdict == updated:
			return err
		case verdict != changed:
			return fmt.Errorf("redis update: %w %q", errRejected, verdict)
		}
		if err := yield(ctx, attempt); err != nil {
			return err
		}
	}
	return ErrContended
}

func checkUpdate(key *cachepolicy.Key, entries []*store.Entry) error {
	for _, e := range entries {
		switch {
		case e.Key.Canonical != key.Canonical:
			return ErrForeignKey
		case !e.Body.Whole():
			return store.ErrNotWhole
		}
	}
	return nil
}

// bodiesOf returns the variants that are of use with their bodies, newest first.
// One whose body is not whole is left out, and so removed by what comes next.
func (s *Store) bodiesOf(ctx context.Context, res *resource, now time.Time) ([]*store.Entry, error) {
	var list []*store.Entry
	for i := range res.variants {
		v := &res.variants[i]
		if !v.entry.Useful(now) {
			continue
		}
		body, err := s.body(ctx, res.name, v)
		if errors.Is(err, errIncomplete) {
			s.counts.incomplete.Add(1)
			continue
		}
		if err != nil {
			return nil, err
		}
		e := *v.entry
		e.Body = body
		list = append(list, &e)
	}
	return list, nil
}

// replace puts entries, newest first, in the place of old, which was read.
func (s *Store) replace(ctx context.Context, res *resource, old, entries []*store.Entry) (Verdict, error) {
	list := make([]*writing, len(entries))
	for i, e := range entries {
		w := &writing{name: res.name, variant: VariantName(e.Vary.Names, e.VaryValues), entry: e}
		w.body, w.isNew = newBody(), true
		for _, o := range old {
			if o.Body == e.Body {
				w.body, w.isNew = o.Shared.Body, false
			}
		}
		list[i] = w
	}
	clock, lowest := res.clock, res.last+1
	for range maxAttempts {
		now := s.opts.Now()
		redisNow, _ := clock.at(now)
		args, err := s.updateArgs(ctx, list, old, max(lowest, uint64(redisNow)), redisNow, now)
		if err != nil {
			return "", err
		}
		r, err := s.Run(ctx, s.update, []string{res.name.Primary()},
			append([]any{res.generation, redisNow}, args...)...)
		if err != nil {
			return "", err
		}
		switch verdict := Verdict(r.Text(0)); verdict {
		case offClock:
		case noToken:
			lowest = r.Uint(1)
		case updated:
			return verdict, nil
		case noBody:
			return changed, s.removeAll(ctx, list)
		default:
			return verdict, s.removeAll(ctx, list)
		}
		clock = r.Clock
	}
	return "", ErrContended
}

// updateArgs gives tokens from lowest up to what changed and to what has to stand
// before something older, and returns the arguments of the script from the third
// on.
func (s *Store) updateArgs(
	ctx context.Context, list []*writing, old []*store.Entry, lowest uint64, redisNow int64, now time.Time,
) ([]any, error) {
	next, before := lowest, uint64(0)
	var tail []any
	for _, w := range slices.Backward(list) {
		keep := slices.Contains(old, w.entry) && w.entry.Shared.Token > before
		w.token = w.entry.Shared.Token
		if !keep {
			w.token = next
			next++
		}
		before = w.token
		h := w.head(redisNow, now)
		var sealed, chunk []byte
		if !keep {
			var err error
			if sealed, chunk, err = s.seal(w, h); err != nil {
				return nil, err
			}
			if err := s.writeChunks(ctx, w, h); err != nil {
				return nil, err
			}
		}
		tail = append(tail, w.variant, w.token, h.freshUntil(), h.usefulUntil(), birth(h.entry.Birth), w.body,
			h.chunks(), sealed, chunk)
	}
	first, names := uint64(0), ""
	if next > lowest {
		first = lowest
	}
	if len(list) > 0 {
		names = VaryNames(list[0].entry.Vary.Names)
	}
	return append([]any{first, names}, tail...), nil
}

// removeAll removes the chunks that were written for an update that was refused.
func (s *Store) removeAll(ctx context.Context, list []*writing) error {
	for _, w := range list {
		if err := s.removeChunks(ctx, w); err != nil {
			return err
		}
		w.written = false
	}
	return nil
}

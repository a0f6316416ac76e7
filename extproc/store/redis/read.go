package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store"
)

// ErrRefused says that what was found in Redis is not to be believed, or not
// whole. It is a miss, and counted in Stats.
var ErrRefused = errors.New("what Redis has is not to be believed")

// errIncomplete says that a part of a body is missing or not authentic.
var errIncomplete = fmt.Errorf("%w: its body is not whole", ErrRefused)

// resource is what was read of a resource: its variants, newest first. It is
// shared by readers.
type resource struct {
	name       Name
	generation string
	last       uint64
	variants   []variant
	clock      *Clock
}

// variant is one variant without its body, except as chunk.
type variant struct {
	name  string
	head  *head
	entry *store.Entry // on the local clock; Body is nil
	chunk string       // of a body of one chunk, if it came along
}

// Get implements [store.Store]: in one round trip where the resource has one
// variant of up to 64 KiB, else in two.
func (s *Store) Get(
	ctx context.Context, key *cachepolicy.Key, req httpcache.Fields, now time.Time,
) (store.Result, error) {
	n := NameOf(key)
	for range 2 { // once more if the body went while we read: something newer is there
		res, err := s.share(ctx, n, key)
		if err != nil {
			return store.Result{}, err
		}
		r := store.Look(res.entries(), req, now)
		if r.Entry == nil {
			s.counts.misses.Add(1)
			return r, nil
		}
		e, err := s.whole(ctx, n, res.find(r.Entry))
		if err == nil {
			s.counts.hits.Add(1)
			r.Entry = e
			return r, nil
		}
		if !errors.Is(err, errIncomplete) {
			return store.Result{}, err
		}
		s.forget(n)
	}
	s.counts.incomplete.Add(1)
	s.counts.misses.Add(1)
	return store.Result{}, nil
}

// share reads a resource together with all who ask for it at the same time: a
// burst for a cold key is one read.
func (s *Store) share(ctx context.Context, n Name, key *cachepolicy.Key) (*resource, error) {
	v, err := join(ctx, s.reads.DoChan(n.tag, func() (any, error) {
		return s.load(context.WithoutCancel(ctx), n, key)
	}))
	res, _ := v.(*resource)
	return res, err
}

// load reads a resource.
func (s *Store) load(ctx context.Context, n Name, key *cachepolicy.Key) (*resource, error) {
	r, err := s.Run(ctx, s.read, []string{n.Primary()}, cachepolicy.MaxVariants, maxHead, maxHeads, maxChunk)
	if err != nil {
		return nil, err
	}
	res := &resource{name: n, generation: r.Text(0), last: r.Uint(1), clock: r.Clock}
	list := r.List(2)
	for ; len(list) >= 3; list = list[3:] {
		if v, ok := s.decode(n, key, list[0], list[1], list[2], r); ok {
			res.variants = append(res.variants, v)
		}
	}
	if len(res.variants) == 1 {
		res.variants[0].chunk = r.Text(3)
	}
	return res, nil
}

// decode opens a head. Of the record, which anybody may have written, only the
// token counts: it must be that of the head.
func (s *Store) decode(n Name, key *cachepolicy.Key, name, record, sealed string, r *Reply) (variant, bool) {
	format, data, ok := s.opts.Keys.open(headScope(n, name), []byte(sealed))
	if !ok {
		s.counts.mac.Add(1)
		return variant{}, false
	}
	h, err := decode(format, data)
	switch {
	case errors.Is(err, errFormat):
		s.counts.format.Add(1)
		return variant{}, false
	case err != nil, h.entry.Key.Canonical != key.Canonical,
		!strings.HasPrefix(record, strconv.FormatUint(h.entry.Shared.Token, 10)+" "),
		VariantName(h.entry.Vary.Names, h.entry.VaryValues) != name:
		s.counts.malformed.Add(1)
		return variant{}, false
	case h.length > s.opts.MaxObjectSize:
		s.counts.tooLargeToRead.Add(1)
		return variant{}, false
	}
	h.entry.Key = *key
	return variant{name: name, head: h, entry: h.on(r.At, r.Now)}, true
}

// whole returns the entry of a variant with its body, shared by all who ask for
// it at the same time.
func (s *Store) whole(ctx context.Context, n Name, v *variant) (*store.Entry, error) {
	id := fmt.Sprintf("%s %s %d", n.tag, v.name, v.head.entry.Shared.Token)
	got, err := join(ctx, s.bodies.DoChan(id, func() (any, error) {
		body, err := s.body(context.WithoutCancel(ctx), n, v)
		if err != nil {
			return nil, err
		}
		e := *v.entry
		e.Body = body
		return s.opts.Prepare(&e), nil
	}))
	e, _ := got.(*store.Entry)
	return e, err
}

// join waits for what singleflight brings.
func join(ctx context.Context, c <-chan singleflight.Result) (any, error) {
	select {
	case r := <-c:
		return r.Val, r.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// readAhead is how many chunks one round trip brings: 1 MiB.
const readAhead = 16

// body reads the body of a variant.
func (s *Store) body(ctx context.Context, n Name, v *variant) (*store.Body, error) {
	h := v.head
	count := h.chunks()
	if count == 1 && v.chunk != "" {
		data, ok := s.openChunk(n, h, 0, v.chunk)
		if !ok {
			return nil, errIncomplete
		}
		return store.WholeBody(data), nil
	}
	body := store.NewBody(h.length)
	for first := 0; first < count; first += readAhead {
		parts, err := s.chunks(ctx, n, h, first, min(readAhead, count-first))
		if err != nil {
			return nil, err
		}
		for i, part := range parts {
			data, ok := s.openChunk(n, h, first+i, part)
			if !ok || body.Append(data) != nil {
				return nil, errIncomplete
			}
		}
	}
	if body.End(); !body.Whole() {
		return nil, errIncomplete
	}
	return body, nil
}

// chunks reads n chunks from the first on. GETRANGE bounds what comes.
func (s *Store) chunks(ctx context.Context, name Name, h *head, first, n int) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	gets := make([]*goredis.StringCmd, n)
	_, err := s.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for i := range gets {
			gets[i] = p.GetRange(ctx, name.chunk(h.entry.Shared.Body, first+i), 0, maxChunk-1)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("redis body: %w", err)
	}
	parts := make([]string, n)
	for i, g := range gets {
		parts[i] = g.Val()
	}
	return parts, nil
}

func (s *Store) openChunk(n Name, h *head, i int, sealed string) ([]byte, bool) {
	if sealed == "" {
		return nil, false
	}
	_, data, ok := s.opts.Keys.open(chunkScope(n, h.entry.Shared.Body, i, i == h.chunks()-1), []byte(sealed))
	want := min(h.length-int64(i)*store.ChunkSize, store.ChunkSize)
	switch {
	case !ok:
		s.counts.mac.Add(1)
		return nil, false
	case int64(len(data)) != want:
		s.counts.malformed.Add(1)
		return nil, false
	}
	return data, true
}

// Found is an answer that a script found while it did something else.
type Found struct {
	reply                       *Reply
	variant, record, head, body string
}

// NewFound returns what a script found, as values i to i+3 of its reply: variant,
// record, head, and the body if it has one chunk.
func NewFound(r *Reply, i int) *Found {
	return &Found{reply: r, variant: r.Text(i), record: r.Text(i + 1), head: r.Text(i + 2), body: r.Text(i + 3)}
}

// ReplyBounds returns how large a head and a chunk a script may return, in bytes.
func ReplyBounds() (head, chunk int) { return maxHead, maxChunk }

// Token returns the token that the record names.
func (f *Found) Token() uint64 {
	token, _, _ := strings.Cut(f.record, " ")
	n, _ := strconv.ParseUint(token, 10, 64)
	return n
}

// Bring makes an entry of what a script found for key, and brings the rest of its
// body if the entry, as yet without it, is wanted. The error ErrRefused says that
// there is nothing to be believed, or that it is not.
func (s *Store) Bring(
	ctx context.Context, key *cachepolicy.Key, f *Found, wanted func(*store.Entry) bool,
) (*store.Entry, error) {
	n := NameOf(key)
	v, ok := s.decode(n, key, f.variant, f.record, f.head, f.reply)
	if !ok {
		s.counts.misses.Add(1)
		return nil, ErrRefused
	}
	if !wanted(v.entry) {
		return nil, fmt.Errorf("%w: it is of no use", ErrRefused)
	}
	v.chunk = f.body
	e, err := s.whole(ctx, n, &v)
	if err == nil {
		s.counts.hits.Add(1)
	} else if errors.Is(err, errIncomplete) {
		s.counts.incomplete.Add(1)
		s.counts.misses.Add(1)
	}
	return e, err
}

// entries returns the variants as entries without bodies.
func (r *resource) entries() []*store.Entry {
	list := make([]*store.Entry, len(r.variants))
	for i := range r.variants {
		list[i] = r.variants[i].entry
	}
	return list
}

func (r *resource) find(e *store.Entry) *variant {
	for i := range r.variants {
		if r.variants[i].entry == e {
			return &r.variants[i]
		}
	}
	return nil
}

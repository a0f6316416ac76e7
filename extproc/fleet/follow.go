package fleet

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/store/redis"
)

// The rhythm of a follower.
const (
	followBlock = 500 * time.Millisecond // one wait for news; then it beats
	minRetry    = 50 * time.Millisecond  // after trouble, doubled each time
	maxRetry    = time.Second
)

// Bounds of what a follower reads at once and of what is kept for it.
const (
	pageSize     = 1000
	streamLength = 10_000
)

// forgetAfter is how long a replica that fell silent without a goodbye is still
// counted: it may be cut off and serving.
const forgetAfter = 10 * time.Minute

// follower is what a process knows of the fleet's sequence of stamps.
type follower struct {
	mu      sync.Mutex // held while stamps are applied, so that they are in order
	history string
	applied uint64 // position up to which all stamps are applied

	heard    atomic.Int64 // when Redis answered last, as time since Fleet.started; 0: never
	away     atomic.Bool  // Redis was asked since, and did not answer
	catching atomic.Bool  // it answers again, and we are behind

	known atomic.Pointer[string] // see others
}

func (f *Fleet) stampKeys() []string {
	const base = "weir:{stamps}"
	return []string{base, base + ":set", base + ":log", base + ":replicas"}
}

// everything is the stamp that makes all that was born before it stale.
func everything() string { return name{kind: ByAll}.text(Soft) }

// CaughtUp reports whether this process may judge what was stored before: whether
// it knows all invalidations, or Redis is away, so that nobody can know. It is
// false from the start until the stamps were read, whenever Redis was silent for
// longer than Options.Silence without having been found away (this process was
// stopped, and others went on), and while a process that was cut off catches up.
// Nothing cached is to be served then. It takes no lock.
func (f *Fleet) CaughtUp(now time.Time) bool {
	fo := &f.follower
	switch {
	case fo.catching.Load():
		return false
	case fo.away.Load():
		return true
	}
	heard := fo.heard.Load()
	return heard != 0 && now.Sub(f.started)-time.Duration(heard) <= f.opts.Silence
}

// InTouch reports whether Redis answers this process, which knows what the fleet
// knows and has told what it did. No entry is taken from Redis otherwise: it could
// not be judged.
func (f *Fleet) InTouch() bool {
	fo := &f.follower
	return fo.heard.Load() != 0 && !fo.away.Load() && !fo.catching.Load() && !f.pending.some.Load()
}

// Reading begins to read an entry from Redis: false if this process is not in
// touch. The epoch is for Read.
func (f *Fleet) Reading() (epoch uint64, ok bool) {
	epoch = f.pending.epoch.Load()
	return epoch, f.InTouch()
}

// Read ends it: false if the entry is not to be used, since this process stamped
// something meanwhile that the fleet has not been told. Such a stamp would not
// cover the entry, which may come from a process that is ahead of this one.
func (f *Fleet) Read(epoch uint64, e *store.Entry) bool {
	f.stamps.Saw(e.Birth)
	return f.pending.epoch.Load() == epoch
}

// follow keeps the stamps at what the fleet knows, until ctx ends. It does not
// mind an open circuit: a Redis too slow for requests still brings invalidations,
// and one goroutine's dialling does no harm.
func (f *Fleet) follow(ctx context.Context) {
	ctx = redis.Background(ctx)
	retry, failed := minRetry, 0
	for ctx.Err() == nil {
		err := f.sync(ctx)
		if err == nil {
			retry, failed = minRetry, 0
			_ = f.read(ctx) // what went wrong, sync will meet too
			continue
		}
		// Once may be our own fault: a process that was stopped finds its limits passed.
		if failed++; failed > 1 && ctx.Err() == nil {
			f.lostTouch(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(rand.N(retry)):
		}
		retry = min(2*retry, maxRetry)
	}
}

func (f *Fleet) lostTouch(err error) {
	f.follower.catching.Store(false)
	if !f.follower.away.Swap(true) {
		f.counts.losses.Add(1)
		f.opts.Logger.Warn("Redis is away; this replica goes on by itself", "error", err)
	}
}

func (f *Fleet) inTouch(at time.Time) {
	f.follower.heard.Store(max(int64(at.Sub(f.started)), 1))
	f.follower.catching.Store(false)
	if f.follower.away.Swap(false) {
		f.opts.Logger.Info("Redis is back; this replica has caught up")
	}
}

// sync says that this replica is alive and what it has applied, reads what it has
// not, and tells what it stamped by itself while Redis was away. When it returns
// nil the replica knows every stamp there was at some moment during the call, and
// has said so.
func (f *Fleet) sync(ctx context.Context) error {
	for range 2 { // the second says what the first brought
		news, err := f.catchUp(ctx)
		if err != nil {
			return err
		}
		if !news {
			break
		}
	}
	return f.flush(ctx)
}

// catchUp reads all stamps that this replica has not applied, page by page, and
// reports whether there were any.
func (f *Fleet) catchUp(ctx context.Context) (news bool, err error) {
	from := ""
	for {
		sent := f.opts.Now()
		p, err := f.page(ctx, from)
		switch {
		case err != nil:
			return news, err
		case p.next != "":
			f.follower.catching.Store(true)
			from, news = p.next, true
		default:
			f.inTouch(sent)
			return news || p.news, nil
		}
	}
}

// page is what one beat brought.
type page struct {
	next string // where to go on, if there is more
	news bool
}

// page beats and applies one page of stamps. from is where the page before ended,
// or empty for the first.
func (f *Fleet) page(ctx context.Context, from string) (page, error) {
	history, applied := f.knows()
	r, err := f.store.Run(ctx, f.beat, f.stampKeys(), f.opts.Replica, applied, history, everything(),
		f.opts.MaxStamps, streamLength, pageSize, from, forgetAfter.Microseconds(),
		f.follower.others())
	if err != nil {
		return page{}, err
	}
	f.counts.beats.Add(1)
	var p page
	list := r.List(4)
	stamps := make([]Stamp, 0, len(list)/2)
	for ; len(list) >= 2; list = list[2:] {
		p.next = list[0]
		stamps = append(stamps, parseStamp(list[0], list[1]))
	}
	fo := &f.follower
	fo.mu.Lock()
	defer fo.mu.Unlock()
	f.stamps.Fold(r.Uint(2), r.Uint(3))
	if len(stamps) >= pageSize {
		f.stamps.Apply(stamps, 0, f.opts.Now())
		return p, nil
	}
	fo.remember(r.List(5))
	now, position := r.Text(0), r.Uint(1)
	f.stamps.Apply(stamps, position, f.opts.Now())
	if now != fo.history && fo.history != "" {
		f.counts.histories.Add(1)
		f.opts.Logger.Warn("Redis has another history: a failover, a restart or a flush. "+
			"What was stored before is stale", "history", now)
	}
	p = page{news: now != fo.history || position > fo.applied}
	fo.history, fo.applied = now, max(fo.applied, position)
	return p, nil
}

// knows returns the history and the position up to which all stamps are applied.
func (f *Fleet) knows() (history string, applied uint64) {
	f.follower.mu.Lock()
	defer f.follower.mu.Unlock()
	return f.follower.history, f.follower.applied
}

// read waits for stamps and applies them. A gap in the stream is left to sync.
func (f *Fleet) read(ctx context.Context) error {
	_, applied := f.knows()
	limit, cancel := context.WithTimeout(ctx, followBlock+f.opts.Claim)
	defer cancel()
	streams, err := f.store.Client().XRead(limit, &goredis.XReadArgs{
		Streams: []string{f.stampKeys()[2], strconv.FormatUint(applied, 10) + "-0"},
		Count:   pageSize, Block: followBlock,
	}).Result()
	if err != nil && !errors.Is(err, goredis.Nil) {
		return err
	}
	for _, s := range streams {
		f.apply(entriesOf(s.Messages))
	}
	return nil
}

// logEntry is one entry of the stream.
type logEntry struct {
	position, prev uint64
	stamp          Stamp
}

func entriesOf(messages []goredis.XMessage) []logEntry {
	list := make([]logEntry, 0, len(messages))
	for _, m := range messages {
		id, _, _ := strings.Cut(m.ID, "-")
		prev, _ := m.Values["prev"].(string)
		text, _ := m.Values["stamp"].(string)
		list = append(list, newLogEntry(id, prev, text))
	}
	return list
}

func newLogEntry(position, prev, text string) logEntry {
	e := logEntry{stamp: parseStamp(position, text)}
	e.position = e.stamp.Position
	e.prev, _ = strconv.ParseUint(prev, 10, 64)
	return e
}

func parseStamp(position, text string) Stamp {
	n, mode := parseText(text)
	at, _ := strconv.ParseUint(position, 10, 64)
	return Stamp{Kind: n.kind, Namespace: n.namespace, Value: n.value, Mode: mode, Position: at}
}

// apply applies entries that follow on what is applied; it skips what is, and
// stops at a gap. It reports whether there was none.
func (f *Fleet) apply(entries []logEntry) bool {
	f.follower.mu.Lock()
	defer f.follower.mu.Unlock()
	for i := range entries {
		e := &entries[i]
		if e.position <= f.follower.applied {
			continue
		}
		if e.prev != f.follower.applied {
			return false
		}
		f.stamps.Apply([]Stamp{e.stamp}, e.position, f.opts.Now())
		f.follower.applied = e.position
	}
	return true
}

package redis

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/store/storetest"
)

// trips counts round trips.
type trips struct {
	n    atomic.Int64
	hold atomic.Pointer[chan struct{}] // what commands wait for
}

func (c *trips) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (c *trips) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		c.count()
		return next(ctx, cmd)
	}
}

func (c *trips) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		c.count()
		return next(ctx, cmds)
	}
}

func (c *trips) count() {
	c.n.Add(1)
	if hold := c.hold.Load(); hold != nil {
		<-*hold
	}
}

// TestRoundTrips: what a read and a write cost, once the scripts are loaded and the
// clock is known.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	_, c := miniClient(t)
	s := newStore(t, c, Options{})
	count := &trips{}
	c.AddHook(count)
	mustPut(t, s, entryNow("/warm", "x"))
	mustPut(t, s, entryNow("/warm", strings.Repeat("x", 1<<20))) // connects for pipelines
	key := storetest.Key("/warm")
	look(t, s, "/warm")
	if err := s.Update(t.Context(), &key, time.Now(), func(e []*store.Entry) []*store.Entry { return e }); err != nil {
		t.Fatal(err)
	}
	zipped := storetest.Variant("/v", "gzip", "zipped")
	zipped.ResponseTime = time.Now()
	steps := []struct {
		name string
		want int64
		do   func()
	}{
		{"write 1 KiB", 1, func() { mustPut(t, s, entryNow("/1k", strings.Repeat("x", 1024))) }},
		{"read 1 KiB", 1, func() { look(t, s, "/1k") }},
		{"write 1 MiB", 2, func() { mustPut(t, s, entryNow("/1m", strings.Repeat("x", 1<<20))) }},
		{"read 1 MiB", 2, func() { look(t, s, "/1m") }},
		{"miss", 1, func() { look(t, s, "/none") }},
		{"write a variant", 1, func() { mustPut(t, s, zipped) }},
		{"write another", 1, func() { mustPut(t, s, entryNow("/v", "plain")) }},
		{"read one of two variants", 2, func() { look(t, s, "/v") }},
		{"freshen", 2, func() {
			key := storetest.Key("/1k")
			err := s.Update(t.Context(), &key, time.Now(), func(old []*store.Entry) []*store.Entry {
				e := *old[0]
				e.ResponseTime = time.Now()
				return []*store.Entry{&e}
			})
			if err != nil {
				t.Fatal(err)
			}
		}},
	}
	for _, step := range steps {
		before := count.n.Load()
		step.do()
		if got := count.n.Load() - before; got != step.want {
			t.Errorf("%s: %d round trips, want %d", step.name, got, step.want)
		}
	}
}

// TestBurstIsOneRead: a crowd that asks for one resource at the same time reads it
// once, and its body once.
func TestBurstIsOneRead(t *testing.T) {
	t.Parallel()
	_, c := miniClient(t)
	s := newStore(t, c, Options{})
	want := strings.Repeat("x", 300_000)
	mustPut(t, s, entryNow("/", want))
	look(t, s, "/")
	count := &trips{}
	hold := make(chan struct{})
	count.hold.Store(&hold)
	c.AddHook(count)
	key := storetest.Key("/")
	const crowd = 200
	var asked, done sync.WaitGroup
	var entries [crowd]*store.Entry
	asked.Add(crowd)
	for i := range crowd {
		done.Go(func() {
			asked.Done()
			r, err := s.Get(t.Context(), &key, nil, time.Now())
			if err != nil {
				t.Error(err)
			}
			entries[i] = r.Entry
		})
	}
	asked.Wait()
	count.hold.Store(nil)
	close(hold)
	done.Wait()
	for _, e := range entries {
		if e == nil || storetest.Content(e) != want {
			t.Fatal("not all got the answer")
		}
	}
	// Who comes when the first is served already reads again; most do not.
	if got := count.n.Load(); got > crowd/2 {
		t.Errorf("%d round trips for %d readers", got, crowd)
	}
}

func TestWaitingForAReadEndsWithTheContext(t *testing.T) {
	t.Parallel()
	_, c := miniClient(t)
	s := newStore(t, c, Options{})
	count := &trips{}
	hold := make(chan struct{})
	count.hold.Store(&hold)
	c.AddHook(count)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	key := storetest.Key("/")
	if _, err := s.Get(ctx, &key, nil, time.Now()); err == nil {
		t.Error("an ended context reads")
	}
	close(hold)
}

// lateReply holds the answer of the next command back until release is closed.
type lateReply struct {
	trips
	release atomic.Pointer[chan struct{}]
	came    chan struct{}
}

func (l *lateReply) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		err := next(ctx, cmd)
		if release := l.release.Swap(nil); release != nil {
			l.came <- struct{}{}
			<-*release
		}
		return err
	}
}

// TestReadsSeeWhatTheirProcessWrote: a read that begins after a write does not join
// one that began before.
func TestReadsSeeWhatTheirProcessWrote(t *testing.T) {
	t.Parallel()
	_, c := miniClient(t)
	s := newStore(t, c, Options{})
	late := &lateReply{came: make(chan struct{})}
	mustPut(t, s, entryNow("/", "old"))
	look(t, s, "/")
	c.AddHook(late)
	for range 20 {
		mustPut(t, s, entryNow("/", "old"))
		release := make(chan struct{})
		late.release.Store(&release)
		var readers sync.WaitGroup
		readers.Go(func() { look(t, s, "/") })
		<-late.came
		mustPut(t, s, entryNow("/", "new"))
		begun := make(chan struct{})
		readers.Go(func() {
			close(begun)
			if got := look(t, s, "/"); got != "new" {
				t.Errorf("after writing new, %q is read", got)
			}
		})
		<-begun
		time.AfterFunc(time.Millisecond, func() { close(release) })
		readers.Wait()
	}
}

// TestReadersDuringReplacement: whatever is replaced under them, readers find a
// whole answer.
func TestReadersDuringReplacement(t *testing.T) {
	t.Parallel()
	_, c := miniClient(t)
	w, r := newStore(t, c, Options{}), newStore(t, c, Options{})
	content := func(i int) string { return strings.Repeat(fmt.Sprintf("%06d ", i), 20_000) }
	mustPut(t, w, entryNow("/", content(0)))
	var stop atomic.Bool
	var writers sync.WaitGroup
	writers.Go(func() {
		for i := 1; !stop.Load(); i++ {
			mustPut(t, w, entryNow("/", content(i)))
		}
	})
	for range 100 {
		got := look(t, r, "/")
		if got == "" {
			t.Error("a miss while it is replaced")
		} else if got != strings.Repeat(got[:7], 20_000) {
			t.Fatal("parts of two answers are mixed")
		}
	}
	stop.Store(true)
	writers.Wait()
}

// TestPrepared: what a process makes of an entry is made once for all who read
// it together.
func TestPrepared(t *testing.T) {
	t.Parallel()
	_, c := miniClient(t)
	s := newStore(t, c, Options{Prepare: func(e *store.Entry) *store.Entry {
		out := *e
		out.Wire = []byte("prepared " + storetest.Content(e))
		return &out
	}})
	mustPut(t, s, entryNow("/", "x"))
	key := storetest.Key("/")
	r, err := s.Get(t.Context(), &key, httpcache.Fields{}, time.Now())
	if err != nil || r.Entry == nil || string(r.Entry.Wire) != "prepared x" {
		t.Errorf("%+v, %v", r.Entry, err)
	}
}

// TestOldBodiesGo: replaced bodies do not pile up.
func TestOldBodiesGo(t *testing.T) {
	t.Parallel()
	m, c := miniClient(t)
	s := newStore(t, c, Options{})
	for i := range 20 {
		mustPut(t, s, entryNow("/", strings.Repeat(fmt.Sprint(i%10), 200_000)))
	}
	m.FastForward(2500 * time.Millisecond)
	if keys := stringKeys(m); len(keys) != 5 {
		t.Errorf("%d heads and chunks are left of 20 answers, want 1 and 4", len(keys))
	}
	// A refused commit leaves nothing behind.
	fence := &Fence{Variant: AnyVariant, Owner: "a/1", Token: 1, Clock: &s.clock}
	verdict, _, err := s.Commit(t.Context(), entryNow("/", strings.Repeat("x", 200_000)), fence, 1)
	if verdict != Fenced || err != nil {
		t.Fatalf("commit under an old token: %v, %v", verdict, err)
	}
	if keys := stringKeys(m); len(keys) != 5 {
		t.Errorf("%d heads and chunks after a refused commit", len(keys))
	}
}

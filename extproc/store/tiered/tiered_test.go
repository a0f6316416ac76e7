package tiered

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/fleet"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/store/memory"
	"github.com/weirproxy/weir/extproc/store/redis"
	"github.com/weirproxy/weir/extproc/store/storetest"
)

func TestMain(m *testing.M) {
	redis.LogTo(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

// patience is for what must not depend on how loaded the machine is.
const patience = time.Minute

// process is one process with a store of its own over a Redis, all of whose clocks
// read what the test's calls say.
type process struct {
	*Tiered
	redis *miniredis.Miniredis
	local atomic.Pointer[time.Time]
	fleet *fleet.Fleet
}

// start returns a process with the fleet in the Redis at m that was in touch, and
// follows no longer: that is not what is tested here.
func start(tb testing.TB, m *miniredis.Miniredis, id string, shares func(*store.Entry) bool) *process {
	tb.Helper()
	p := &process{redis: m}
	p.at(storetest.Epoch())
	c := goredis.NewClient(&goredis.Options{
		Addr: m.Addr(), Protocol: 2, DisableIdentity: true, MaxRetries: -1, ReadTimeout: patience, WriteTimeout: patience,
	})
	keys, err := redis.NewKeyring([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		tb.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	shared, err := redis.New(c, redis.Options{
		Keys: keys, MaxObjectSize: 8 << 20, Timeout: patience, Now: func() time.Time { return *p.local.Load() },
	})
	if err != nil {
		tb.Fatal(err)
	}
	p.fleet, err = fleet.New(fleet.Options{
		Store: shared, Stamps: fleet.NewStamps(0), Replica: id, Logger: log, Claim: patience,
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	go func() {
		for !p.fleet.InTouch() && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		cancel()
		// It waits for news, and ends when there are some.
		_, _ = p.fleet.Stamp(tb.Context(), fleet.Invalidation{Kind: fleet.ByTag, Value: "end"})
	}()
	if p.fleet.Run(ctx); !p.fleet.InTouch() {
		tb.Fatal("not in touch")
	}
	p.Tiered = New(Options{
		Local: memory.New(memory.Options{Limit: 16 << 20}), Shared: shared, Fleet: p.fleet, Shares: shares, Logger: log,
	})
	return p
}

func (p *process) at(now time.Time) {
	if old := p.local.Swap(&now); old == nil || !old.Equal(now) {
		p.redis.SetTime(now)
	}
}

func (p *process) Get(
	ctx context.Context, key *cachepolicy.Key, req httpcache.Fields, now time.Time,
) (store.Result, error) {
	p.at(now)
	return p.Tiered.Get(ctx, key, req, now)
}

func (p *process) Put(ctx context.Context, e *store.Entry, maxVariants int, now time.Time) error {
	p.at(now)
	return p.Tiered.Put(ctx, e, maxVariants, now)
}

func (p *process) Update(
	ctx context.Context, key *cachepolicy.Key, now time.Time, fn func([]*store.Entry) []*store.Entry,
) error {
	p.at(now)
	return p.Tiered.Update(ctx, key, now, fn)
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) store.Store { return start(t, miniredis.RunT(t), "a", nil) })
}

func (p *process) has(t *testing.T, path string, req httpcache.Fields) string {
	t.Helper()
	key := storetest.Key(path)
	r, err := p.Get(t.Context(), &key, req, storetest.Epoch())
	if err != nil {
		t.Fatal(err)
	}
	if r.Entry == nil {
		return ""
	}
	return storetest.Content(r.Entry)
}

func (p *process) puts(t *testing.T, e *store.Entry) {
	t.Helper()
	if err := p.Put(t.Context(), e, 16, storetest.Epoch()); err != nil {
		t.Fatal(err)
	}
}

func TestOthersFindWhatOneStored(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	a, b := start(t, m, "a", nil), start(t, m, "b", nil)
	large := strings.Repeat("0123456789", 30_000)
	a.puts(t, storetest.Entry("/small", "small"))
	a.puts(t, storetest.Entry("/large", large))
	a.puts(t, storetest.Variant("/v", "gzip", "zipped"))
	a.puts(t, storetest.Variant("/v", "br", "brotli"))
	for range 2 {
		for path, want := range map[string]string{"/small": "small", "/large": large} {
			if got := b.has(t, path, nil); got != want {
				t.Errorf("%s has %d bytes, want %d", path, len(got), len(want))
			}
		}
		if got := b.has(t, "/v", storetest.Accepting("br")); got != "brotli" {
			t.Errorf("br: %q", got)
		}
	}
	if s := b.Stats(); s.Promoted != 3 || s.Errors != 0 {
		t.Errorf("stats %+v; want each brought once", s)
	}
	m.Close() // hits ask nobody
	if got := b.has(t, "/small", nil); got != "small" {
		t.Errorf("without Redis: %q", got)
	}
}

func TestReplicaOnlyEntriesStayHere(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	a := start(t, m, "a", func(e *store.Entry) bool { return e.Policy != "shop/private" })
	b := start(t, m, "b", nil)
	e := storetest.Entry("/", "private")
	e.Policy = "shop/private"
	a.puts(t, e)
	if got := a.has(t, "/", nil); got != "private" {
		t.Errorf("here: %q", got)
	}
	if got := b.has(t, "/", nil); got != "" {
		t.Errorf("elsewhere: %q", got)
	}
}

func TestDeleteAndUpdateReachOthers(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	a, b := start(t, m, "a", nil), start(t, m, "b", nil)
	a.puts(t, storetest.Entry("/a", "a"))
	a.puts(t, storetest.Entry("/b", "b"))
	key := storetest.Key("/a")
	if err := a.Delete(t.Context(), &key); err != nil {
		t.Fatal(err)
	}
	if got := b.has(t, "/a", nil); got != "" {
		t.Errorf("a deleted entry is found: %q", got)
	}
	key = storetest.Key("/b")
	err := a.Update(t.Context(), &key, storetest.Epoch(), func(old []*store.Entry) []*store.Entry {
		e := *old[0]
		e.Status = 203
		return []*store.Entry{&e}
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := b.Get(t.Context(), &key, nil, storetest.Epoch())
	if err != nil || r.Entry == nil || r.Entry.Status != 203 || storetest.Content(r.Entry) != "b" {
		t.Errorf("after an update elsewhere: %+v, %v", r.Entry, err)
	}
}

// TestRedisAway: the store is that of one process then.
func TestRedisAway(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	a := start(t, m, "a", nil)
	a.puts(t, storetest.Entry("/before", "before"))
	m.SetError("LOADING")
	a.puts(t, storetest.Entry("/during", "during"))
	for _, path := range []string{"/before", "/during"} {
		if got := a.has(t, path, nil); got == "" {
			t.Errorf("%s is gone", path)
		}
	}
	if got := a.has(t, "/never", nil); got != "" {
		t.Errorf("/never has %q", got)
	}
	key := storetest.Key("/before")
	if err := a.Delete(t.Context(), &key); err != nil || a.has(t, "/before", nil) != "" {
		t.Errorf("Delete: %v", err)
	}
	if s := a.Stats(); s.Errors == 0 {
		t.Errorf("stats %+v; want errors counted", s)
	}
}

// TestNotJudgedIsNotRead: an entry is not taken from Redis by a process that has
// invalidated something the fleet was not told of.
func TestNotJudgedIsNotRead(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	a, b := start(t, m, "a", nil), start(t, m, "b", nil)
	a.puts(t, storetest.Entry("/", "a"))
	m.SetError("ERR away")
	if _, err := b.fleet.Stamp(t.Context(), fleet.Invalidation{Kind: fleet.ByAll}); err == nil {
		t.Fatal("an invalidation was told to nobody")
	}
	if b.fleet.InTouch() {
		t.Error("in touch with what it did not tell")
	}
	if _, ok := b.fleet.Reading(); ok {
		t.Error("reads what it cannot judge")
	}
	m.SetError("")
	if got := b.has(t, "/", nil); got != "" {
		t.Errorf("%q is taken from Redis, which b has invalidated", got)
	}
	if got := a.has(t, "/", nil); got != "a" {
		t.Errorf("a has %q", got)
	}
}

package redis

import (
	"context"
	"log/slog"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/fleet/redistest"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/store/storetest"
)

func TestMain(m *testing.M) {
	LogTo(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

// clockKey is where a test keeps Redis's time.
const clockKey = "test:clock"

// clockLua stands in for clock.lua where a test sets the time.
const clockLua = `
local function clock() return tonumber(redis.call('GET', '` + clockKey + `')) end
local function int(n) return string.format('%.0f', n) end
`

func testKeys(tb testing.TB, secrets ...string) *Keyring {
	tb.Helper()
	if len(secrets) == 0 {
		secrets = []string{"0123456789abcdef0123456789abcdef"}
	}
	var keys [][]byte
	for _, s := range secrets {
		keys = append(keys, []byte(s))
	}
	k, err := NewKeyring(keys...)
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

func newStore(tb testing.TB, c goredis.UniversalClient, o Options) *Store {
	tb.Helper()
	if o.Keys == nil {
		o.Keys = testKeys(tb)
	}
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second // a loaded machine is no fault of the store
	}
	s, err := New(c, o)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func miniClient(tb testing.TB) (*miniredis.Miniredis, *goredis.Client) {
	tb.Helper()
	m := miniredis.RunT(tb)
	c := goredis.NewClient(&goredis.Options{Addr: m.Addr(), Protocol: 2, DisableIdentity: true})
	tb.Cleanup(func() { _ = c.Close() })
	return m, c
}

// pinned is a Store whose local clock and whose Redis read what the caller's
// clock does, as storetest wants: its instants are made up.
type pinned struct {
	*Store
	local atomic.Pointer[time.Time]
}

func newPinned(tb testing.TB, c *goredis.Client) *pinned {
	tb.Helper()
	p := &pinned{}
	p.set(tb.Context(), c, storetest.Epoch())
	p.Store = newStore(tb, c, Options{
		MaxObjectSize: 8 << 20, clockLua: clockLua, Now: func() time.Time { return *p.local.Load() },
	})
	return p
}

func (p *pinned) set(ctx context.Context, c goredis.UniversalClient, now time.Time) {
	if old := p.local.Swap(&now); old != nil && old.Equal(now) {
		return
	}
	c.Set(ctx, clockKey, strconv.FormatInt(now.UnixMicro(), 10), 0)
}

func (p *pinned) Get(
	ctx context.Context, key *cachepolicy.Key, req httpcache.Fields, now time.Time,
) (store.Result, error) {
	p.set(ctx, p.client, now)
	return p.Store.Get(ctx, key, req, now)
}

func (p *pinned) Put(ctx context.Context, e *store.Entry, maxVariants int, now time.Time) error {
	p.set(ctx, p.client, now)
	return p.Store.Put(ctx, e, maxVariants, now)
}

func (p *pinned) Update(
	ctx context.Context, key *cachepolicy.Key, now time.Time, fn func([]*store.Entry) []*store.Entry,
) error {
	p.set(ctx, p.client, now)
	return p.Store.Update(ctx, key, now, fn)
}

func TestStoreOnMiniredis(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) store.Store {
		_, c := miniClient(t)
		return newPinned(t, c)
	})
}

func TestStoreOnRedis(t *testing.T) {
	t.Parallel()
	const databases = 4096 // one for each store that the suite asks for
	server := redistest.Start(t, "--databases", strconv.Itoa(databases))
	db := atomic.Int32{}
	storetest.Run(t, func(t *testing.T) store.Store {
		c := goredis.NewClient(&goredis.Options{
			Addr: server.Addr, Protocol: 2, DisableIdentity: true, DB: int(db.Add(1)),
		})
		t.Cleanup(func() { _ = c.Close() })
		return newPinned(t, c)
	})
}

package fleet

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/store/redis"
)

func TestMain(m *testing.M) {
	redis.LogTo(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

// patience is for what must not depend on how loaded the machine is.
const patience = time.Minute

func keyring(tb testing.TB) *redis.Keyring {
	tb.Helper()
	k, err := redis.NewKeyring([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

// replica is one process of a fleet, in this process.
type replica struct {
	*Fleet
	*redis.Store
	stamps *Stamps
}

// join returns a member of the fleet in the Redis of client, which has synced once
// and is not run.
func join(tb testing.TB, client goredis.UniversalClient, id string, change func(*Options)) *replica {
	tb.Helper()
	r := unsynced(tb, client, id, change)
	if err := r.sync(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return r
}

func unsynced(tb testing.TB, client goredis.UniversalClient, id string, change func(*Options)) *replica {
	tb.Helper()
	o := Options{
		Stamps: NewStamps(0), Replica: id, Logger: slog.New(slog.DiscardHandler), Confirm: patience, Claim: patience,
	}
	if change != nil {
		change(&o)
	}
	s, err := redis.New(client, redis.Options{Keys: keyring(tb), Now: o.Now, Timeout: patience})
	if err != nil {
		tb.Fatal(err)
	}
	o.Store = s
	f, err := New(o)
	if err != nil {
		tb.Fatal(err)
	}
	return &replica{Fleet: f, Store: s, stamps: o.Stamps}
}

// run runs the member until stop is called or the test ends.
func (r *replica) run(tb testing.TB) (stop func()) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Fleet.Run(ctx)
	}()
	stop = func() {
		cancel()
		<-done
	}
	tb.Cleanup(stop)
	return stop
}

func mini(tb testing.TB) (*miniredis.Miniredis, *goredis.Client) {
	tb.Helper()
	m := miniredis.RunT(tb)
	return m, dial(tb, m.Addr())
}

func dial(tb testing.TB, addr string) *goredis.Client {
	tb.Helper()
	c := newClient(addr)
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

func newClient(addr string) *goredis.Client {
	return goredis.NewClient(&goredis.Options{
		Addr: addr, Protocol: 2, DisableIdentity: true, MaxRetries: -1, ContextTimeoutEnabled: true,
		ReadTimeout: patience, WriteTimeout: patience,
	})
}

func testPolicy() *cachepolicy.Policy {
	return &cachepolicy.Policy{
		Namespace: "shop", Name: "catalog", Storage: cachepolicy.Storage{MaxVariants: 16, MaxObjectSize: 1 << 20},
		Coalescing: cachepolicy.Coalescing{Scope: cachepolicy.ScopeFleet},
	}
}

func testKey(path string) *cachepolicy.Key {
	canonical := "fleet test " + path
	return &cachepolicy.Key{Hash: sha256.Sum256([]byte(canonical)), Canonical: canonical}
}

func claimOf(path string) Claim { return Claim{Key: testKey(path), Policy: testPolicy()} }

// varying is a claim of a process that knows that the resource varies by
// accept-encoding.
func varying(path, encoding string) Claim {
	c := claimOf(path)
	c.Vary = httpcache.Vary{Names: []string{"accept-encoding"}}
	c.Header = httpcache.Fields{{Name: "accept-encoding", Value: encoding}}
	return c
}

// answer is the response to a claim that has just arrived, whose fetch has just
// begun, and that is fresh for a minute.
func (r *replica) answer(c Claim, content string) *store.Entry {
	return &store.Entry{
		Birth: r.stamps.Position(), ResponseTime: r.Fleet.opts.Now(),
		Key: *c.Key, URI: "https://example.com" + c.Key.Canonical[len("fleet test "):],
		Vary: c.Vary, VaryValues: c.Vary.Select(c.Header), Status: 200,
		Header: httpcache.Fields{{Name: "content-type", Value: "text/plain"}},
		Body:   store.WholeBody([]byte(content)), Lifetime: time.Minute, Policy: "shop/catalog",
	}
}

func content(e *store.Entry) string {
	if e == nil {
		return "<none>"
	}
	var out []byte
	for part := range e.Body.Bytes(0, e.Body.Len()) {
		out = append(out, part...)
	}
	return string(out)
}

// granted claims and fails the test unless the lease is granted.
func (r *replica) granted(tb testing.TB, c Claim) *Lease {
	tb.Helper()
	got := r.Acquire(tb.Context(), c)
	if got.State != Granted {
		tb.Fatalf("%s: claim is %v (%v), want a lease", r.opts.Replica, got.State, got.Err)
	}
	return got.Lease
}

// wants claims and fails the test unless the state is want.
func (r *replica) wants(tb testing.TB, c Claim, want State) Claimed {
	tb.Helper()
	got := r.Acquire(tb.Context(), c)
	if got.State != want {
		tb.Fatalf("%s: claim is %v (%v), want %v", r.opts.Replica, got.State, got.Err, want)
	}
	return got
}

func (r *replica) commits(tb testing.TB, l *Lease, e *store.Entry) *store.Entry {
	tb.Helper()
	kept, err := r.Fleet.Commit(tb.Context(), l, e, nil)
	if err != nil {
		tb.Fatalf("%s: Commit: %v", r.opts.Replica, err)
	}
	return kept
}

package fleet

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"sync/atomic"
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

func keyring(t testing.TB) *redis.Keyring {
	t.Helper()
	k, err := redis.NewKeyring([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
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
func join(t testing.TB, client goredis.UniversalClient, id string, change func(*Options)) *replica {
	t.Helper()
	r := unsynced(t, client, id, change)
	if err := r.sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

func unsynced(t testing.TB, client goredis.UniversalClient, id string, change func(*Options)) *replica {
	t.Helper()
	o := Options{Stamps: NewStamps(0), Replica: id, Logger: slog.New(slog.DiscardHandler), Confirm: patience, Claim: patience}
	if change != nil {
		change(&o)
	}
	s, err := redis.New(client, redis.Options{Keys: keyring(t), Now: o.Now, Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	o.Store = s
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return &replica{Fleet: f, Store: s, stamps: o.Stamps}
}

// run runs the member until stop is called or the test ends.
func (r *replica) run(t testing.TB) (stop func()) {
	t.Helper()
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
	t.Cleanup(stop)
	return stop
}

func mini(t testing.TB) (*miniredis.Miniredis, *goredis.Client) {
	t.Helper()
	m := miniredis.RunT(t)
	return m, dial(t, m.Addr())
}

func dial(t testing.TB, addr string) *goredis.Client {
	t.Helper()
	c := newClient(addr)
	t.Cleanup(func() { _ = c.Close() })
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
func (r *replica) granted(t testing.TB, c Claim) *Lease {
	t.Helper()
	got := r.Acquire(t.Context(), c)
	if got.State != Granted {
		t.Fatalf("%s: claim is %v (%v), want a lease", r.opts.Replica, got.State, got.Err)
	}
	return got.Lease
}

// wants claims and fails the test unless the state is want.
func (r *replica) wants(t testing.TB, c Claim, want State) Claimed {
	t.Helper()
	got := r.Acquire(t.Context(), c)
	if got.State != want {
		t.Fatalf("%s: claim is %v (%v), want %v", r.opts.Replica, got.State, got.Err, want)
	}
	return got
}

func (r *replica) commits(t testing.TB, l *Lease, e *store.Entry) *store.Entry {
	t.Helper()
	kept, err := r.Fleet.Commit(t.Context(), l, e, nil)
	if err != nil {
		t.Fatalf("%s: Commit: %v", r.opts.Replica, err)
	}
	return kept
}

// skewed returns a clock that is off by d.
func skewed(d time.Duration) func() time.Time { return func() time.Time { return time.Now().Add(d) } }

// counter makes distinct names.
type counter struct{ n atomic.Int64 }

func (c *counter) next(prefix string) string { return fmt.Sprint(prefix, c.n.Add(1)) }

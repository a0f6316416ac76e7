package fleet

import (
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirproxy/weir/extproc/fleet/redistest"
	"github.com/weirproxy/weir/extproc/store/redis"
)

// guarded is a replica as a process has it: with weir's time limits and a guard.
type guarded struct {
	*replica
	guard *redis.Guard
	sent  atomic.Int64 // commands on behalf of requests
}

// startGuarded starts a replica whose guard minds commands that take longer than
// slow. With a slow of patience it has no time limits either: for what must not
// depend on how loaded the machine is.
func startGuarded(t *testing.T, addr, id string, slow time.Duration) *guarded {
	t.Helper()
	o, err := redis.ParseURL("redis://"+addr, "", "")
	if err != nil {
		t.Fatal(err)
	}
	claim := DefaultClaim
	if slow == patience {
		claim, o.ReadTimeout, o.WriteTimeout = patience, patience, patience
	}
	c := redis.Connect(o)
	g := &guarded{}
	g.guard = redis.NewGuard(c, redis.GuardOptions{
		Slow: slow, MaxPause: 500 * time.Millisecond,
		Observe: func(command string, _ time.Duration, _ error) {
			if command == "evalsha" || command == "eval" {
				g.sent.Add(1)
			}
		},
	})
	g.replica = unsynced(t, c, id, func(o *Options) { o.Claim = claim })
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { g.guard.Run(ctx) })
	running.Go(func() { g.Fleet.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		_ = c.Close()
	})
	return g
}

// load claims resources from many goroutines until stop is called, and gives every
// lease back. It counts claims.
func (g *guarded) load() (claims *atomic.Int64, stop func()) {
	claims = &atomic.Int64{}
	var over atomic.Bool
	var workers sync.WaitGroup
	for w := range 20 {
		workers.Go(func() {
			for i := 0; !over.Load(); i++ {
				got := g.Acquire(context.Background(), claimOf(fmt.Sprint("/", w, "/", i%10)))
				if got.State == Granted {
					_ = got.Lease.Release(context.Background())
				}
				claims.Add(1)
				time.Sleep(time.Millisecond)
			}
		})
	}
	return claims, func() {
		over.Store(true)
		workers.Wait()
	}
}

func (g *guarded) until(t *testing.T, inTouch bool) {
	t.Helper()
	redistest.Eventually(t, fmt.Sprint("in touch: ", inTouch), func() error {
		if g.InTouch() != inTouch {
			return fmt.Errorf("%+v, %+v", g.Fleet.Stats(), g.guard.Stats())
		}
		return nil
	})
}

// TestOutages: cases.md 28. Whatever happens to Redis, claims go on being answered,
// nothing piles up, and the fleet is joined again without a restart. It counts
// goroutines, and so runs beside no other test.
func TestOutages(t *testing.T) {
	for name, trouble := range map[string]struct{ begin, end func(*redistest.Server) }{
		"stopped": {(*redistest.Server).Stop, (*redistest.Server).Restart},
		"frozen":  {(*redistest.Server).Freeze, (*redistest.Server).Thaw},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			g := startGuarded(t, server.Addr, "a", redis.DefaultSlow)
			g.until(t, true)
			claims, stop := g.load()
			defer stop()
			redistest.Eventually(t, "leases are granted", func() error {
				if g.Fleet.Stats().Leases < 50 {
					return fmt.Errorf("%+v", g.Fleet.Stats())
				}
				return nil
			})
			trouble.begin(server)
			g.until(t, false)
			if !g.CaughtUp(time.Now()) {
				t.Error("serves nothing while Redis is away")
			}
			goroutines, sent, before := runtime.NumGoroutine(), g.sent.Load(), claims.Load()
			redistest.Eventually(t, "claims go on", func() error {
				if n := claims.Load() - before; n < 5000 {
					return fmt.Errorf("%d claims", n)
				}
				return nil
			})
			if n := g.sent.Load() - sent; n > 100 { // the follower's
				t.Errorf("%d scripts were sent for 5000 claims", n)
			}
			if n := runtime.NumGoroutine(); n > goroutines+20 {
				t.Errorf("%d goroutines, %d before", n, goroutines)
			}
			trouble.end(server)
			g.until(t, true)
			leases := g.Fleet.Stats().Leases
			redistest.Eventually(t, "leases are granted again", func() error {
				if s := g.Fleet.Stats(); s.Leases < leases+50 {
					return fmt.Errorf("%+v, %+v", s, g.guard.Stats())
				}
				return nil
			})
		})
	}
}

func TestRedisThatIsDeadAtStart(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Stop()
	g := startGuarded(t, server.Addr, "a", redis.DefaultSlow)
	redistest.Eventually(t, "it goes on by itself", func() error {
		if !g.CaughtUp(time.Now()) {
			return fmt.Errorf("%+v", g.Fleet.Stats())
		}
		return nil
	})
	g.wants(t, claimOf("/"), Unavailable)
	server.Restart()
	g.until(t, true)
	redistest.Eventually(t, "a lease is granted", func() error {
		got := g.Acquire(t.Context(), claimOf("/"))
		if got.State != Granted {
			return fmt.Errorf("%v: %w", got.State, got.Err)
		}
		return got.Lease.Release(t.Context())
	})
}

// TestFullRedis: what is there is found, what is not is fetched by everybody.
func TestFullRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--maxmemory-policy", "noeviction")
	g := startGuarded(t, server.Addr, "a", patience)
	g.until(t, true)
	claim := claimOf("/")
	g.commits(t, g.granted(t, claim), g.answer(claim, "there"))
	l := g.granted(t, claimOf("/open"))
	server.Must("CONFIG", "SET", "maxmemory", "1")
	for range 2 * redis.DefaultFailures {
		if got := g.Acquire(t.Context(), claim); got.State != Found || content(got.Entry) != "there" {
			t.Fatalf("what is there: %v (%v)", got.State, got.Err)
		}
		if got := g.Acquire(t.Context(), claimOf("/new")); got.State != Unavailable {
			t.Fatalf("what is not: %v", got.State)
		}
	}
	if s := g.guard.Stats(); s.Opened != 0 {
		t.Errorf("the circuit opened although Redis answers: %+v", s)
	}
	if _, err := g.Fleet.Commit(t.Context(), l, g.answer(claimOf("/open"), "x"), nil); err == nil {
		t.Error("stored in a Redis that is full")
	}
	server.Must("CONFIG", "SET", "maxmemory", "0")
	redistest.Eventually(t, "leases are granted again", func() error {
		got := g.Acquire(t.Context(), claimOf("/open"))
		if got.State != Granted && got.State != Apart {
			return fmt.Errorf("%v: %w", got.State, got.Err)
		}
		if got.Lease != nil {
			return got.Lease.Release(t.Context())
		}
		return nil
	})
}

// slowProxy passes bytes on to addr, each piece after a delay.
func slowProxy(t *testing.T, addr string, delay *atomic.Int64) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	var conns sync.Map
	pipe := func(to, from net.Conn, slow bool) {
		defer func() { _, _ = to.Close(), from.Close() }()
		buf := make([]byte, 64<<10)
		for {
			n, err := from.Read(buf)
			if err != nil {
				return
			}
			if slow {
				time.Sleep(time.Duration(delay.Load()))
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
	}
	running.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", addr)
			if err != nil {
				_ = in.Close()
				continue
			}
			conns.Store(in, out)
			running.Go(func() { pipe(out, in, true) })
			running.Go(func() { pipe(in, out, false) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		conns.Range(func(in, out any) bool {
			_, _ = in.(io.Closer).Close(), out.(io.Closer).Close()
			return true
		})
		running.Wait()
	})
	return l.Addr().String()
}

// TestSlowRedis: requests stop asking it; invalidations still come.
func TestSlowRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	var delay atomic.Int64
	g := startGuarded(t, slowProxy(t, server.Addr, &delay), "a", redis.DefaultSlow)
	g.until(t, true)
	fast := startGuarded(t, server.Addr, "b", patience)
	fast.until(t, true)

	delay.Store(int64(100 * time.Millisecond))
	redistest.Eventually(t, "the circuit opens", func() error {
		if got := g.Acquire(t.Context(), claimOf("/")); g.guard.Stats().Open == 0 {
			return fmt.Errorf("%v", got.State)
		}
		return nil
	})
	birth := g.stamps.Position()
	if _, err := fast.Stamp(t.Context(), Invalidation{Kind: ByURL, Namespace: "shop", Value: urlOf("/")}); err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, "the invalidation is heard", func() error {
		if got := g.judges("/", birth); got != Refused {
			return fmt.Errorf("verdict %d", got)
		}
		return nil
	})
	delay.Store(0)
	redistest.Eventually(t, "the circuit closes", func() error {
		if s := g.guard.Stats(); s.Open != 0 {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
}

package redis

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/weirproxy/weir/extproc/fleet/redistest"
)

// stub is a node that answers as a test says, without a network.
type stub struct {
	guard   *Guard
	breaker *breaker

	mu   sync.Mutex // probes come from another goroutine
	took time.Duration
	err  error
	sent int
}

// locked runs f while no command looks at the fields.
func (s *stub) locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// answer is what the node does for each command.
func (s *stub) answer() error {
	var took time.Duration
	var err error
	s.locked(func() {
		s.sent++
		took, err = s.took, s.err
	})
	time.Sleep(took)
	return err
}

func newStub(o GuardOptions) *stub {
	s := &stub{guard: NewGuard(nil, o)}
	s.breaker = &breaker{guard: s.guard, addr: "node"}
	ping := func(ctx context.Context) error { return s.command(Background(ctx), "ping") }
	s.breaker.ping.Store(&ping)
	s.guard.breakers = []*breaker{s.breaker}
	return s
}

func (s *stub) command(ctx context.Context, name string) error {
	return s.breaker.ProcessHook(func(context.Context, goredis.Cmder) error {
		return s.answer()
	})(ctx, goredis.NewCmd(ctx, name))
}

func (s *stub) pipeline(ctx context.Context) error {
	return s.breaker.ProcessPipelineHook(func(context.Context, []goredis.Cmder) error {
		return s.answer()
	})(ctx, []goredis.Cmder{goredis.NewCmd(ctx, "get")})
}

// reply is an error that Redis answers with.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

func TestCircuitOpens(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for _, c := range []struct {
		name string
		took time.Duration
		err  error
		cmd  string
		open bool
	}{
		{"refused", 0, errors.New("connect: connection refused"), "get", true},
		{"cut off", 0, io.EOF, "get", true},
		{"frozen", 250 * time.Millisecond, context.DeadlineExceeded, "get", true},
		{"slow", 100 * time.Millisecond, nil, "evalsha", true},
		{"loading", 0, reply("LOADING Redis is loading the dataset in memory"), "get", true},
		{"read only", 0, reply("READONLY You can't write against a read only replica."), "get", true},
		{"slots not served", 0, reply("CLUSTERDOWN The cluster is down"), "get", true},
		{"no such key", 0, goredis.Nil, "get", false},
		{"full", 0, reply("OOM command not allowed when used memory > 'maxmemory'."), "evalsha", false},
		{"not allowed", 0, reply("NOPERM this user has no permissions"), "get", false},
		{"client went away", time.Second, context.Canceled, "get", false},
		{"impatient caller", time.Millisecond, context.DeadlineExceeded, "get", false},
		{"waiting for news", 500 * time.Millisecond, goredis.Nil, "xread", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStub(GuardOptions{})
				s.took, s.err = c.took, c.err
				for range DefaultFailures {
					if err := s.command(ctx, c.cmd); !errors.Is(err, c.err) {
						t.Fatalf("error %v, want %v", err, c.err)
					}
				}
				began := time.Now()
				s.err, s.took = nil, 0
				err := s.command(ctx, "get")
				if open := errors.Is(err, ErrOpen); open != c.open || time.Since(began) > 0 {
					t.Errorf("then: %v after %v; want open %v", err, time.Since(began), c.open)
				}
				if errors.Is(s.pipeline(ctx), ErrOpen) != c.open {
					t.Error("pipelines are not treated alike")
				}
				if err := s.command(Background(ctx), "xread"); err != nil {
					t.Errorf("in the background: %v", err)
				}
				if st := s.guard.Stats(); st.Nodes != 1 || (st.Open == 1) != c.open || (st.Refused == 2) != c.open {
					t.Errorf("stats %+v", st)
				}
			})
		})
	}
}

func TestSuccessesKeepTheCircuitClosed(t *testing.T) {
	t.Parallel()
	s := newStub(GuardOptions{})
	for i := range 100 {
		s.err = io.EOF
		if i%DefaultFailures == 0 {
			s.err = nil
		}
		if err := s.command(t.Context(), "get"); errors.Is(err, ErrOpen) {
			t.Fatal("open although every fifth command succeeds")
		}
	}
}

func TestLargePipelinesMayTakeTheirTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStub(GuardOptions{})
		s.took = 200 * time.Millisecond
		for range 2 * DefaultFailures {
			if err := s.pipeline(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		s.err = io.EOF
		for range DefaultFailures {
			_ = s.pipeline(t.Context())
		}
		if err := s.pipeline(t.Context()); !errors.Is(err, ErrOpen) {
			t.Errorf("failing pipelines: %v", err)
		}
	})
}

// TestProbesAreRareAndBringItBack: with Run, and within seconds of its return.
func TestProbesAreRareAndBringItBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var observed atomic.Int64
		s := newStub(GuardOptions{Observe: func(string, time.Duration, error) { observed.Add(1) }})
		ctx, cancel := context.WithCancel(t.Context())
		go s.guard.Run(ctx)
		synctest.Wait()
		s.locked(func() { s.err = io.EOF })
		for range DefaultFailures {
			_ = s.command(ctx, "get")
		}
		s.locked(func() { s.sent = 0 })
		time.Sleep(time.Minute)
		s.locked(func() {
			if s.sent < 12 || s.sent > 35 {
				t.Errorf("%d probes in a minute", s.sent)
			}
			s.err = nil
		})
		time.Sleep(DefaultMaxPause)
		if err := s.command(ctx, "get"); err != nil {
			t.Errorf("%v after it came back", err)
		}
		if st := s.guard.Stats(); st.Open != 0 || st.Opened != 1 {
			t.Errorf("stats %+v", st)
		}
		// A slow answer to a probe is none.
		s.locked(func() { s.took = time.Second })
		for range DefaultFailures {
			_ = s.command(ctx, "get")
		}
		time.Sleep(time.Minute)
		if err := s.command(ctx, "get"); !errors.Is(err, ErrOpen) {
			t.Errorf("slow as ever, and closed: %v", err)
		}
		if observed.Load() == 0 {
			t.Error("nothing was observed")
		}
		cancel()
		time.Sleep(2 * time.Second) // a probe may be under way
	})
}

// TestGuardOfARedis: stopped, frozen and back. While the circuit is open nothing is
// dialled.
func TestGuardOfARedis(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]struct{ begin, end func(*redistest.Server) }{
		"stopped": {(*redistest.Server).Stop, (*redistest.Server).Restart},
		"frozen":  {(*redistest.Server).Freeze, (*redistest.Server).Thaw},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			o, err := ParseURL("redis://"+server.Addr, "", "")
			if err != nil {
				t.Fatal(err)
			}
			c := Connect(o)
			t.Cleanup(func() { _ = c.Close() })
			g := NewGuard(c, GuardOptions{
				Slow: 10 * time.Second, MinPause: 10 * time.Millisecond, MaxPause: 100 * time.Millisecond,
			})
			dials := &dialCount{}
			c.AddHook(dials)
			redistest.Eventually(t, "it answers", func() error { return c.Ping(t.Context()).Err() })
			trouble.begin(server)
			redistest.Eventually(t, "the circuit opens", func() error {
				if err := c.Ping(t.Context()).Err(); !errors.Is(err, ErrOpen) {
					return errors.Join(errors.New("not open"), err)
				}
				return nil
			})
			before := dials.n.Load()
			for range 1000 {
				if err := c.Ping(t.Context()).Err(); !errors.Is(err, ErrOpen) {
					t.Fatalf("a command was sent: %v", err)
				}
			}
			if n := dials.n.Load() - before; n != 0 {
				t.Errorf("%d connections were dialled", n)
			}
			trouble.end(server)
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan struct{})
			go func() {
				defer close(done)
				g.Run(ctx)
			}()
			redistest.Eventually(t, "it is back", func() error { return c.Ping(t.Context()).Err() })
			cancel()
			<-done
		})
	}
}

type dialCount struct {
	trips
	n atomic.Int64
}

func (d *dialCount) DialHook(next goredis.DialHook) goredis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		d.n.Add(1)
		return next(ctx, network, addr)
	}
}

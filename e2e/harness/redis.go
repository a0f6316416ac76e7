package harness

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// Redis is a redis-server on a loopback port of its own, which keeps nothing on disk.
type Redis struct {
	// Address is its host:port, which stays the same over Stop and Start.
	Address string

	tb      TB
	args    []string
	process *process
}

// StartRedis starts the redis-server of the system, with further configuration as arguments ("--maxmemory", "4mb").
func StartRedis(tb TB, args ...string) *Redis {
	tb.Helper()
	reserve, address, err := reservePort(netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		tb.Fatalf("start Redis: %v", err)
	}
	_, port, err := net.SplitHostPort(address)
	if err = errors.Join(err, syscall.Close(reserve)); err != nil { // redis-server does not share a port
		tb.Fatalf("start Redis: %v", err)
	}
	r := &Redis{tb: tb, Address: address}
	r.args = append([]string{
		"--port", port, "--bind", "127.0.0.1", "--dir", tb.TempDir(), "--save", "", "--appendonly", "no",
	}, args...)
	r.Start()
	return r
}

// URL is what --redis-url takes.
func (r *Redis) URL() string { return "redis://" + r.Address }

// Start starts it again after Stop, empty.
func (r *Redis) Start() {
	r.tb.Helper()
	p := startProcess(r.tb, "redis-server (Debian: apt-get install redis-server)",
		exec.Command("redis-server", r.args...), nil)
	r.process = p
	r.tb.Cleanup(func() { p.signal(syscall.SIGCONT) }) // a frozen one would not end
	Eventually(r.tb, startLimit, "Redis answers", func() bool {
		if !p.running() {
			r.tb.Fatalf("redis-server ended before it answered: %s", p.output)
		}
		_, err := r.do("PING")
		return err == nil
	})
}

// Stop ends it as a crash does.
func (r *Redis) Stop() {
	r.process.signal(syscall.SIGKILL)
	<-r.process.exited
}

// Freeze stops the process without ending it: connections stay, nothing answers. Thaw ends that.
func (r *Redis) Freeze() { r.process.signal(syscall.SIGSTOP) }

// Thaw lets a frozen Redis go on.
func (r *Redis) Thaw() { r.process.signal(syscall.SIGCONT) }

// Do runs one command and returns its answer; nil for none.
func (r *Redis) Do(args ...any) any {
	r.tb.Helper()
	v, err := r.do(args...)
	if err != nil {
		r.tb.Fatalf("redis %v: %v", args, err)
	}
	return v
}

func (r *Redis) do(args ...any) (any, error) {
	c := goredis.NewClient(&goredis.Options{Addr: r.Address, Protocol: 2, DisableIdentity: true, MaxRetries: -1})
	defer func() { _ = c.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	v, err := c.Do(ctx, args...).Result()
	if errors.Is(err, goredis.Nil) {
		return nil, nil
	}
	return v, err
}

// Keys counts the keys of a pattern.
func (r *Redis) Keys(pattern string) int {
	r.tb.Helper()
	list, ok := r.Do("KEYS", pattern).([]any)
	if !ok {
		r.tb.Fatalf("redis KEYS %s: no list", strconv.Quote(pattern))
	}
	return len(list)
}

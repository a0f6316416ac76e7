package metrics

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	goredis "github.com/redis/go-redis/v9"
)

// RedisErrorKind says what was wrong with a command to Redis.
type RedisErrorKind int

// The kinds of errors of Redis.
const (
	RedisConnection RedisErrorKind = iota
	RedisTimeout
	RedisFull
	RedisAuth
	RedisReply
	numRedisErrors
)

// String returns the value of the label kind.
func (k RedisErrorKind) String() string { return redisErrorValues()[k].name }

func redisErrorValues() []value {
	return []value{
		RedisConnection: {"connection", "No connection, or it broke."},
		RedisTimeout:    {"timeout", "No answer in time."},
		RedisFull:       {"full", "Redis has reached `maxmemory`: nothing is written, reads go on."},
		RedisAuth:       {"auth", "User, password or ACL do not fit."},
		RedisReply:      {"reply", "Another error reply, such as that of a Redis that loads or fails over."},
	}
}

// RedisCommands counts the commands to Redis. It is safe for concurrent use.
type RedisCommands struct {
	seconds prometheus.Histogram
	errors  [numRedisErrors]atomic.Uint64
}

// NewRedisCommands registers the histogram of commands with reg; the errors are
// among the metrics of [ObserveFleet].
func NewRedisCommands(reg prometheus.Registerer) *RedisCommands {
	return &RedisCommands{seconds: factory{reg}.histogram("weir_redis_command_seconds",
		"Time that commands to Redis took, but for the one that waits for news.")}
}

// Observe counts one command.
func (c *RedisCommands) Observe(command string, took time.Duration, err error) {
	if command != "xread" { // it waits until there is something
		c.seconds.Observe(took.Seconds())
	}
	if kind, bad := redisErrorKind(err); bad {
		c.errors[kind].Add(1)
	}
}

// Errors returns the errors so far, by kind.
func (c *RedisCommands) Errors() (n [numRedisErrors]uint64) {
	for i := range n {
		n[i] = c.errors[i].Load()
	}
	return n
}

// redisErrorKind tells errors apart; false for what is none.
func redisErrorKind(err error) (RedisErrorKind, bool) {
	var reply goredis.Error
	var network net.Error
	switch {
	case err == nil, errors.Is(err, goredis.Nil), errors.Is(err, context.Canceled),
		goredis.HasErrorPrefix(err, "NOSCRIPT"): // sent whole then
		return 0, false
	case goredis.IsOOMError(err):
		return RedisFull, true
	case goredis.IsAuthError(err), goredis.IsPermissionError(err):
		return RedisAuth, true
	case errors.As(err, &reply):
		return RedisReply, true
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return RedisTimeout, true
	}
	return RedisConnection, true
}

package fleet

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/weirproxy/weir/extproc/store/redis"
)

// listenSilence is how long a subscription may bring nothing before it is asked
// for a sign of life, and then before it is given up.
const listenSilence = 2 * time.Second

// listen passes wake-ups on until ctx ends. While there is no subscription the net
// below the wake-ups has to do.
func (f *Fleet) listen(ctx context.Context) {
	for retry := minRetry; ctx.Err() == nil; retry = min(2*retry, maxRetry) {
		if f.receive(ctx) {
			retry = minRetry
		}
		select {
		case <-ctx.Done():
		case <-time.After(rand.N(retry)):
		}
	}
}

// receive subscribes and passes messages on until that fails. It reports whether
// any came.
func (f *Fleet) receive(ctx context.Context) (some bool) {
	sub := f.store.Client().Subscribe(ctx, redis.Channels()...)
	defer func() { _ = sub.Close() }()
	defer context.AfterFunc(ctx, func() { _ = sub.Close() })()
	for asked := false; ; {
		m, err := sub.ReceiveTimeout(ctx, listenSilence)
		var timeout net.Error
		switch {
		case err == nil:
			asked, some = false, true
		case errors.As(err, &timeout) && timeout.Timeout() && !asked && sub.Ping(ctx) == nil:
			asked = true
		default:
			return some
		}
		if text, ok := m.(*goredis.Message); ok {
			if message, ok := redis.ParseMessage(text.Payload); ok {
				f.counts.wakes.Add(1)
				f.waiters.wake(message)
			}
		}
	}
}

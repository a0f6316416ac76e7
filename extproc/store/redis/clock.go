package redis

import (
	"sync"
	"time"
)

// Clock relates the clock of this process to that of a Redis: TIME, which comes
// with every answer of a script. It errs on the side of older: an instant it
// gives in Redis's time is never after the true one, and before it by no more
// than a round trip took. It is safe for concurrent use.
type Clock struct {
	mu    sync.Mutex
	local time.Time
	redis int64
}

// observe notes that an answer came at local, with redis as TIME.
func (c *Clock) observe(local time.Time, redis int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.local, c.redis = local, redis
}

// at returns a local instant in Redis's time, in microseconds since 1970; false
// if nothing is known of it yet.
func (c *Clock) at(local time.Time) (int64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.local.IsZero() {
		return 0, false
	}
	return c.redis + local.Sub(c.local).Microseconds(), true
}

package redis

import (
	"context"
	"fmt"
	"log/slog"

	goredis "github.com/redis/go-redis/v9"
)

// LogTo has the Redis client of this process log to l, at debug level: what goes
// wrong is counted and handled elsewhere. The client has one logger for the whole
// process; call LogTo once, before the first client.
func LogTo(l *slog.Logger) { goredis.SetLogger(clientLog{l}) }

type clientLog struct{ log *slog.Logger }

// Printf implements the logger of the client.
func (c clientLog) Printf(ctx context.Context, format string, v ...any) {
	if c.log.Enabled(ctx, slog.LevelDebug) {
		c.log.DebugContext(ctx, "Redis client", "message", fmt.Sprintf(format, v...))
	}
}

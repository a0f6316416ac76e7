package fleet

import (
	"context"
	"net"
	"testing"
	"testing/synctest"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// inBubble runs test where time is made up, with a Redis in which it passes too.
func inBubble(t *testing.T, test func(t *testing.T, m *miniredis.Miniredis, dial func() *goredis.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := miniredis.NewMiniRedis()
		m.ClockTTL(true)
		t.Cleanup(m.Close)
		test(t, m, func() *goredis.Client {
			c := goredis.NewClient(&goredis.Options{
				Addr: "127.0.0.1:1", Protocol: 2, DisableIdentity: true, MaxRetries: -1, ContextTimeoutEnabled: true,
				MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
				Dialer:                   func(context.Context, string, string) (net.Conn, error) { return m.Dial() },
			})
			t.Cleanup(func() { _ = c.Close() })
			return c
		})
	})
}

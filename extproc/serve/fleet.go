package serve

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strings"

	"github.com/weirproxy/weir/extproc"
	"github.com/weirproxy/weir/extproc/fleet"
	"github.com/weirproxy/weir/extproc/metrics"
	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/store/redis"
	"github.com/weirproxy/weir/extproc/store/tiered"
)

// membership is what a process has in common with others through Redis.
type membership struct {
	replica  string
	url      string // without a password
	commands *metrics.RedisCommands
	guard    *redis.Guard
	shared   *redis.Store
	fleet    *fleet.Fleet
	tiered   *tiered.Tiered
	shed     bool
}

// newMembership makes the parts of a process in a fleet; nil without --redis-url.
// Nothing is dialled: a process starts, and serves, without Redis.
func newMembership(
	env environment, keys *redis.Keyring, local store.Store, stamps *fleet.Stamps,
) (*membership, error) {
	if env.cfg.RedisURL == "" {
		return nil, nil
	}
	o, err := redis.ParseURL(string(env.cfg.RedisURL), env.cfg.RedisPasswordFile, env.cfg.RedisCAFile)
	if err != nil {
		return nil, fmt.Errorf("--redis-url: %w", err)
	}
	m := &membership{
		shed:    env.cfg.RedisOutage == outageShed,
		replica: env.cfg.ReplicaName, url: env.cfg.RedisURL.String(), commands: metrics.NewRedisCommands(env.registry),
	}
	if m.replica == "" {
		m.replica = replicaName()
	}
	client := redis.Connect(o)
	m.guard = redis.NewGuard(client, redis.GuardOptions{Observe: m.commands.Observe})
	if m.shared, err = redis.New(client, redis.Options{Keys: keys, Prepare: extproc.Prepare}); err != nil {
		return nil, err
	}
	m.fleet, err = fleet.New(fleet.Options{Store: m.shared, Stamps: stamps, Replica: m.replica, Logger: env.log})
	if err != nil {
		return nil, err
	}
	m.tiered = tiered.New(tiered.Options{Local: local, Shared: m.shared, Fleet: m.fleet, Logger: env.log})
	metrics.ObserveFleet(env.registry, m.stats)
	return m, nil
}

// replicaName is a name that no other process has: the host's, with a random part,
// since a process that starts again is another.
func replicaName() string {
	host, _ := os.Hostname()
	host = strings.Map(func(r rune) rune {
		if r == '/' || notInName(r) {
			return '-'
		}
		return r
	}, host)
	return cmp.Or(host, "weir") + "-" + strings.ToLower(rand.Text()[:6])
}

// share adds the fleet to what a service is made of; in a process that is alone
// there is nothing to add.
func (m *membership) share(o extproc.Options) extproc.Options {
	if m != nil {
		o.Fleet, o.Shared, o.Through, o.Shed = m.fleet, m.shared, m.tiered, m.shed
	}
	return o
}

// background is what runs as long as the process serves.
func (m *membership) background() []func(context.Context) error {
	return []func(context.Context) error{
		func(ctx context.Context) error { m.guard.Run(ctx); return nil },
		func(ctx context.Context) error { m.fleet.Run(ctx); return nil },
	}
}

// close ends the connections.
func (m *membership) close() error {
	if m == nil {
		return nil
	}
	if err := m.shared.Client().Close(); err != nil {
		return fmt.Errorf("closing the connections to Redis: %w", err)
	}
	return nil
}

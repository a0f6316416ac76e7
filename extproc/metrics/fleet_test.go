package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	goredis "github.com/redis/go-redis/v9"

	"github.com/weirproxy/weir/extproc/fleet"
	"github.com/weirproxy/weir/extproc/store/redis"
)

// testFleet is a state in which every number is another.
func testFleet() FleetStats {
	s := FleetStats{
		Fleet: fleet.Stats{
			Held: 101, Renewals: 102, Lost: 103, Waiting: 104, Wakes: 105, Looks: 106, InTouch: true,
			SilentFor: 1500 * time.Millisecond, Losses: 107, Histories: 108, Queued: 109, Pending: 110, Position: 1 << 51,
		},
		CaughtUp: true,
		Guard:    redis.GuardStats{Nodes: 120, Open: 121, Opened: 122, Refused: 123, Failures: 124, Slow: 125},
		Shared: redis.Stats{
			Hits: 130, Misses: 131, Commits: 132, Fenced: 133, Outlived: 134, TooLarge: 135,
			Refused: redis.Refusals{MAC: 140, Format: 141, Malformed: 142, Incomplete: 143, TooLarge: 144},
		},
	}
	for i := range s.Fleet.Claims {
		s.Fleet.Claims[i], s.Fleet.Waits[i] = uint64(200+i), uint64(300+i)
	}
	for i := range s.Errors {
		s.Errors[i] = uint64(400 + i)
	}
	return s
}

// TestFleetIsReadAtScrape wants every number where it belongs, and no series that
// is not wanted.
func TestFleetIsReadAtScrape(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	ObserveFleet(reg, testFleet)
	claim := func(s fleet.State) float64 { return 200 + float64(s) }
	wait := func(s fleet.State) float64 { return 300 + float64(s) }
	want := map[string]float64{
		"weir_fleet_claims_total{granted}": claim(fleet.Granted), "weir_fleet_claims_total{found}": claim(fleet.Found),
		"weir_fleet_claims_total{held}": claim(fleet.Held), "weir_fleet_claims_total{apart}": claim(fleet.Apart),
		"weir_fleet_claims_total{vary_changed}": claim(fleet.VaryChanged),
		"weir_fleet_claims_total{unavailable}":  claim(fleet.Unavailable),
		"weir_fleet_waits_total{found}":         wait(fleet.Found), "weir_fleet_waits_total{failed}": wait(fleet.Failed),
		"weir_fleet_waits_total{vary_changed}": wait(fleet.VaryChanged),
		"weir_fleet_waits_total{apart}":        wait(fleet.Apart), "weir_fleet_waits_total{free}": wait(fleet.Free),
		"weir_fleet_waits_total{held}":        wait(fleet.Held),
		"weir_fleet_waits_total{unavailable}": wait(fleet.Unavailable),
		"weir_fleet_leases":                   101, "weir_fleet_lease_renewals_total": 102,
		"weir_fleet_leases_lost_total": 103,
		"weir_fleet_waiting":           104, "weir_fleet_wakes_total{message}": 105, "weir_fleet_wakes_total{look}": 106,
		"weir_fleet_in_touch": 1, "weir_fleet_caught_up": 1, "weir_fleet_silent_seconds": 1.5,
		"weir_fleet_losses_total": 107, "weir_fleet_histories_total": 108,
		"weir_fleet_invalidations_queued_total": 109, "weir_fleet_invalidations_pending": 110,
		"weir_fleet_invalidation_position": 1 << 51,
		"weir_redis_nodes":                 120, "weir_redis_nodes_open": 121, "weir_redis_circuit_opened_total": 122,
		"weir_redis_commands_refused_total": 123, "weir_redis_slow_commands_total": 125,
		"weir_redis_reads_total{hit}": 130, "weir_redis_reads_total{miss}": 131,
		"weir_redis_commits_total{stored}": 132, "weir_redis_commits_total{fenced}": 133,
		"weir_redis_commits_total{outlived}": 134, "weir_redis_commits_total{too_large}": 135,
		"weir_redis_refused_total{mac}": 140, "weir_redis_refused_total{format}": 141,
		"weir_redis_refused_total{malformed}": 142, "weir_redis_refused_total{incomplete}": 143,
		"weir_redis_refused_total{too_large}": 144,
		"weir_redis_errors_total{connection}": 400, "weir_redis_errors_total{timeout}": 401,
		"weir_redis_errors_total{full}": 402, "weir_redis_errors_total{auth}": 403, "weir_redis_errors_total{reply}": 404,
	}
	if diff := cmp.Diff(want, values(t, reg)); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
	for name, set := range labelSets() {
		for _, v := range set {
			if _, ok := want[name+"{"+v.name+"}"]; !ok && (name[:10] == "weir_fleet" || name[:10] == "weir_redis") {
				t.Errorf("%s: documented value %s has no series", name, v.name)
			}
		}
	}
}

// replyError is an error reply of Redis.
type replyError string

func (e replyError) Error() string { return string(e) }
func (replyError) RedisError()     {}

func TestRedisCommands(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	c := NewRedisCommands(reg)
	c.Observe("evalsha", time.Millisecond, nil)
	c.Observe("xread", time.Second, nil)
	for err, want := range map[error]string{
		goredis.Nil: "", context.Canceled: "", replyError("NOSCRIPT No matching script"): "",
		io.EOF: "connection", errors.New("dial tcp: connection refused"): "connection",
		fmt.Errorf("redis: %w", context.DeadlineExceeded):                           "timeout",
		replyError("OOM command not allowed when used memory > 'maxmemory'."):       "full",
		replyError("NOAUTH Authentication required."):                               "auth",
		replyError("NOPERM User weir has no permissions to run the 'eval' command"): "auth",
		replyError("LOADING Redis is loading the dataset in memory"):                "reply",
	} {
		before := c.Errors()
		c.Observe("xread", 0, err)
		for kind, n := range c.Errors() {
			if moved, name := n != before[kind], RedisErrorKind(kind).String(); moved != (name == want) {
				t.Errorf("%v: %s moved %v, want %q to move", err, name, moved, want)
			}
		}
	}
	if got := values(t, reg)["weir_redis_command_seconds"]; got != 1 {
		t.Errorf("%v commands are timed, want 1: xread waits", got)
	}
}

package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/e2e/harness"
)

// shortTimeout is Envoy's default message_timeout, which a hold outlasts at once.
const shortTimeout = 200 * time.Millisecond

// startShort starts an edge whose message timeout is short and which fails closed, so that a hold that Envoy had to end
// would be a client's 504. Tests that use it do not run beside others: so short a time must not be used up by them.
func startShort(t *testing.T, maxTimeout time.Duration, lines string) *edge {
	t.Helper()
	envoyMax := maxTimeout
	if maxTimeout == 0 {
		envoyMax = -1
	}
	return startEdge(t, edgeOptions{
		Envoy: harness.EnvoyOptions{MessageTimeout: shortTimeout, MaxMessageTimeout: envoyMax, FailClosed: true},
		Weir: harness.WeirOptions{Args: []string{
			"--envoy-message-timeout=" + shortTimeout.String(), "--envoy-max-message-timeout=" + maxTimeout.String(),
		}},
		Spec: lines,
	})
}

// wantTimely checks that Envoy granted every extension it was asked for, and ran into no timeout.
func (e *edge) wantTimely(extensions uint64) {
	e.t.Helper()
	for name, want := range map[string]uint64{
		"message_timeouts": 0, "override_message_timeout_ignored": 0, "override_message_timeout_received": extensions,
	} {
		if got := e.envoy.Counter("http.edge.ext_proc." + name); got != want {
			e.t.Errorf("Envoy's ext_proc %s: %d, want %d", name, got, want)
		}
	}
}

// TestHoldOutlastsTheMessageTimeout: a follower asks Envoy once for the time that it may have to wait.
func TestHoldOutlastsTheMessageTimeout(t *testing.T) { // not parallel: see startShort
	const clients = 10
	e := startShort(t, 10*time.Second, "")
	defer e.settles()
	e.serve("/page", harness.Always(harness.Reply{
		Delay: 1500 * time.Millisecond, Size: 1000, Header: harness.Fields("Cache-Control", "max-age=60"),
	}))
	answers := e.burst(clients, e.get("/page"))
	e.wantBody(answers(), harness.GeneratedBody(1000))
	e.wantCount("/page", 1)
	e.wantOutcomes(map[string]int{"miss": 1, "coalesced": clients - 1})
	e.wantTimely(clients - 1)
	if n := e.weir.Metrics().Sum("weir_hold_capped_total"); n != 0 {
		t.Errorf("%v holds were capped, although there was time for all", n)
	}
}

// TestHoldCappedByTheMessageTimeout: where Envoy grants less time than the policy's maxWait, or none, followers go on
// to the origin before Envoy's timer ends; a metric and a warning say so.
func TestHoldCappedByTheMessageTimeout(t *testing.T) { // not parallel: see startShort
	const clients = 10
	tests := map[string]struct {
		maxTimeout time.Duration
		extensions uint64
	}{
		"less than maxWait": {time.Second, clients - 1},
		"none":              {0, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := startShort(t, tt.maxTimeout, "coalescing: {maxWait: 20s}")
			defer e.settles()
			gate := make(chan struct{})
			e.serve("/page", numbered(gate, "no-store"))
			answers := e.burst(clients, e.get("/page"))
			e.answering("/page", clients)
			close(gate)
			wantDistinct(t, answers())
			e.wantCount("/page", clients)
			e.wantTimely(tt.extensions)
			if n := e.weir.Metrics().Sum("weir_hold_capped_total"); n != clients-1 {
				t.Errorf("weir_hold_capped_total is %v, want %d", n, clients-1)
			}
			if n := strings.Count(e.weir.Output(), "message timeout is shorter than coalescing.maxWait"); n != 1 {
				t.Errorf("the warning was logged %d times, want once", n)
			}
		})
	}
}

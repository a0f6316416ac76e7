package harness_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/weirproxy/weir/e2e/harness"
)

// TestBurstIsConcurrent holds all answers back until the origin has every request of the burst, through Envoy.
func TestBurstIsConcurrent(t *testing.T) {
	t.Parallel()
	const n = 300
	origin := harness.StartOrigin(t)
	gate, bodies := make(chan struct{}), make(chan struct{})
	origin.Handle("/", func(_ int, r *http.Request) harness.Reply {
		return harness.Reply{Gate: gate, BodyGate: bodies, PauseAfter: 2, Body: []byte("id " + r.Header.Get("X-Id"))}
	})
	envoy := harness.StartEnvoy(t, harness.EnvoyOptions{
		Origins: []string{origin.Address()}, Routes: []harness.Route{{Name: "plain", NoCache: true}},
	})
	wait := harness.StartBurst(t, n, func(i int) *http.Request {
		return harness.Get(envoy.URL("/"), "X-Id", fmt.Sprint(i))
	})
	harness.Eventually(t, time.Minute, "all requests are there", func() bool { return origin.Concurrent("/") == n })
	close(gate)
	time.Sleep(50 * time.Millisecond) // the responses' first and last bytes are told apart
	close(bodies)
	for i, r := range wait() {
		if r.Err != nil || r.Status != 200 || string(r.Body) != fmt.Sprint("id ", i) || r.Length != int64(len(r.Body)) {
			t.Fatalf("client %d: %+v", i, r)
		}
		if r.FirstByte <= 0 || r.LastByte <= r.FirstByte {
			t.Errorf("client %d: first byte at %v, last at %v", i, r.FirstByte, r.LastByte)
		}
	}
	if got := origin.MaxConcurrent("/"); got != n {
		t.Errorf("the origin had %d requests at a time, want %d", got, n)
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	origin := harness.StartOrigin(t)
	origin.Handle("/", func(n int, _ *http.Request) harness.Reply {
		if n%10 == 0 {
			return harness.Reply{Size: 10, Cut: true}
		}
		return harness.Reply{Delay: 20 * time.Millisecond, Header: harness.Fields("Cache-Status", "test; hit")}
	})
	r := harness.Load(t, harness.LoadOptions{
		Request: harness.Get("http://" + origin.Address() + "/"), Rate: 100, Duration: time.Second, Connections: 10,
	})
	if r.Errors != 10 || r.Statuses[200] != 90 || r.CacheStatus["test; hit"] != 90 || len(r.Latencies) != 90 {
		t.Errorf("errors %d, statuses %v, Cache-Status %v", r.Errors, r.Statuses, r.CacheStatus)
	}
	if p50 := harness.Percentile(r.Latencies, 50); p50 < 20*time.Millisecond {
		t.Errorf("p50 is %v, less than the origin takes", p50)
	}
}

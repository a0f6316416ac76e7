package bench

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirproxy/weir/e2e/harness"
)

// stampedePolicy waits longer than any crowd takes on a busy machine: how many requests reach the origin must not
// depend on that.
const stampedePolicy = `apiVersion: weir.dev/v1alpha1
kind: CachePolicy
metadata: {name: bench, namespace: bench}
spec:
  targetRefs:
  - {group: weir.dev, kind: EnvoyRoute, name: bench}
  coalescing: {maxWait: 50s}
`

// crowdStage is where stampedes happen: lanes "one" (a process alone), "a" and "b" (two of a fleet of three), "fleet"
// (all three in turn), and those of other caches.
type crowdStage struct {
	*Stage
	origin  *harness.Origin
	servers map[string]Server
	keys    atomic.Int64
}

// startCrowds starts one weir alone, and three over one Redis.
func (b *bench) startCrowds(tb harness.TB) *crowdStage {
	tb.Helper()
	c := &crowdStage{origin: harness.StartOrigin(tb), servers: map[string]Server{}}
	secret := filepath.Join(tb.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(strings.Repeat("5a", 32)+"\n"), 0o600); err != nil {
		tb.Fatalf("write a key: %v", err)
	}
	redis := harness.StartRedis(tb)
	options := func(args ...string) harness.WeirOptions {
		return harness.WeirOptions{
			Policies: map[string]string{"bench.yaml": stampedePolicy},
			Args:     append([]string{"--envoy-message-timeout=10s"}, args...),
		}
	}
	_, one := startWeir(tb, options())
	c.servers["one"] = one
	c.servers[laneNginx], c.servers[laneVarnish] = startNginx(tb, c.origin.Address()), startVarnish(tb, c.origin.Address())
	clusters := []Cluster{
		{Name: "origin", Addresses: []string{c.origin.Address()}}, one.cluster("one"), {Name: "fleet", HTTP2: true},
		c.servers[laneNginx].http1Cluster(laneNginx), c.servers[laneVarnish].http1Cluster(laneVarnish),
	}
	for _, name := range []string{"a", "b", "c"} {
		_, s := startWeir(tb, options("--redis-url="+redis.URL(), "--secret-file="+secret, "--replica-name="+name))
		clusters = append(clusters, s.cluster(name))
		clusters[2].Addresses = append(clusters[2].Addresses, s.Addresses[0])
	}
	lanes := []Lane{
		{Name: "one", Filter: "one", Upstream: "origin"}, {Name: "fleet", Filter: "fleet", Upstream: "origin"},
		{Name: "a", Filter: "a", Upstream: "origin"}, {Name: "b", Filter: "b", Upstream: "origin"},
		{Name: laneNginx, Upstream: laneNginx}, {Name: laneVarnish, Upstream: laneVarnish},
	}
	c.Stage = startStage(tb, lanes, clusters)
	return c
}

// stampede is what a crowd of clients met who asked for one cold key at the same time.
type stampede struct {
	origin int           // requests that reached it
	server time.Duration // CPU of the cache for each client
	// first and last are how long after the leader's first byte each follower's first and last byte came, ascending.
	first, last []time.Duration
}

// crowd sends n clients for a key that nobody has, which costs the origin the given time.
func (c *crowdStage) crowd(tb harness.TB, lane string, n int, cost time.Duration) stampede {
	tb.Helper()
	path := fmt.Sprintf("/crowd/%d", c.keys.Add(1))
	c.origin.Handle(path, harness.Always(harness.Reply{Delay: cost, Header: cacheable(), Size: 1 << 10}))
	before := cpuTimes(tb, c.servers[lane].PIDs)
	results := harness.Burst(tb, n, harness.Same(harness.Get(c.url(lane, path), "Host", "bench.example")))
	s := asStampede(tb, results, c.origin.Count(path))
	s.server = since(before, cpuTimes(tb, c.servers[lane].PIDs)) / time.Duration(n)
	return s
}

func cacheable() http.Header {
	return harness.Fields("Cache-Control", "max-age=600", "Content-Type", "application/octet-stream")
}

// asStampede takes whoever had the first byte for the leader.
func asStampede(tb harness.TB, results []harness.BurstResult, origin int) stampede {
	tb.Helper()
	s := stampede{origin: origin}
	for i, r := range results {
		if r.Err != nil || r.Status != http.StatusOK {
			tb.Fatalf("client %d of %d: status %d, error %v", i, len(results), r.Status, r.Err)
		}
	}
	slices.SortFunc(results, func(a, b harness.BurstResult) int { return int(a.FirstByte - b.FirstByte) })
	for _, r := range results[1:] {
		s.first = append(s.first, r.FirstByte-results[0].FirstByte)
		s.last = append(s.last, r.LastByte-results[0].FirstByte)
	}
	slices.Sort(s.last)
	return s
}

// stampedeRows counts what reaches the origin, and measures how soon followers are answered.
func (b *bench) stampedeRows(tb harness.TB) {
	tb.Helper()
	c := b.startCrowds(tb)
	b.delayRows(tb, c)
	perClient := map[int]time.Duration{}
	for _, n := range b.scale.Crowds {
		cost := max(500*time.Millisecond, time.Duration(n)*400*time.Microsecond) // until the last has come
		for _, of := range []struct{ lane, suffix string }{
			{"one", "x1"}, {"fleet", "x3"}, {laneNginx, laneNginx}, {laneVarnish, laneVarnish},
		} {
			s := c.crowd(tb, of.lane, n, cost)
			b.add(Judged(Row{
				Name: fmt.Sprintf("origin_requests_%d_%s", n, of.suffix), Unit: "requests", Value: float64(s.origin),
				What: "origin requests, cold key, all caches behind the same Envoy",
			}))
			b.crowdRows(fmt.Sprintf("crowd_%d_%s", n, of.suffix), s)
			if of.lane == "one" {
				perClient[n] = s.server
			}
		}
	}
	few, many := b.scale.Crowds[0], b.scale.Crowds[len(b.scale.Crowds)-1]
	b.add(Judged(Row{
		Name: "follower_cpu_growth", Unit: "µs", Value: micros(perClient[many]), Baseline: micros(perClient[few]),
		Ratio: float64(perClient[many]) / float64(perClient[few]),
		What:  fmt.Sprintf("CPU of weir for each of %d clients that wait for one fetch ÷ for each of %d", many, few),
	}))
}

// crowdRows says when the followers of a crowd had their answers.
func (b *bench) crowdRows(name string, s stampede) {
	for _, p := range []float64{50, 99} {
		b.add(Judged(Row{
			Name: fmt.Sprintf("%s_first_byte_p%.0f_ms", name, p), Unit: "ms", Value: millis(harness.Percentile(s.first, p)),
			What: "crowd: a follower's first byte after the leader's",
		}))
	}
	b.add(Judged(Row{
		Name: name + "_last_byte_max_ms", Unit: "ms", Value: millis(harness.Percentile(s.last, 100)),
		What: "crowd: the last follower's last byte after the leader's first",
	}))
}

// followers is how many wait in the groups whose delays are measured: few, so that it is weir's delay and not how long
// Envoy's worker takes to write to a crowd.
const followers = 4

// delayRows measures how long after the leader followers are answered, in many small groups.
func (b *bench) delayRows(tb harness.TB, c *crowdStage) {
	tb.Helper()
	var same, other []time.Duration
	for range b.scale.Groups {
		leader, waiting := c.group(tb, "one", "one")
		for _, r := range waiting {
			same = append(same, r.FirstByte-leader.FirstByte)
		}
		leader, waiting = c.group(tb, "a", "b")
		for _, r := range waiting {
			other = append(other, r.FirstByte-leader.LastByte)
		}
	}
	slices.Sort(same)
	slices.Sort(other)
	b.add(Judged(Row{Name: "follower_ttfb_same_p99_ms", Unit: "ms", Value: millis(harness.Percentile(same, 99))}))
	b.add(Judged(Row{Name: "follower_ttfb_other_p99_ms", Unit: "ms", Value: millis(harness.Percentile(other, 99))}))
	b.add(Judged(Row{
		Name: "follower_ttfb_same_p50_ms", Unit: "ms", Value: millis(harness.Percentile(same, 50)),
		What: "same process: a follower's first byte after the leader's, median",
	}))
	b.add(Judged(Row{
		Name: "follower_ttfb_other_p50_ms", Unit: "ms", Value: millis(harness.Percentile(other, 50)),
		What: "other process: a follower's first byte after the leader's last, median",
	}))
}

// group lets one request lead through a lane and others follow through the same or another, then has the origin answer.
// The times are from one start.
func (c *crowdStage) group(tb harness.TB, lead, follow string) (
	leader harness.BurstResult, waiting []harness.BurstResult,
) {
	tb.Helper()
	path := fmt.Sprintf("/group/%d", c.keys.Add(1))
	gate := make(chan struct{})
	c.origin.Handle(path, harness.Always(harness.Reply{Gate: gate, Header: cacheable(), Size: 1 << 10}))
	request := func(lane string) func(int) *http.Request {
		return harness.Same(harness.Get(c.url(lane, path), "Host", "bench.example"))
	}
	first := harness.StartBurst(tb, 1, request(lead))
	start := time.Now() // as StartBurst has it, but for microseconds
	harness.Eventually(tb, time.Minute, "the origin is asked", func() bool { return c.origin.Concurrent(path) == 1 })
	rest := harness.StartBurst(tb, followers, request(follow))
	gap := time.Since(start)
	time.Sleep(settle) // the followers wait now, here or in Redis
	close(gate)
	leader, waiting = first()[0], rest()
	for i := range waiting {
		waiting[i].FirstByte += gap
	}
	if n := c.origin.Count(path); n != 1 || leader.Err != nil {
		tb.Fatalf("group: the origin was asked %d times, error %v", n, leader.Err)
	}
	return leader, waiting
}

// settle is longer than a request takes to arrive and to be held.
const settle = 50 * time.Millisecond

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

package bench

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weirproxy/weir/e2e/harness"
)

// The caches that are compared, by lane. "nginx alone" is nginx without Envoy in front, the least that any of this
// could cost.
const (
	laneWeir    = "weir"
	laneUnix    = "weir-unix"
	laneNginx   = "nginx"
	laneVarnish = "varnish"
	laneCache   = "envoy-cache"
	alone       = "nginx-alone"
)

// cacheStage is all caches in front of one origin, behind one Envoy.
type cacheStage struct {
	*Stage
	origin  *harness.Origin
	servers map[string]Server
	keys    int
}

func startCaches(tb harness.TB) *cacheStage {
	tb.Helper()
	c := &cacheStage{origin: harness.StartOrigin(tb), servers: map[string]Server{}}
	refill := Lane{Name: "detached", Upstream: "origin", Port: portOf(tb, freeAddress(tb))}
	entry := fmt.Sprintf("127.0.0.1:%d", refill.Port)
	_, c.servers[laneWeir] = startWeir(tb, harness.WeirOptions{RefillAddress: entry})
	socket := "unix://" + filepath.Join(tb.TempDir(), "s")
	_, c.servers[laneUnix] = startWeir(tb, harness.WeirOptions{RefillAddress: entry, GRPCAddress: socket})
	c.servers[laneNginx] = startNginx(tb, c.origin.Address())
	c.servers[laneVarnish] = startVarnish(tb, c.origin.Address())
	c.servers[laneCache], c.servers[alone] = Server{}, c.servers[laneNginx]
	c.Stage = startStage(tb, []Lane{
		{Name: laneWeir, Filter: laneWeir, Upstream: "origin"}, {Name: laneUnix, Filter: laneUnix, Upstream: "origin"},
		{Name: laneNginx, Upstream: laneNginx}, {Name: laneVarnish, Upstream: laneVarnish},
		{Name: laneCache, Filter: "cache", Upstream: "origin"}, refill,
	}, []Cluster{
		{Name: "origin", Addresses: []string{c.origin.Address()}},
		c.servers[laneWeir].cluster(laneWeir), c.servers[laneUnix].cluster(laneUnix),
		c.servers[laneNginx].http1Cluster(laneNginx), c.servers[laneVarnish].http1Cluster(laneVarnish),
	})
	return c
}

// address returns the URL of a path on a lane, or on nginx itself.
func (c *cacheStage) address(lane, path string) string {
	if lane == alone {
		return "http://" + c.servers[alone].Addresses[0] + path
	}
	return c.url(lane, path)
}

// caches is what is asked of every cache.
type caches struct {
	of    string // case
	bytes int
	http2 bool
	lanes []string
	// share is the part of Scale.Requests that one round sends.
	share float64
	// fields are sent with each request.
	fields []string
	// reply is what the origin answers; the second answer to a path comes slowly if stale is set, when the first is no
	// longer fresh.
	reply harness.Reply
	stale bool
	// unique asks for a path once only.
	unique bool
}

// all are the lanes, and those that can do what a case asks for.
func allLanes() []string {
	return []string{laneWeir, laneUnix, laneNginx, laneVarnish, laneCache, alone}
}

// compareRows measures what a request costs with each cache.
func (b *bench) compareRows(tb harness.TB) {
	tb.Helper()
	c := startCaches(tb)
	fresh := func(size int) harness.Reply {
		return harness.Reply{Header: cacheable(), ETag: `"v1"`, Size: size}
	}
	const kib = 1 << 10
	cases := []caches{
		{of: "hit", bytes: kib, share: 1, lanes: allLanes(), reply: fresh(kib)},
		{of: "hit", bytes: kib, share: 1, http2: true, lanes: allLanes()[:5], reply: fresh(kib)},
		{of: "hit", bytes: 64 * kib, share: 0.5, lanes: allLanes(), reply: fresh(64 * kib)},
		{of: "hit", bytes: 1024 * kib, share: 0.05, lanes: allLanes(), reply: fresh(1024 * kib)},
		{of: "hit", bytes: 1024 * kib, share: 0.05, http2: true, lanes: allLanes()[:5], reply: fresh(1024 * kib)},
		{of: "hit", bytes: 8192 * kib, share: 0.01, lanes: allLanes(), reply: fresh(8192 * kib)},
		{of: "304", bytes: 64 * kib, share: 1, lanes: allLanes(), reply: fresh(64 * kib),
			fields: []string{`if-none-match: "v1"`}},
		{of: "uncacheable", bytes: kib, share: 0.5, lanes: allLanes(),
			reply: harness.Reply{Header: harness.Fields("Cache-Control", "no-store"), Size: kib}},
		{of: "miss", bytes: kib, share: 0.5, unique: true, lanes: allLanes(), reply: fresh(kib)},
		{of: "stale", bytes: kib, share: 1, stale: true, lanes: []string{laneWeir, laneUnix, laneNginx, laneVarnish, alone},
			reply: harness.Reply{Size: kib, ETag: `"v1"`, Header: harness.Fields("Content-Type", "text/plain",
				"Cache-Control", "max-age=1, stale-while-revalidate=600")}},
	}
	for _, of := range cases {
		b.compare(tb, c, of)
	}
}

// compare measures one case.
func (b *bench) compare(tb harness.TB, c *cacheStage, of caches) {
	tb.Helper()
	c.keys++
	path := fmt.Sprintf("/%s/%d", of.of, c.keys)
	c.handle(path, of)
	var subjects []subject
	for _, lane := range of.lanes {
		// h2load wants at least as many requests as clients.
		n := max(int(of.share*float64(b.scale.Requests)), b.scale.Clients)
		l := load{url: c.address(lane, path), requests: n, clients: b.scale.Clients, http2: of.http2, fields: of.fields}
		if of.unique {
			l.clients, l.sent = 1, new(int)
		}
		s := subject{name: lane, load: l, server: c.servers[lane].PIDs}
		if lane != alone {
			s.envoy = []int{c.envoy.PID()}
		}
		if !of.unique {
			c.prime(tb, l.url, of)
		}
		subjects = append(subjects, s)
	}
	if of.stale {
		time.Sleep(1200 * time.Millisecond) // the answers' max-age
	}
	about := sample{of: of.of, bytes: of.bytes, protocol: "h1"}
	if of.http2 {
		about.protocol = "h2"
	}
	b.note(about, measure(tb, b.scale.CacheRounds, subjects...))
}

// slow is what a refresh of the case "stale" takes: as long as the answer is fresh, so that about half of the requests
// meet a stale one. (nginx holds back what comes on the connection whose request began the refresh; a longer one would
// make it wait for that more than work.)
const slow = time.Second

func (c *cacheStage) handle(path string, of caches) {
	c.origin.Handle(path, func(n int, _ *http.Request) harness.Reply {
		reply := of.reply
		if of.stale && n > len(of.lanes) { // all have it
			reply.Delay = slow
		}
		return reply
	})
	if of.unique {
		c.origin.Handle(path+"/", harness.Always(of.reply))
	}
}

// prime has the cache store the answer, and lets it become stale if that is what is measured.
func (c *cacheStage) prime(tb harness.TB, url string, of caches) {
	tb.Helper()
	harness.Do(tb, harness.Get(url))
	if of.of != "uncacheable" && !of.stale {
		expect(tb, url, of.bytes)
	}
}

// uris writes n paths that nobody asked for before, and returns the file.
func uris(tb harness.TB, base string, n, from int) string {
	tb.Helper()
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, "%s/%d\n", base, from+i)
	}
	path := filepath.Join(tb.TempDir(), "uris")
	if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
		tb.Fatalf("write a list of URLs: %v", err)
	}
	return path
}

package e2e_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/weirproxy/weir/e2e/harness"
)

// TestFleet: three processes over one Redis, a real Envoy in front of each, are one cache. The parts follow each other
// on one fleet; after each the processes hold nothing that they did not hold before.
//
// That replicas whose clocks differ by an hour agree on ages is tested in extproc/fleet and extproc/store/redis, with
// clocks that a test can set.
func TestFleet(t *testing.T) {
	f := startFleet(t)
	for _, part := range []struct {
		name string
		run  func(*fleet)
	}{
		{"cold key", (*fleet).coldKey},
		{"first byte after the commit", (*fleet).firstByte},
		{"uncacheable answers do not queue", (*fleet).uncacheable},
		{"vary", (*fleet).vary},
		{"HEAD and ranges of shared answers", (*fleet).headAndRange},
		{"a replica that starts again", (*fleet).restart},
		{"scope and sharing", (*fleet).scopes},
	} {
		t.Run(part.name, func(t *testing.T) { f.run(t, part.run) })
	}
}

// coldKey: 250 clients come to each process at the same moment. The origin sees one request, and answers when all
// wait.
func (f *fleet) coldKey() {
	const clients = 250
	gate := make(chan struct{})
	f.serve("/cold", harness.Always(harness.Reply{
		Gate: gate, Size: 10_000, Header: harness.Fields("Cache-Control", "max-age=60", "Content-Type", "text/plain"),
	}))
	answers := f.burst(clients, "/cold")
	f.waiting(len(f.replicas)*clients - 1)
	close(gate)
	f.wantBody(answers(), harness.GeneratedBody(10_000))
	f.wantCount("/cold", 1)
}

// firstByte prints how long after the leader had its whole answer, and so about after the commit, followers in other
// processes had their first byte.
func (f *fleet) firstByte() {
	const rounds, clients = 30, 5
	var after []time.Duration
	for i := range rounds {
		path := fmt.Sprintf("/first/%d", i)
		gate := make(chan struct{})
		f.serve(path, harness.Always(harness.Reply{
			Gate: gate, Size: 1000, Header: harness.Fields("Cache-Control", "max-age=60", "Content-Type", "text/plain"),
		}))
		answers := f.burst(clients, path)
		f.waiting(len(f.replicas)*clients - 1)
		leads := slices.IndexFunc(f.replicas, func(r *replica) bool { return r.fleetStatus().Fleet.Leases == 1 })
		close(gate)
		results := answers()
		f.wantBody(results, harness.GeneratedBody(1000))
		committed := time.Duration(1<<63 - 1)
		for j, r := range results {
			if j%len(f.replicas) == leads {
				committed = min(committed, r.LastByte)
			}
		}
		for j, r := range results {
			if j%len(f.replicas) != leads {
				after = append(after, max(r.FirstByte-committed, 0))
			}
		}
	}
	slices.Sort(after)
	f.t.Logf("first byte in another process after the leader's last: median %v, p99 %v, of %d",
		harness.Percentile(after, 50), harness.Percentile(after, 99), len(after))
}

// uncacheable: what cannot be shared lets all followers go on together, in all processes, and the next burst does
// not even wait.
func (f *fleet) uncacheable() {
	const clients = 20
	all := len(f.replicas) * clients
	leader, rest := make(chan struct{}), make(chan struct{})
	f.serve("/private", func(n int, r *http.Request) harness.Reply {
		return numbered([]chan struct{}{leader, rest}[min(n, 2)-1], "private")(n, r)
	})
	answers := f.burst(clients, "/private")
	f.waiting(all - 1)
	f.wantCount("/private", 1)
	close(leader)
	f.replicas[0].answering("/private", all-1) // at the same time: the origin answers none before all are there
	close(rest)
	wantDistinct(f.t, answers())
	f.wantCount("/private", all)

	f.origin.Reset()
	again := make(chan struct{})
	f.serve("/private", numbered(again, "private"))
	answers = f.burst(clients, "/private")
	f.replicas[0].answering("/private", all)
	close(again)
	wantDistinct(f.t, answers())
	f.wantCount("/private", all)
}

// vary: each representation is fetched once for all, although only the first answer says that there are several.
func (f *fleet) vary() {
	const clients = 10
	gate, second := make(chan struct{}), make(chan struct{})
	f.serve("/vary", func(n int, r *http.Request) harness.Reply {
		return byEncoding([]chan struct{}{gate, second}[min(n, 2)-1], "Accept-Encoding")(n, r)
	})
	n := len(f.replicas) * clients
	answers := harness.StartBurst(f.t, n, func(i int) *http.Request {
		return f.replicas[i/2%len(f.replicas)].get("/vary", "Accept-Encoding", []string{"gzip", "identity"}[i%2])
	})
	f.waiting(n - 1)
	f.wantCount("/vary", 1)
	close(gate)
	f.replicas[0].eventually("the other representation is fetched", func() bool { return f.origin.Count("/vary") == 2 })
	close(second)
	wantCodings(f.t, answers())
	f.wantCount("/vary", 2)
	for _, r := range f.replicas { // the groups do not meet any more
		for _, coding := range []string{"gzip", "identity"} {
			if got := r.do(r.get("/vary", "Accept-Encoding", coding)); string(got.Body) != "in "+coding {
				f.t.Errorf("replica %s: %q, want in %s", r.name, got.Body, coding)
			}
		}
	}
	f.wantCount("/vary", 2)
}

// headAndRange: what one process has stored another serves, in whole and in part.
func (f *fleet) headAndRange() {
	a, b, c := f.replicas[0], f.replicas[1], f.replicas[2]
	f.serve("/large", harness.Always(harness.Reply{
		Size: 1_000_000, ETag: `"v1"`, Header: harness.Fields("Cache-Control", "max-age=60", "Content-Type", "text/plain"),
	}))
	whole := harness.GeneratedBody(1_000_000)
	before := f.redis.Keys("weir:{*}:v:*")
	if got := a.do(a.get("/large")); hash(got.Body) != hash(whole) {
		f.t.Fatalf("a: status %d, %d bytes", got.Status, len(got.Body))
	}
	f.shared(before + 1)
	head := b.get("/large")
	head.Method = http.MethodHead
	if got := b.do(head); got.Status != 200 || got.Header.Get("Content-Length") != "1000000" || len(got.Body) != 0 {
		f.t.Errorf("HEAD: status %d, %v", got.Status, got.Header)
	}
	if got := c.do(c.get("/large", "Range", "bytes=500000-500099")); got.Status != 206 ||
		string(got.Body) != string(whole[500000:500100]) {
		f.t.Errorf("range: status %d, %d bytes", got.Status, len(got.Body))
	}
	if got := c.do(c.get("/large", "If-None-Match", `"v1"`)); got.Status != 304 {
		f.t.Errorf("If-None-Match: status %d", got.Status)
	}
	f.wantCount("/large", 1)
}

// restart: a replica that starts again has in memory what was asked for most before it is ready, and everything else
// from Redis, without a request to the origin.
func (f *fleet) restart() {
	const pages, hot = 60, 20
	page := func(i int) string { return fmt.Sprintf("/restart/%d", i) }
	c := f.replicas[2]
	before := f.redis.Keys("weir:{*}:v:*")
	for i := range pages {
		f.serve(page(i), versions())
		c.wantsStored(page(i), "v1")
	}
	for range 5 {
		for i := range hot {
			c.wantsStored(page(i), "v1")
		}
	}
	f.shared(before + pages)
	c.weir.Terminate()
	c.start()
	if n := c.status().Store.Entries; n < hot {
		f.t.Errorf("%d entries in memory when it is ready, want what is hot at least: %d", n, hot)
	}
	if n := c.weir.Metrics().Sum("weir_fleet_claims_total"); n != 0 {
		f.t.Errorf("%v claims before anybody asked", n)
	}
	f.inTouch()
	for i := range pages {
		c.wantsStored(page(i), "v1")
		f.wantCount(page(i), 1)
	}
}

// scopes: coalescing.scope Replica takes no leases and waits for nobody else, but shares what is stored;
// storage.sharing Replica leaves no trace in Redis.
func (f *fleet) scopes() {
	f.redis.Do("FLUSHALL") // of what came before; stamps and history come again
	f.inTouch()
	for _, path := range []string{"/replica/page", "/local/page"} {
		gate := make(chan struct{})
		f.serve(path, numbered(gate, "max-age=60"))
		answers := f.burst(5, path)
		f.replicas[0].answering(path, len(f.replicas)) // each leads at home
		if n := f.redis.Keys("weir:{*}:l:*"); n != 0 {
			f.t.Errorf("%s: %d leases in Redis", path, n)
		}
		close(gate)
		answers()
		f.wantCount(path, len(f.replicas))
	}
	f.shared(1)
	if n := f.redis.Keys("weir:{*}:v:*"); n != 1 {
		f.t.Errorf("%d entries in Redis, want that of /replica/page alone", n)
	}
}

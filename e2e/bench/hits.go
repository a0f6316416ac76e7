package bench

import (
	"net/http"
	"time"

	"github.com/weirproxy/weir/e2e/bench/floor"
	"github.com/weirproxy/weir/e2e/harness"
)

// goalRows compares a hit of 1 KiB and a pass-through with the floor.
func (b *bench) goalRows(tb harness.TB) {
	tb.Helper()
	const size = 1 << 10
	origin := startOrigin(tb, size)
	stock, raw := b.programs.startFloor(tb, floor.Stock, size), b.programs.startFloor(tb, floor.Raw, size)
	closing := b.programs.startFloor(tb, floor.Close, size)
	_, weir := startWeir(tb, harness.WeirOptions{})
	lanes := []Lane{
		{Name: "direct", BodyFile: bodyFile(tb, size)},
		{Name: "stock", Filter: "stock", Upstream: "origin"}, {Name: "raw", Filter: "raw", Upstream: "origin"},
		{Name: "close", Filter: "close", Upstream: "origin"}, {Name: "weir", Filter: "weir", Upstream: "origin"},
	}
	stage := startStage(tb, 1, lanes, []Cluster{
		{Name: "origin", Addresses: []string{origin.Address()}},
		stock.cluster("stock"), raw.cluster("raw"), closing.cluster("close"), weir.cluster("weir"),
	})
	at := func(lane, path string, s Server) subject {
		l := load{url: stage.url(lane, path), requests: b.scale.Requests, clients: b.scale.Clients}
		if path == passPath {
			l.fields = []string{"range: bytes=0-99999"} // no whole entry: weir closes the stream
		}
		return subject{name: lane + path, load: l, envoy: []int{stage.envoy.PID()}, server: s.PIDs}
	}
	expect(tb, stage.url("weir", hitPath), size)
	hits := measure(tb, b.scale.Rounds, at("direct", hitPath, Server{}), at("stock", hitPath, stock),
		at("raw", hitPath, raw), at("weir", hitPath, weir))
	b.add(hits.row("hit_cpu_vs_stock", "weir"+hitPath, "stock"+hitPath, serverPart))
	b.add(hits.row("hit_total_vs_raw_floor", "weir"+hitPath, "raw"+hitPath, cost.total))
	b.note("hit", size, hits)
	passes := measure(tb, b.scale.Rounds, at("close", passPath, closing), at("weir", passPath, weir))
	b.add(passes.row("pass_cpu_vs_close", "weir"+passPath, "close"+passPath, serverPart))
	b.note("pass", size, passes)
}

// What the origin has: an answer to keep, and one that no request is answered from.
const (
	hitPath  = "/hit"
	passPath = "/pass"
)

func serverPart(c cost) time.Duration { return c.server }

// startOrigin starts an origin whose answers have the header that the floor's have.
func startOrigin(tb harness.TB, size int) *harness.Origin {
	tb.Helper()
	o := harness.StartOrigin(tb)
	header := http.Header{}
	for _, f := range floor.Header() {
		header.Set(f.Name, f.Value)
	}
	header.Del("Date") // the server writes its own: the fixed one would be an age
	body := harness.GeneratedBody(size)
	o.Handle(hitPath, harness.Always(harness.Reply{Header: header, Body: body}))
	o.Handle(passPath, harness.Always(harness.Reply{Header: harness.Fields("Cache-Control", "no-store"), Body: body}))
	return o
}

// expect sends a request twice and fails unless the second is answered whole.
func expect(tb harness.TB, url string, size int) {
	tb.Helper()
	harness.Do(tb, harness.Get(url))
	if r := harness.Do(tb, harness.Get(url)); r.Status != http.StatusOK || len(r.Body) != size {
		tb.Fatalf("%s: %d with %d bytes, want 200 with %d", url, r.Status, len(r.Body), size)
	}
}

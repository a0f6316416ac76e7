package bench

import (
	"net/http"
	"time"

	"github.com/weirproxy/weir/e2e/bench/floor"
	"github.com/weirproxy/weir/e2e/harness"
)

// What the origin has: an answer to keep, and one that is asked for so that weir has no part in it.
const (
	hitPath  = "/hit"
	passPath = "/pass"
)

// floorStage is weir beside the servers that decide nothing, all behind one Envoy; lanes are named as the servers are.
type floorStage struct {
	stage   *Stage
	size    int
	weir    *harness.Weir
	servers map[string]Server
}

// startFloorStage starts it for 1 KiB.
func (b *bench) startFloorStage(tb harness.TB) *floorStage {
	tb.Helper()
	const size = 1 << 10
	origin := startOrigin(tb, size)
	f := &floorStage{size: size, servers: map[string]Server{"direct": {}}}
	lanes := []Lane{{Name: "direct", BodyFile: bodyFile(tb, size)}}
	clusters := []Cluster{{Name: "origin", Addresses: []string{origin.Address()}}}
	add := func(name string, s Server) {
		f.servers[name] = s
		lanes = append(lanes, Lane{Name: name, Filter: name, Upstream: "origin"})
		clusters = append(clusters, s.cluster(name))
	}
	for _, kind := range []floor.Kind{floor.Stock, floor.Raw, floor.Close} {
		add(string(kind), b.programs.startFloor(tb, kind, size))
	}
	w, server := startWeir(tb, harness.WeirOptions{})
	f.weir = w
	add("weir", server)
	if b.scale.Against != "" {
		_, other := startWeir(tb, harness.WeirOptions{Binary: b.scale.Against})
		add("other", other)
	}
	f.stage = startStage(tb, lanes, clusters)
	return f
}

// subject is the load of a path on a lane.
func (f *floorStage) subject(s Scale, lane, path string, server Server) subject {
	l := load{url: f.stage.url(lane, path), requests: s.Requests, clients: s.Clients}
	if path == passPath {
		l.fields = []string{"range: bytes=0-99999"} // no whole entry: weir closes the stream
	}
	return subject{name: lane, load: l, envoy: []int{f.stage.envoy.PID()}, server: server.PIDs}
}

// goalRows compares a hit of 1 KiB and a pass-through with the floor.
func (b *bench) goalRows(tb harness.TB) {
	tb.Helper()
	f := b.startFloorStage(tb)
	rounds := func(path string, lanes ...string) measurement {
		var subjects []subject
		if b.scale.Against != "" {
			lanes = append(lanes, "other")
		}
		for _, lane := range lanes {
			subjects = append(subjects, f.subject(b.scale, lane, path, f.servers[lane]))
		}
		return measure(tb, b.scale.Rounds, subjects...)
	}
	hits := rounds(hitPath, "direct", "stock", "raw", "weir")
	b.add(hits.row("hit_cpu_vs_stock", "stock", serverPart))
	b.add(hits.row("hit_total_vs_raw_floor", "raw", cost.total))
	b.note(sample{of: "hit", bytes: f.size, protocol: "h1"}, hits)
	passes := rounds(passPath, "close", "weir")
	b.add(passes.row("pass_cpu_vs_close", "close", serverPart))
	b.note(sample{of: "pass", bytes: f.size, protocol: "h1"}, passes)
	if b.scale.Against != "" {
		b.add(hits.row("hit_cpu_vs_other_build", "other", serverPart))
		b.add(hits.row("hit_total_vs_other_build", "other", cost.total))
		b.add(passes.row("pass_cpu_vs_other_build", "other", serverPart))
	}
}

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

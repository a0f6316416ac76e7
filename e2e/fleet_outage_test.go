package e2e_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weirproxy/weir/e2e/harness"
)

// TestFleetOutage: Redis is away, frozen, full or slow, and comes back. Every request is answered; each process
// coalesces for itself meanwhile; afterwards they share again without a restart. From reference case 28.
func TestFleetOutage(t *testing.T) {
	f := startFleet(t)
	for _, part := range []struct {
		name string
		run  func(*fleet)
	}{
		{"healthy", (*fleet).healthy},
		{"slow", (*fleet).slowRedis},
		{"full", (*fleet).fullRedis},
		{"frozen", (*fleet).frozenRedis},
		{"stopped", (*fleet).stoppedRedis},
		{"dead at start", (*fleet).deadAtStart},
		{"invalidation while away", (*fleet).invalidationWhileAway},
		{"shed", (*fleet).shed},
	} {
		t.Run(part.name, func(t *testing.T) { f.run(t, part.run) })
	}
}

// outageTraffic is what clients of an outage saw.
type outageTraffic struct {
	mu        sync.Mutex
	latencies []time.Duration
	paths     []string
}

const (
	trafficClients = 4 // of each replica, who ask for the same at the same time
	originDelay    = 20 * time.Millisecond
)

// load has clients ask each replica for a row of pages, cold ones and then warm ones, about one every 10 ms, until the
// pages are over. meanwhile is called when a third is over.
func (f *fleet) load(name string, pages int, meanwhile func()) {
	f.t.Helper()
	if full() {
		pages *= 10 // so that the moment in which the outage is found out is a small part of it
	}
	row := &outageTraffic{}
	for i := range pages {
		path := fmt.Sprintf("/load/%s/%d", name, i)
		row.paths = append(row.paths, path)
		f.serve(path, func(int, *http.Request) harness.Reply {
			return harness.Reply{
				Delay: originDelay, Body: []byte(path), Header: harness.Fields("Cache-Control", "max-age=600"),
			}
		})
	}
	third := make(chan struct{})
	var wg, begun sync.WaitGroup
	begun.Add(len(f.replicas) * trafficClients)
	for _, r := range f.replicas {
		for range trafficClients {
			wg.Go(func() { row.client(f, r, &begun, third) })
		}
	}
	begun.Wait() // all have done a third
	if meanwhile != nil {
		meanwhile()
	}
	close(third)
	wg.Wait()
	most, fetches := 0, 0
	for _, path := range row.paths {
		n := f.origin.Count(path)
		most, fetches = max(most, n), fetches+n
	}
	if most > len(f.replicas) {
		f.t.Errorf("%s: the origin saw %d requests for one page, want at most one of each process", name, most)
	}
	slices.Sort(row.latencies)
	f.t.Logf("%s: %d requests, %d at the origin (which takes %v), median %v, p99 %v, max %v", name, len(row.latencies),
		fetches, originDelay, harness.Percentile(row.latencies, 50), harness.Percentile(row.latencies, 99),
		harness.Percentile(row.latencies, 100))
}

// client asks for all pages, each twice, and waits after the first third.
func (w *outageTraffic) client(f *fleet, r *replica, begun *sync.WaitGroup, third <-chan struct{}) {
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	defer client.CloseIdleConnections()
	var took []time.Duration
	for i, path := range w.paths {
		if i == len(w.paths)/3 {
			begun.Done()
			<-third
		}
		for range 2 {
			start := time.Now()
			body, err := fetch(client, r.get(path))
			took = append(took, time.Since(start))
			if err != nil || body != path {
				f.t.Errorf("replica %s: %s: %q, %v", r.name, path, body, err)
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.latencies = append(w.latencies, took...)
}

// away waits until every replica has found out that Redis is away.
func (f *fleet) away() {
	f.t.Helper()
	for _, r := range f.replicas {
		r.eventually("replica "+r.name+" goes on by itself", func() bool {
			s := r.fleetStatus().Fleet
			return !s.InTouch && s.CaughtUp
		})
	}
}

// sharesAgain checks that what one process fetches the others have, and prints how long it took since Redis was back.
func (f *fleet) sharesAgain(path string) {
	f.t.Helper()
	back := time.Now()
	f.inTouch()
	f.t.Logf("in touch again after %v", time.Since(back))
	f.serve(path, versions())
	for _, r := range f.replicas {
		r.wantsStored(path, "v1")
	}
	f.wantCount(path, 1)
}

func (f *fleet) healthy() {
	f.load("healthy", 60, nil)
	f.sharesAgain("/again/healthy")
}

// slowRedis: 100 ms for each answer of Redis.
func (f *fleet) slowRedis() {
	f.load("slow", 60, func() { f.delay(100 * time.Millisecond) })
	f.delay(0)
	f.sharesAgain("/again/slow")
}

// fullRedis: Redis takes nothing more; what it has is read.
func (f *fleet) fullRedis() {
	f.serve("/full", versions())
	f.replicas[0].wantsStored("/full", "v1")
	f.replicas[0].eventually("Redis has it", func() bool { return f.redis.Keys("weir:{*}:v:*") > 0 })
	f.redis.Do("CONFIG", "SET", "maxmemory-policy", "noeviction")
	f.redis.Do("CONFIG", "SET", "maxmemory", "1")
	f.replicas[1].wantsStored("/full", "v1")
	f.wantCount("/full", 1)
	f.load("full", 60, nil)
	if n := f.replicas[0].fleetStatus().Fleet.Errors["full"]; n == 0 {
		f.t.Error("nobody counted that Redis is full")
	}
	f.redis.Do("CONFIG", "SET", "maxmemory", "0")
	f.sharesAgain("/again/full")
}

// frozenRedis: connections stay, nothing answers.
func (f *fleet) frozenRedis() {
	f.load("frozen", 60, f.redis.Freeze)
	f.away()
	f.redis.Thaw()
	f.sharesAgain("/again/frozen")
}

// stoppedRedis: connections break, none can be made, for as long as it takes. What the processes hold does not grow with
// it: neither goroutines nor memory.
func (f *fleet) stoppedRedis() {
	f.load("stopped", 60, f.redis.Stop)
	f.away()
	rounds := 2
	if full() { // some minutes
		rounds = 6
	}
	goroutines, resident := f.holds()
	for i := range rounds {
		f.load(fmt.Sprintf("stopped-%d", i), 60, nil)
	}
	after, residentAfter := f.holds()
	f.t.Logf("from %v goroutines and %d MiB to %v and %d MiB", goroutines, resident>>20, after, residentAfter>>20)
	if after > goroutines+30 || residentAfter > resident+resident/2 {
		f.t.Errorf("from %v goroutines and %d bytes to %v and %d", goroutines, resident, after, residentAfter)
	}
	f.redis.Start()
	f.sharesAgain("/again/stopped")
}

// holds adds up the goroutines and the resident memory of the replicas once they are quiet.
func (f *fleet) holds() (goroutines float64, resident uint64) {
	f.t.Helper()
	for _, r := range f.replicas {
		r.quiet()
		goroutines += r.weir.Metrics().Sum("go_goroutines")
		resident += r.weir.ResidentBytes()
	}
	return goroutines, resident
}

// deadAtStart: a process starts, is ready and serves although there is no Redis, and finds it when it comes.
func (f *fleet) deadAtStart() {
	f.redis.Stop()
	c := f.replicas[2]
	c.weir.Terminate()
	c.start()
	if !c.weir.IsReady() {
		f.t.Error("a process waits with being ready for Redis")
	}
	f.load("dead", 30, nil)
	f.redis.Start()
	f.sharesAgain("/again/dead")
}

// invalidationWhileAway: what one process invalidates while Redis is away it serves no longer, says that the others
// were not told, and tells them once Redis is back, before they serve what they share.
func (f *fleet) invalidationWhileAway() {
	f.serve("/away", versions())
	for _, r := range f.replicas {
		r.wantsStored("/away", "v1")
	}
	f.redis.Stop()
	f.away()
	a, b := f.replicas[0], f.replicas[1]
	done := a.invalidates("Url", fleetURL("/away"))
	if !done.Queued || done.Certain || done.Confirmed != 1 || len(done.Warnings) == 0 {
		f.t.Errorf("%+v, want to hear that it is queued", done)
	}
	a.wantsStored("/away", "v2")
	b.wantsStored("/away", "v1") // cut off: it cannot know
	f.redis.Start()
	f.inTouch()
	b.eventually("the others were told", func() bool { return a.fleetStatus().Fleet.Pending == 0 })
	for _, r := range f.replicas[1:] {
		if got := r.do(r.get("/away")); string(got.Body) == "v1" {
			f.t.Errorf("replica %s serves %q after it was told, Cache-Status %q", r.name, got.Body,
				got.Header.Get("Cache-Status"))
		}
	}
}

// shed: a process that is told so fetches nothing for all while Redis is away; what it has it serves, and what is not
// shared it fetches as ever.
func (f *fleet) shed() {
	for _, path := range []string{"/shed/kept", "/shed/cold", "/replica/shed"} {
		f.serve(path, versions())
	}
	c := f.replicas[2]
	c.weir.Terminate()
	c.options.Args = append(c.options.Args, "--redis-outage=Shed")
	c.start()
	f.inTouch()
	c.wantsStored("/shed/kept", "v1")
	f.redis.Stop()
	f.away()
	got := c.do(c.get("/shed/cold"))
	if got.Status != http.StatusServiceUnavailable || got.Header.Get("Retry-After") == "" ||
		got.Header.Get("Cache-Status") != "weir; detail=fleet-away" {
		f.t.Errorf("a cold page: %d, %v", got.Status, got.Header)
	}
	f.wantCount("/shed/cold", 0)
	c.wantsStored("/shed/kept", "v1")
	f.wantCount("/shed/kept", 1)
	c.wantsStored("/replica/shed", "v1")
	f.redis.Start()
	f.inTouch()
	c.wantsStored("/shed/cold", "v1")
}

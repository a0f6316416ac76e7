package e2e_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirproxy/weir/e2e/harness"
)

// fleetHost is the host that clients ask for, whichever Envoy they come to.
const fleetHost = "shop.example"

// fleetPolicies: all processes share what is below /, and each has what is below /replica and /local for itself.
const fleetPolicies = `
apiVersion: weir.dev/v1alpha1
kind: CachePolicy
metadata: {name: catalog, namespace: shop}
spec:
  targetRefs: [{group: weir.dev, kind: EnvoyRoute, name: default}]
  coalescing: {maxWait: 20s}
  storage: {maxObjectSize: 8Mi}
  tags: {responseHeader: Surrogate-Key}
---
apiVersion: weir.dev/v1alpha1
kind: CachePolicy
metadata: {name: replica, namespace: shop}
spec:
  targetRefs: [{group: weir.dev, kind: EnvoyRoute, name: replica}]
  coalescing: {scope: Replica}
---
apiVersion: weir.dev/v1alpha1
kind: CachePolicy
metadata: {name: local, namespace: shop}
spec:
  targetRefs: [{group: weir.dev, kind: EnvoyRoute, name: local}]
  storage: {sharing: Replica}
`

// fleet is several weir processes over one Redis, each behind an Envoy of its own, in front of one origin.
type fleet struct {
	t        *testing.T
	origin   *harness.Origin
	redis    *harness.Redis
	replicas []*replica
	base     []baseline // of the replicas, once they were started
}

// replica is one of the processes, with its Envoy.
type replica struct {
	*edge
	name    string
	options harness.WeirOptions
	proxy   *harness.Proxy // in front of Redis
	whole   *testing.T     // the test that the fleet is of: what a part of it starts goes on
}

// baseline is what a process holds when nothing is asked.
type baseline struct{ goroutines float64 }

// startFleet starts three replicas. On a busy machine Envoy alone can take more than the usual second; its message
// timeout is longer here, and so is the time that followers wait: none of this is about patience.
func startFleet(t *testing.T) *fleet {
	t.Helper()
	const replicas, messageTimeout = 3, 20 * time.Second
	f := &fleet{t: t, origin: harness.StartOrigin(t), redis: harness.StartRedis(t)}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(strings.Repeat("5a", 32)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	harness.Binary(t, "weir-extproc") // once, not by all at a time
	f.replicas = make([]*replica, replicas)
	for i := range f.replicas {
		name := string(rune('a' + i))
		r := &replica{edge: &edge{t: t, origin: f.origin}, name: name, whole: t}
		r.proxy = harness.StartProxy(t, f.redis.Address)
		r.envoy = harness.StartEnvoy(t, harness.EnvoyOptions{
			Origins: []string{f.origin.Address()}, Concurrency: 1, MessageTimeout: messageTimeout,
			Routes: []harness.Route{
				{Name: "replica", Prefix: "/replica"}, {Name: "local", Prefix: "/local"}, {Name: "default"},
			},
		})
		r.options = harness.WeirOptions{
			Policies: map[string]string{"shop.yaml": fleetPolicies}, RefillAddress: r.envoy.RefillAddress(),
			Args: []string{
				"--envoy-message-timeout=" + messageTimeout.String(), "--secret-file=" + secret,
				"--redis-url=redis://" + r.proxy.Address, "--replica-name=" + name,
			},
		}
		f.replicas[i] = r
		r.start()
	}
	f.inTouch()
	for _, r := range f.replicas {
		f.base = append(f.base, baseline{goroutines: r.weir.Metrics().Sum("go_goroutines")})
	}
	return f
}

// start starts the replica's weir, again if it had ended.
func (r *replica) start() {
	r.t.Helper()
	r.weir = harness.StartWeir(r.whole, r.options)
	r.envoy.SetWeir(r.weir.GRPCAddress)
}

// get makes a request for a path through this replica.
func (r *replica) get(path string, fields ...string) *http.Request {
	return r.edge.get(path, append([]string{"Host", fleetHost}, fields...)...)
}

// post makes an unsafe request for a path through this replica.
func (r *replica) post(path string) *http.Request {
	req := r.get(path)
	req.Method = http.MethodPost
	return req
}

// leaseLife is how long a lease lives that is not renewed.
const leaseLife = 3 * time.Second

// answerTo is the answer to a request that was sent, once it is there.
type answerTo struct {
	r    *replica
	conn *net.TCPConn
	done chan struct{}
	err  error

	status      int
	cacheStatus string
	body        []byte
}

// ask sends a request for the path, and reads the answer when it comes.
func (r *replica) ask(path string) *answerTo {
	r.t.Helper()
	req := r.get(path)
	a := &answerTo{r: r, conn: r.send(req), done: make(chan struct{})}
	go func() {
		defer close(a.done)
		resp, err := http.ReadResponse(bufio.NewReader(a.conn), req)
		if err != nil {
			a.err = err
			return
		}
		a.status, a.cacheStatus = resp.StatusCode, resp.Header.Get("Cache-Status")
		a.body, a.err = io.ReadAll(resp.Body)
		_ = resp.Body.Close()
	}()
	r.t.Cleanup(a.hangUp)
	return a
}

// hangUp closes the client's connection.
func (a *answerTo) hangUp() {
	_ = a.conn.Close() // it may be closed already
	<-a.done
}

// wantsBody waits for the answer, which must be a 200 with this body.
func (a *answerTo) wantsBody(want string) {
	a.r.t.Helper()
	select {
	case <-a.done:
	case <-time.After(patience):
		a.r.t.Fatalf("replica %s: no answer", a.r.name)
	}
	switch {
	case a.err != nil:
		a.r.t.Errorf("replica %s: %v, want %q", a.r.name, a.err, want)
	case a.status != http.StatusOK || string(a.body) != want:
		a.r.t.Errorf("replica %s: %d %q, Cache-Status %q, want %q", a.r.name, a.status, a.body, a.cacheStatus, want)
	}
}

// wantsStored asks for what must be there.
func (r *replica) wantsStored(path, want string) {
	r.t.Helper()
	if got := r.do(r.get(path)); got.Status != http.StatusOK || string(got.Body) != want {
		r.t.Errorf("replica %s: %s: %d %q, Cache-Status %q, want %q", r.name, path, got.Status, got.Body,
			got.Header.Get("Cache-Status"), want)
	}
}

// fleetStatus is the part of GET /v1/status about the fleet that tests look at.
type fleetStatus struct {
	Fleet struct {
		InTouch, CaughtUp       bool
		Leases, Waiting, Losses int
		Pending                 int
		Replicas                []struct{ Alive bool }
		Circuit                 struct{ State string }
		Errors                  map[string]int
	}
}

func (r *replica) fleetStatus() (s fleetStatus) {
	r.t.Helper()
	r.weir.AdminGet("/v1/status", &s)
	return s
}

// inTouch waits until every replica that runs is in touch with all others.
func (f *fleet) inTouch() {
	f.t.Helper()
	running := 0
	for _, r := range f.replicas {
		if r != nil && r.weir.Running() {
			running++
		}
	}
	for _, r := range f.replicas {
		if r != nil && r.weir.Running() {
			r.inTouch(running)
		}
	}
}

// inTouch waits until the replica is in touch with so many, itself included.
func (r *replica) inTouch(running int) {
	r.t.Helper()
	var s fleetStatus
	defer func() {
		if r.t.Failed() {
			r.t.Logf("replica %s at last, of %d that run: %+v", r.name, running, s)
		}
	}()
	r.eventually("replica "+r.name+" is in touch with the fleet", func() bool {
		s = r.fleetStatus()
		alive := 0
		for _, other := range s.Fleet.Replicas {
			if other.Alive {
				alive++
			}
		}
		return s.Fleet.InTouch && s.Fleet.CaughtUp && alive == running && s.Fleet.Circuit.State == "closed"
	})
}

// burst sends n equal requests to each replica at once.
func (f *fleet) burst(n int, path string) func() []harness.BurstResult {
	f.t.Helper()
	return harness.StartBurst(f.t, n*len(f.replicas), func(i int) *http.Request {
		return f.replicas[i%len(f.replicas)].get(path)
	})
}

// run runs a part of a test under its own t.
func (f *fleet) run(t *testing.T, part func(*fleet)) {
	t.Helper()
	outer := f.t
	set := func(t *testing.T) {
		f.t = t
		for _, r := range f.replicas {
			r.t = t
		}
	}
	set(t)
	defer set(outer)
	part(f)
	f.settles()
}

func (f *fleet) serve(path string, script harness.Script) { f.origin.Handle(path, script) }

func (f *fleet) wantBody(answers []harness.BurstResult, want []byte) {
	f.t.Helper()
	f.replicas[0].wantBody(answers, want)
}

func (f *fleet) wantCount(path string, want int) {
	f.t.Helper()
	f.replicas[0].wantCount(path, want)
}

// shared waits until Redis has n answers at least: nobody whose answer it is waits for that.
func (f *fleet) shared(n int) {
	f.t.Helper()
	f.replicas[0].eventually("Redis has the answers", func() bool { return f.redis.Keys("weir:{*}:v:*") >= n })
}

// waiting waits until so many requests are held, in all replicas together.
func (f *fleet) waiting(n int) {
	f.t.Helper()
	var last float64
	defer func() {
		if f.t.Failed() {
			f.t.Logf("weir_waiting was %v at last", last)
		}
	}()
	f.replicas[0].eventually("the wanted number of requests is held", func() bool {
		last = 0
		for _, r := range f.replicas {
			last += r.weir.Metrics().Sum("weir_waiting")
		}
		return last == float64(n)
	})
}

// sum adds a metric up over the replicas.
func (f *fleet) sum(metric string) (sum float64) {
	f.t.Helper()
	for _, r := range f.replicas {
		sum += r.weir.Metrics().Sum(metric)
	}
	return sum
}

// invalidation is the answer of POST /v1/invalidate.
type invalidation struct {
	Position            uint64
	Confirmed, Replicas int
	Certain, Queued     bool
	Covers              string
	TookSeconds         float64
	Matched             int
	Warnings            []string
}

func (r *replica) invalidates(by, value string) (done invalidation) {
	r.t.Helper()
	r.weir.AdminPost("/v1/invalidate", map[string]string{"by": by, "value": value, "namespace": "shop"}, &done)
	return done
}

// url is how a path of the fleet's host is invalidated.
func fleetURL(path string) string { return "http://" + fleetHost + path }

// settles checks that nothing is left of what was asked: no stream, flight, waiter or lease, and as many goroutines
// as in the beginning. Clients' connections to Envoy are closed; a few goroutines may be of gRPC and the scrape.
func (f *fleet) settles() {
	f.t.Helper()
	for i, r := range f.replicas {
		r.quiet()
		if f.t.Failed() {
			return
		}
		var s fleetStatus
		r.eventually("leases and waits are back at zero", func() bool {
			s = r.fleetStatus()
			return s.Fleet.Leases == 0 && s.Fleet.Waiting == 0
		})
		const spare = 15
		var now float64
		r.eventually("goroutines are back at where they were", func() bool {
			now = r.weir.Metrics().Sum("go_goroutines")
			return now <= f.base[i].goroutines+spare
		})
	}
}

// concurrently calls do for each replica at a time.
func (f *fleet) concurrently(do func(r *replica)) {
	var wg sync.WaitGroup
	for _, r := range f.replicas {
		wg.Go(func() { do(r) })
	}
	wg.Wait()
}

// delay has every answer of Redis take so long.
func (f *fleet) delay(d time.Duration) {
	for _, r := range f.replicas {
		r.proxy.Delay(d)
	}
}

// mute swallows all answers of Redis.
func (f *fleet) mute(on bool) {
	for _, r := range f.replicas {
		r.proxy.Mute(on)
	}
}

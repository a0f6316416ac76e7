package simulation

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc"
	"github.com/weirproxy/weir/extproc/extproctest"
	"github.com/weirproxy/weir/extproc/fleet"
	"github.com/weirproxy/weir/extproc/metrics"
	"github.com/weirproxy/weir/extproc/popularity"
	"github.com/weirproxy/weir/extproc/store/memory"
)

// Report is what one run of a day brought.
type Report struct {
	Setup    string
	Requests int
	Errors   int // answers of 500 and above, or none
	Origin   OriginReport
	// P50, P99 and Max are the times to the head of the answer.
	P50, P99, Max time.Duration
	PerMinute     []int // requests at the origin
}

// Run plays a day with one setup. The caller is in a testing/synctest bubble: the
// day takes as long as its work does.
func Run(scene *Scene, setup *Setup) (*Report, error) {
	start := time.Now()
	o := newOrigin(scene, start)
	entrance := extproctest.NewEntrance(o.answer)
	defer entrance.Close()
	service, err := newService(scene, setup, entrance)
	if err != nil {
		return nil, err
	}
	defer service.Close()
	envoy := extproctest.NewEnvoy(service.Register, routeName, o.answer)
	c := clients{waits: make([]time.Duration, 0, 1<<20)}
	for at, path := range scene.arrivals() {
		time.Sleep(time.Until(start.Add(at)))
		c.wg.Go(func() { c.ask(envoy, path) })
	}
	c.wg.Wait()
	return c.report(setup, o), nil
}

const routeName = "pages"

func newService(scene *Scene, setup *Setup, entrance *extproctest.Entrance) (*extproc.Service, error) {
	policy, err := cachepolicy.Compile("simulation", "pages", setup.Spec)
	if err != nil {
		return nil, err
	}
	set, err := cachepolicy.NewSet(cachepolicy.Binding{Policy: policy, Scope: "simulation", Route: routeName})
	if err != nil {
		return nil, err
	}
	draws := &draws{rand: rand.New(rand.NewPCG(scene.Seed, 2))}
	return extproc.New(extproc.Options{
		Policies:       func() *cachepolicy.Set { return set },
		Store:          memory.New(memory.Options{Limit: 64 << 20}),
		Stamps:         fleet.NewStamps(0),
		Fetcher:        entrance.Fetcher,
		Metrics:        metrics.New(prometheus.NewRegistry(), metrics.Build{}),
		Logger:         slog.New(slog.DiscardHandler),
		MessageTimeout: time.Second, MaxMessageTimeout: time.Minute,
		Draw:       draws.float,
		Popularity: popularity.New(popularity.Options{Rand: draws.bits}, time.Now()),
	}), nil
}

// draws is a seeded source of randomness for several goroutines.
type draws struct {
	mu   sync.Mutex
	rand *rand.Rand
}

func (d *draws) bits() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rand.Uint64()
}

func (d *draws) float() float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return 1 - d.rand.Float64()
}

// clients notes what clients see.
type clients struct {
	wg     sync.WaitGroup
	mu     sync.Mutex
	waits  []time.Duration
	errors int
}

func (c *clients) ask(envoy *extproctest.Envoy, path string) {
	r := envoy.Do(context.Background(), extproctest.Get("site.test", path))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits = append(c.waits, r.FirstByte)
	if r.Err != nil || r.Status >= 500 {
		c.errors++
	}
}

func (c *clients) report(setup *Setup, o *origin) *Report {
	slices.Sort(c.waits)
	percentile := func(p float64) time.Duration { return c.waits[min(int(p/100*float64(len(c.waits))), len(c.waits)-1)] }
	return &Report{
		Setup: setup.Name, Requests: len(c.waits), Errors: c.errors, Origin: o.report,
		P50: percentile(50), P99: percentile(99), Max: percentile(100), PerMinute: o.perMinute,
	}
}

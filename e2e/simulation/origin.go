package simulation

import (
	"context"
	"hash/fnv"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weirproxy/weir/extproc/extproctest"
	"github.com/weirproxy/weir/extproc/httpcache"
)

const (
	// medianCost is what half of the pages cost the origin at most, when it is idle.
	medianCost = 120 * time.Millisecond
	// spreadCost is the standard deviation of the logarithm of a page's cost.
	spreadCost = 0.7
	// capacity is how many requests the origin answers at a time without becoming
	// slower; with twice as many each takes twice as long.
	capacity = 24
	// routeTimeout is Envoy's: it answers 504 in the place of an origin that does not.
	routeTimeout = 10 * time.Second
	bodyBytes    = 512
	// The page that crowds come for is a heavy one.
	crowdPath = "/crowd"
	crowdCost = 400 * time.Millisecond
)

// origin is a server with a cost, a capacity, and a day that has its troubles. It
// is safe for concurrent use. How long an answer takes follows from the seed, the
// page and how often it was asked for, not from the order of other pages' requests.
type origin struct {
	scene *Scene
	start time.Time

	mu        sync.Mutex
	perMinute []int
	asked     map[string]int // by path
	running   map[string]int
	now       int // requests that are being answered
	report    OriginReport
}

// OriginReport is what the origin saw.
type OriginReport struct {
	Requests      int
	MaxConcurrent int // of all pages
	MaxPerKey     int // of one page
}

func newOrigin(scene *Scene, start time.Time) *origin {
	return &origin{
		scene: scene, start: start, perMinute: make([]int, int(scene.Length/time.Minute)+1),
		asked: make(map[string]int), running: make(map[string]int),
	}
}

// answer is an [extproctest.Origin].
func (o *origin) answer(ctx context.Context, req *httpcache.Request) extproctest.Answer {
	path := strings.Clone(req.Path)
	wait, trouble := o.begin(path)
	defer o.end(path)
	if trouble == Frozen || wait > routeTimeout {
		extproctest.Sleep(ctx, routeTimeout)
		return extproctest.Answer{Status: 504, Details: "upstream_response_timeout"}
	}
	extproctest.Sleep(ctx, wait)
	if trouble == Failing {
		return extproctest.Answer{Status: 503}
	}
	return extproctest.Answer{
		Status: 200, Header: httpcache.Fields{{Name: "content-type", Value: "text/html"}}, Body: make([]byte, bodyBytes),
	}
}

// begin counts a request in and says how long its answer takes.
func (o *origin) begin(path string) (time.Duration, Trouble) {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := time.Since(o.start)
	o.perMinute[min(int(at/time.Minute), len(o.perMinute)-1)]++
	o.asked[path]++
	o.running[path]++
	o.now++
	o.report.Requests++
	o.report.MaxConcurrent = max(o.report.MaxConcurrent, o.now)
	o.report.MaxPerKey = max(o.report.MaxPerKey, o.running[path])
	trouble := o.scene.troubleAt(at)
	if trouble == Failing {
		return 5 * time.Millisecond, trouble
	}
	cost := float64(medianCost) * math.Exp(spreadCost*o.normal(path, 0))
	if path == crowdPath {
		cost = float64(crowdCost)
	}
	cost *= math.Exp(0.15 * o.normal(path, o.asked[path]))
	cost *= math.Max(1, float64(o.now)/capacity)
	if trouble == Slow {
		cost *= slowdown
	}
	return time.Duration(cost), trouble
}

func (o *origin) end(path string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.now--
	if o.running[path]--; o.running[path] == 0 {
		delete(o.running, path)
	}
}

// normal is a draw from the standard normal distribution that belongs to a page
// and a number (Box and Muller).
func (o *origin) normal(path string, n int) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(strconv.FormatUint(o.scene.Seed, 10) + path + strconv.Itoa(n)))
	bits := h.Sum64() * 0x9e3779b97f4a7c15
	u := (float64(bits>>40) + 1) / (1<<24 + 1)
	v := float64(bits&(1<<24-1)) / (1 << 24)
	return math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*v)
}

package redis

import (
	"context"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// Defaults of [GuardOptions].
const (
	DefaultFailures = 5
	DefaultSlow     = 50 * time.Millisecond
	DefaultMinPause = 250 * time.Millisecond
	DefaultMaxPause = 5 * time.Second
)

// GuardOptions are the settings of a [Guard].
type GuardOptions struct {
	// Failures is how many commands in a row must fail or be slow until the node is
	// left alone; 0 means 5.
	Failures int
	// Slow is how long a command may take; pipelines and blocking commands may take
	// longer. 0 means 50 ms.
	Slow time.Duration
	// MinPause and MaxPause bound the time between probes of a node that is left
	// alone; it doubles, less up to a half by chance. 0 means 250 ms and 5 s.
	MinPause, MaxPause time.Duration
	// Observe is told of each command or pipeline ("pipeline") that was sent, how
	// long it took, and what became of it; nil tells nobody.
	Observe func(command string, took time.Duration, err error)
}

// Guard keeps a Redis that is away, frozen or slow from slowing requests down:
// a circuit breaker for each node. While a node's circuit is open, commands for
// it fail at once with [ErrOpen] and nothing is dialled; only Run probes it, in
// the background.
type Guard struct {
	opts   GuardOptions
	opened chan struct{} // told when a circuit opens; buffered

	mu       sync.Mutex
	breakers []*breaker // of all nodes met, at most maxNodes
}

// maxNodes bounds the nodes of a Cluster that have a breaker of their own.
const maxNodes = 1000

// NewGuard puts a guard around the client, before it is used. Run it.
func NewGuard(client goredis.UniversalClient, o GuardOptions) *Guard {
	if o.Failures <= 0 {
		o.Failures = DefaultFailures
	}
	if o.Slow <= 0 {
		o.Slow = DefaultSlow
	}
	if o.MinPause <= 0 {
		o.MinPause = DefaultMinPause
	}
	if o.MaxPause < o.MinPause {
		o.MaxPause = max(DefaultMaxPause, o.MinPause)
	}
	if o.Observe == nil {
		o.Observe = func(string, time.Duration, error) {}
	}
	g := &Guard{opts: o, opened: make(chan struct{}, 1)}
	switch c := client.(type) {
	case *goredis.ClusterClient:
		c.OnNewNode(g.guard)
	case *goredis.Client:
		g.guard(c)
	}
	return g
}

// guard gives a node its breaker.
func (g *Guard) guard(node *goredis.Client) {
	g.mu.Lock()
	defer g.mu.Unlock()
	addr := node.Options().Addr
	for _, b := range g.breakers {
		if b.addr == addr { // the node came back into the Cluster as another client
			b.setPing(node)
			node.AddHook(b)
			return
		}
	}
	if len(g.breakers) == maxNodes {
		return
	}
	b := &breaker{guard: g, addr: addr}
	b.setPing(node)
	g.breakers = append(g.breakers, b)
	node.AddHook(b)
}

func (g *Guard) nodes() []*breaker {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]*breaker(nil), g.breakers...)
}

// Run probes the nodes that are left alone, until ctx ends. It is one goroutine,
// and sleeps while there are none.
func (g *Guard) Run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		next := time.Hour
		for _, b := range g.nodes() {
			if wait, open := b.probeIn(time.Now()); open {
				next = min(next, wait)
			}
		}
		timer.Reset(next)
		select {
		case <-ctx.Done():
			return
		case <-g.opened:
		case <-timer.C:
			g.probe(ctx)
		}
	}
}

// probe sends a PING to every node whose time has come.
func (g *Guard) probe(ctx context.Context) {
	var wg sync.WaitGroup
	for _, b := range g.nodes() {
		if wait, open := b.probeIn(time.Now()); open && wait <= 0 {
			wg.Go(func() { b.probe(ctx) })
		}
	}
	wg.Wait()
}

// GuardStats is the state of a [Guard].
type GuardStats struct {
	Nodes    int    // that have been met
	Open     int    // that are left alone now
	Opened   uint64 // times that a circuit opened
	Refused  uint64 // commands that were not sent
	Failures uint64 // commands that failed
	Slow     uint64 // commands that took too long
}

// Stats returns the state of the guard.
func (g *Guard) Stats() GuardStats {
	var s GuardStats
	for _, b := range g.nodes() {
		s.Nodes++
		b.addTo(&s)
	}
	return s
}

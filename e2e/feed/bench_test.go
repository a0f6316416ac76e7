package feed_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weirproxy/weir/cachepolicy/feed"
	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
)

// The size of the world that the design's goal speaks of (§8).
const (
	worldPolicies = 1000
	worldRoutes   = 10_000
)

// world is what many policies and routes are, with one policy of a Gateway under all of them.
func world(policies, routes int) ([]feed.Policy, []feed.Route) {
	p, r := many(policies, routes)
	for i := range r {
		r[i].Rules[0].Policies = append([]string{"infra/base"}, r[i].Rules[0].Policies...)
	}
	return append(p, policy("infra", "base", 0)), r
}

// settle waits until a set has this many policies, and drops those before.
func (d *dataPlane) settle(tb testing.TB, policies int) {
	tb.Helper()
	for d.next(tb).Len() != policies {
	}
}

// drain waits until the connection is quiet: what is still under way belongs to the change before.
func (s *stage) drain() int64 {
	for before := s.bytes.Load(); ; {
		time.Sleep(20 * time.Millisecond)
		now := s.bytes.Load()
		if now == before {
			return now
		}
		before = now
	}
}

// TestBytesInProportion: one change costs as much among ten thousand routes as among a hundred.
func TestBytesInProportion(t *testing.T) {
	sent := map[int]int64{}
	for _, scale := range []int{10, worldPolicies} {
		s := newStage(t)
		c := s.start("a")
		policies, routes := world(scale, 10*scale)
		if _, err := c.Set(policies, routes, nil); err != nil {
			t.Fatal(err)
		}
		d := s.join("weir-0")
		d.settle(t, scale+1)
		c.eventually(t, "all runs", func() bool { return c.Replicas()[0].Synced && c.Replicas()[0].Behind == 0 })
		before := s.drain()
		policies = slices.Clone(policies)
		policies[3] = policy("tenant-3", "p", 77)
		if n, _ := c.Set(policies, routes, nil); n != 1 {
			t.Errorf("%d resources changed, want 1", n)
		}
		d.next(t)
		c.eventually(t, "it runs", func() bool { return c.Replicas()[0].Behind == 0 })
		sent[scale] = s.drain() - before
	}
	if few, all := sent[10], sent[worldPolicies]; all > 2*few || all > 2048 {
		t.Errorf("a change among %d routes cost %d bytes, among 100 %d", worldRoutes, all, few)
	}
}

// BenchmarkChange is the time from Server.Set with one change among 10,000 routes to the set in use at each of three
// replicas. p99-ms is against the goal of 250 (design §8); the whole of Set, which compares all that it is given, is
// in it.
func BenchmarkChange(b *testing.B) {
	changes := []struct {
		name string
		make func(i int, policies []feed.Policy, routes []feed.Route)
	}{
		{"policy", func(i int, policies []feed.Policy, _ []feed.Route) {
			at := i % worldPolicies
			policies[at] = policy(fmt.Sprint("tenant-", at), "p", int32((at+i/worldPolicies+1)%100))
		}},
		{"route", func(i int, _ []feed.Policy, routes []feed.Route) {
			r := &routes[i%worldRoutes]
			r.Rules = slices.Clone(r.Rules) // what the server was given is its own
			r.Rules[0].MessageTimeoutMillis = int64(1000 + i%1000)
		}},
		{"gateway policy", func(i int, policies []feed.Policy, _ []feed.Route) {
			base := policy("infra", "base", 0)
			base.Generation = int64(i + 2)
			base.Spec.Mode = new([]v1alpha1.Mode{"Enabled", "Shadow"}[i%2])
			policies[worldPolicies] = base
		}},
	}
	for _, change := range changes {
		b.Run(change.name, func(b *testing.B) {
			s := newStage(b)
			c := s.start("a")
			policies, routes := world(worldPolicies, worldRoutes)
			if _, err := c.Set(policies, routes, nil); err != nil {
				b.Fatal(err)
			}
			var planes []*dataPlane
			for i := range 3 {
				d := s.join(fmt.Sprint("weir-", i))
				d.settle(b, worldPolicies+1)
				planes = append(planes, d)
			}
			s.drain()
			before := s.bytes.Load()
			var took []time.Duration
			b.ResetTimer()
			for i := 0; b.Loop(); i++ {
				policies, routes = slices.Clone(policies), slices.Clone(routes)
				change.make(i, policies, routes)
				start := time.Now()
				if n, err := c.Set(policies, routes, nil); n != 1 || err != nil {
					b.Fatalf("%d changed, %v", n, err)
				}
				for _, d := range planes {
					d.next(b)
				}
				took = append(took, time.Since(start))
			}
			b.StopTimer()
			slices.Sort(took)
			ms := func(q float64) float64 { return took[int(q*float64(len(took)-1))].Seconds() * 1000 }
			b.ReportMetric(ms(0.5), "p50-ms")
			b.ReportMetric(ms(0.99), "p99-ms")
			b.ReportMetric(float64(s.drain()-before)/float64(len(took)), "bytes/change")
		})
	}
}

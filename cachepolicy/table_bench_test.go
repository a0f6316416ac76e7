package cachepolicy_test

import (
	"fmt"
	"testing"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/cachepolicy/feed"
)

// fedWorld is n routes under n/10 policies and one of a Gateway.
func fedWorld(n int) []cachepolicy.Change {
	changes := []cachepolicy.Change{put(fedPolicy("infra", "base", 1))}
	for i := range (n + 9) / 10 {
		changes = append(changes, put(fedPolicy(fmt.Sprintf("tenant-%d", i%50), fmt.Sprintf("policy-%d", i), int32(i%100))))
	}
	for i := range n {
		p := i / 10
		tenant := fmt.Sprintf("tenant-%d", p%50)
		changes = append(changes, put(fedRoute(tenant, fmt.Sprintf("route-%d", i), "infra/base", fmt.Sprintf("%s/policy-%d", tenant, p))))
	}
	return changes
}

// BenchmarkFeedLookup compares look-ups among 10 and among 10,000 routes, by each of the three rules.
func BenchmarkFeedLookup(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		set, _ := cachepolicy.NewTable().Apply(fedWorld(n))
		var scopes, names []string
		var inputs []*cachepolicy.MatchInput
		for i := range n {
			route := fmt.Sprintf("tenant-%d/route-%d", i/10%50, i)
			tenant, name := fmt.Sprintf("tenant-%d", i/10%50), fmt.Sprintf("route-%d", i)
			scopes = append(scopes, tenant+"/httproute/"+name+"/0")
			names = append(names, "httproute/"+route+"/rule/0/match/0/"+name+"_example")
			inputs = append(inputs, matchInput("GET "+name+".example/products/42"))
		}
		for _, hot := range []int{10, n} { // routes that are asked for in turn
			run := func(by string, find func(i int) *cachepolicy.Binding) {
				b.Run(fmt.Sprintf("%s/%d routes, %d asked for", by, n, hot), func(b *testing.B) {
					b.ReportAllocs()
					i := 0
					for b.Loop() {
						if i += 7; i >= hot {
							i -= hot
						}
						if find(i) == nil {
							b.Fatal("not found")
						}
					}
				})
			}
			run("scope", func(i int) *cachepolicy.Binding { found, _ := set.Identify("", scopes[i], ""); return found })
			run("route", func(i int) *cachepolicy.Binding { found, _ := set.Identify("", "", names[i]); return found })
			run("match", func(i int) *cachepolicy.Binding { return set.Match(inputs[i]) })
		}
	}
}

// BenchmarkApply is what one change costs among 10,000 routes.
func BenchmarkApply(b *testing.B) {
	world := fedWorld(10_000)
	changes := map[string]func(i int) feed.Object{
		"policy of 10 routes": func(i int) feed.Object { return fedPolicy("tenant-7", "policy-7", int32(i%100)) },
		"one route":           func(int) feed.Object { return fedRoute("tenant-7", "route-70", "infra/base") },
		"policy of all":       func(i int) feed.Object { return fedPolicy("infra", "base", int32(i%100)) },
	}
	for name, change := range changes {
		b.Run(name, func(b *testing.B) {
			table := cachepolicy.NewTable()
			table.Apply(world)
			for i := 0; b.Loop(); i++ {
				table.Apply([]cachepolicy.Change{put(change(i))})
			}
		})
	}
	b.Run("all at once", func(b *testing.B) {
		for b.Loop() {
			cachepolicy.NewTable().Apply(world)
		}
	})
}

func TestIdentifyAllocatesNothing(t *testing.T) {
	set := apply(t, cachepolicy.NewTable(), fedWorld(100)...)
	for _, by := range [][3]string{
		{"", "tenant-0/httproute/route-3/0", ""}, {"", "", "httproute/tenant-0/route-3/rule/0/match/0/route-3_example"},
		{"tenant-0/policy-0", "", ""},
	} {
		if n := testing.AllocsPerRun(100, func() {
			if b, _ := set.Identify(by[0], by[1], by[2]); b == nil {
				t.Fatal("not found")
			}
		}); n != 0 {
			t.Errorf("%q: %v allocations, want none", by, n)
		}
	}
}

package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/extproc/fleet/redistest"
)

// report adds percentiles of what was measured, in microseconds.
func report(b *testing.B, name string, took []time.Duration) {
	b.Helper()
	slices.Sort(took)
	for percent, label := range map[int]string{50: "p50", 99: "p99"} {
		b.ReportMetric(float64(took[len(took)*percent/100].Microseconds()), name+"-"+label+"-us")
	}
}

// BenchmarkFetch is a claim, a grant and a commit, on a real Redis.
func BenchmarkFetch(b *testing.B) {
	server := redistest.Start(b)
	a := join(b, dial(b, server.Addr), "a", nil)
	for _, size := range []int{1 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size>>10, "KiB"), func(b *testing.B) {
			content := strings.Repeat("x", size)
			var claims, commits []time.Duration
			for i := 0; b.Loop(); i++ {
				claim := claimOf(fmt.Sprint("/", size, "/", i%100))
				if i >= 100 {
					claim.Known = a.answer(claim, "") // newer than what is there
				}
				began := time.Now()
				l := a.granted(b, claim)
				granted := time.Now()
				a.commits(b, l, a.answer(claim, content))
				claims, commits = append(claims, granted.Sub(began)), append(commits, time.Since(granted))
			}
			report(b, "claim", claims)
			report(b, "commit", commits)
		})
	}
}

// BenchmarkFound is a claim that finds the answer.
func BenchmarkFound(b *testing.B) {
	server := redistest.Start(b)
	a := join(b, dial(b, server.Addr), "a", nil)
	for _, size := range []int{1 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size>>10, "KiB"), func(b *testing.B) {
			claim := claimOf(fmt.Sprint("/", size))
			a.commits(b, a.granted(b, claim), a.answer(claim, strings.Repeat("x", size)))
			for b.Loop() {
				a.wants(b, claim, Found)
			}
		})
	}
}

// BenchmarkWakeUp is from the start of a commit until another process has the
// answer.
func BenchmarkWakeUp(b *testing.B) {
	server := redistest.Start(b)
	leader, follower := join(b, dial(b, server.Addr), "a", nil), join(b, dial(b, server.Addr), "b", nil)
	follower.run(b)
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		claim := claimOf(fmt.Sprint("/", i))
		l := leader.granted(b, claim)
		end := follower.waits(context.Background(), claim, follower.wants(b, claim, Held))
		for follower.Fleet.Stats().Waiting == 0 {
			time.Sleep(10 * time.Microsecond)
		}
		e := leader.answer(claim, "hello")
		began := time.Now()
		leader.commits(b, l, e)
		if got := <-end; got.State != Found {
			b.Fatalf("waiting ended with %v", got.State)
		}
		took = append(took, time.Since(began))
	}
	report(b, "commit-to-follower", took)
}

// BenchmarkInvalidate is an invalidation that three replicas confirm.
func BenchmarkInvalidate(b *testing.B) {
	server := redistest.Start(b)
	a := join(b, dial(b, server.Addr), "a", nil)
	a.run(b)
	for _, id := range []string{"b", "c"} {
		join(b, dial(b, server.Addr), id, nil).run(b)
	}
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		began := time.Now()
		r, err := a.Invalidate(b.Context(), Invalidation{Kind: ByURL, Namespace: "shop", Value: urlOf(fmt.Sprint("/", i))})
		if err != nil || r.Confirmed != 3 {
			b.Fatalf("%+v, %v", r, err)
		}
		took = append(took, time.Since(began))
	}
	report(b, "confirmed", took)
}

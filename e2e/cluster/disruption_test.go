package cluster_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/e2e/harness"
)

// underLoad sends requests all the while that change takes, and some seconds more: for a page that is in the cache and
// for one that never is. Every one must be answered with 200. It returns what the clients of the cached page saw.
func (s *stage) underLoad(change func()) harness.LoadResult {
	s.t.Helper()
	s.servePage("/page", "max-age=600")
	s.servePage("/dynamic", "no-store")
	harness.Do(s.t, s.get("/page"))
	stop := make(chan struct{})
	cached, dynamic := s.loadUntil(stop, "/page"), s.loadUntil(stop, "/dynamic")
	change()
	close(stop)
	result := <-cached
	for path, r := range map[string]harness.LoadResult{"/page": result, "/dynamic": <-dynamic} {
		answered := r.Statuses[http.StatusOK]
		if r.Errors > 0 || answered == 0 || len(r.Statuses) != 1 {
			s.t.Errorf("%s under load: %d errors, statuses %v", path, r.Errors, r.Statuses)
		}
		s.t.Logf("%s: %d answered, p99 %v; %v", path, answered, harness.Percentile(r.Latencies, 99), withoutTTL(r.CacheStatus))
	}
	return result
}

// withoutTTL adds up what differs in the time left only.
func withoutTTL(counts map[string]int) map[string]int {
	sums := make(map[string]int)
	for status, n := range counts {
		status, _, _ = strings.Cut(status, "; ttl=")
		sums[status] += n
	}
	return sums
}

// loadUntil sends 50 requests a second in rounds of a second, at least until stop is closed, and for two seconds after.
func (s *stage) loadUntil(stop <-chan struct{}, path string) <-chan harness.LoadResult {
	result := make(chan harness.LoadResult, 1)
	go func() {
		all := harness.LoadResult{Statuses: map[int]int{}, CacheStatus: map[string]int{}}
		for after := 0; after < 2; {
			select {
			case <-stop:
				after++
			default:
			}
			round := harness.Load(s.t, harness.LoadOptions{
				Request: s.get(path), Rate: 50, Duration: time.Second, Connections: 4,
			})
			all = harness.MergeLoads([]harness.LoadResult{all, round})
		}
		result <- all
	}()
	return result
}

// TestUpgradeUnderLoad: helm upgrade replaces every pod of weir, and no client notices.
func TestUpgradeUnderLoad(t *testing.T) {
	s := startFleet(t)
	s.applyPolicy()
	before := podsOf(t, weirNamespace, dataPlane)
	s.underLoad(func() {
		helmWeir(t, "upgrade", "--set-string=extproc.podAnnotations.rollout=2,controller.podAnnotations.rollout=2")
		scaleDataPlane(t, replicas) // waits until the old ones are gone
	})
	for _, pod := range podsOf(t, weirNamespace, dataPlane) {
		for _, old := range before {
			if pod.Name == old.Name {
				t.Errorf("the upgrade left pod %s as it was", pod.Name)
			}
		}
	}
	s.wantCacheStatus(harness.Do(t, s.get("/page")), "weir; hit")
}

// TestControllerGone: the data plane serves by what it has while no controller runs, and one that starts meanwhile
// serves nothing wrong.
func TestControllerGone(t *testing.T) {
	s := startFleet(t)
	s.applyPolicy()
	result := s.underLoad(func() {
		weirKubectl(t, "scale", "deployment/weir-controller", "--replicas=0")
		harness.Eventually(t, waitLimit, "no controller is left", func() bool {
			return len(podsOf(t, weirNamespace, controlPlane)) == 0
		})
	})
	for status, n := range result.CacheStatus {
		if status == "" {
			t.Errorf("%d answers were not from the cache", n)
		}
	}
	s.wantOneFetch(100)
	weirKubectl(t, "scale", "deployment/weir-controller", "--replicas=2")
	harness.Eventually(t, waitLimit, "the controller is back", func() bool {
		return readyOf(podsOf(t, weirNamespace, controlPlane)) == 2
	})
	s.applyPolicy()
}

// TestScaling: replicas come and go, and no client notices.
func TestScaling(t *testing.T) {
	s := startFleet(t)
	s.applyPolicy()
	scaleDataPlane(t, 1)
	s.underLoad(func() {
		scaleDataPlane(t, 3)
		scaleDataPlane(t, 1)
	})
	s.wantCacheStatus(harness.Do(t, s.get("/page")), "weir; hit")
	scaleDataPlane(t, replicas)
	s.wantOneFetch(100)
}

func weirKubectl(t *testing.T, args ...string) {
	t.Helper()
	if _, err := kubernetes.Kubectl(t.Context(), "", append([]string{"--namespace=" + weirNamespace}, args...)...); err != nil {
		t.Fatal(err)
	}
}

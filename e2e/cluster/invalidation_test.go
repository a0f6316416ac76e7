package cluster_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	"github.com/weirproxy/weir/e2e/harness"
)

// TestInvalidationIsConfirmedByAll: a CacheInvalidation says how many replicas have applied it, and when it says all,
// none serves what it covers.
func TestInvalidationIsConfirmedByAll(t *testing.T) {
	s := startFleet(t)
	s.servePage("/page", "max-age=60", "Surrogate-Key", "spring")
	s.servePage("/other", "max-age=60", "Surrogate-Key", "autumn")
	s.applyPolicy()
	for _, path := range []string{"/page", "/other"} {
		harness.Do(t, s.get(path))
		for range 4 * replicas { // so that replicas have it in memory
			s.wantCacheStatus(harness.Do(t, s.get(path)), "weir; hit")
		}
	}

	s.apply("invalidation.yaml", map[string]any{"Name": "spring", "Tag": "spring"})
	kubernetes.Await(t, "--namespace="+s.namespace, "--for=condition="+v1alpha1.InvalidationConfirmed,
		"cacheinvalidation/spring")
	var invalidation v1alpha1.CacheInvalidation
	key := client.ObjectKey{Namespace: s.namespace, Name: "spring"}
	if err := kubernetes.Client.Get(t.Context(), key, &invalidation); err != nil {
		t.Fatal(err)
	}
	count := invalidation.Status.Replicas
	if count == nil || count.Total == nil || count.Confirmed == nil || *count.Total != replicas || *count.Confirmed != replicas {
		t.Errorf("confirmed by %+v, want %d of %d", count, replicas, replicas)
	}
	if invalidation.Status.CompletionTime == nil {
		t.Error("no completion time")
	}
	harness.Do(t, s.get("/page"))
	for range 4 * replicas {
		s.wantCacheStatus(harness.Do(t, s.get("/page")), "weir; hit")
		s.wantCacheStatus(harness.Do(t, s.get("/other")), "weir; hit")
	}
	if n := s.origin.Count("/page"); n != 2 {
		t.Errorf("the origin saw %d requests for the page, want 2", n)
	}
	if n := s.origin.Count("/other"); n != 1 {
		t.Errorf("the origin saw %d requests for the other page, want 1", n)
	}
}

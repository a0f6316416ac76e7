package cluster_test

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	"github.com/weirproxy/weir/e2e/cluster"
	"github.com/weirproxy/weir/e2e/harness"
)

const (
	// weirNamespace is where the charts are installed, once for all tests.
	weirNamespace = "weir-system"
	redisImage    = "weir.test/redis:local"
	// dataPlane and controlPlane are the components of the chart, by their label.
	dataPlane    = "extproc"
	controlPlane = "controller"
	// replicas is how many of the data plane there are between tests.
	replicas = 3
)

// weirRelease installs weir at the first call.
var weirRelease sync.Once

// startFleet makes a stage, and installs Redis and the charts if no test has.
func startFleet(t *testing.T) *stage {
	t.Helper()
	s := startStage(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(kubernetes.Describe(t, weirNamespace))
		}
	})
	weirRelease.Do(func() { installWeir(s) })
	return s
}

func installWeir(s *stage) {
	s.t.Helper()
	loadWeirImages(s.t)
	kubernetes.LoadImage(s.t, cluster.Image{
		Name: redisImage, Program: "/redis-server", User: "65532",
		Files: map[string]string{"/redis-server": "/usr/bin/redis-server"},
	})
	helm(s.t, "install", "weir-crds", "charts/weir-crds", "--namespace="+weirNamespace, "--create-namespace")
	s.apply("redis.yaml", map[string]any{"Namespace": weirNamespace, "Image": redisImage})
	kubernetes.Await(s.t, "--namespace="+weirNamespace, "--for=condition=Available", "deployment/redis")
	helmWeir(s.t, "install")
}

// loadWeirImages makes the images as make images does, and gives them to the cluster under the names in
// testdata/values.yaml.
func loadWeirImages(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	images := exec.CommandContext(t.Context(), "go", "run", "./config/images", "-out="+dir, "-repository=weir.test/weirproxy/",
		"-version=e2e", "-tag=local")
	images.Dir = "../.."
	if out, err := images.CombinedOutput(); err != nil {
		t.Fatalf("make the images: %v\n%s", err, out)
	}
	for _, name := range []string{"weir-extproc", "weir-controller"} {
		kubernetes.LoadArchive(t, filepath.Join(dir, name+".tar"))
	}
}

// helmWeir installs or upgrades the release, and waits until everything is ready.
func helmWeir(t *testing.T, verb string, args ...string) {
	t.Helper()
	helm(t, append([]string{
		verb, "weir", "charts/weir", "--namespace=" + weirNamespace, "--values=e2e/cluster/testdata/values.yaml",
		"--wait", "--timeout=" + waitLimit.String(),
	}, args...)...)
}

func helm(t *testing.T, args ...string) {
	t.Helper()
	if _, err := kubernetes.Helm(t.Context(), args...); err != nil {
		t.Fatalf("%v\n%s", err, kubernetes.Describe(t, weirNamespace))
	}
}

// scaleDataPlane changes the number of replicas, and waits until as many are ready.
func scaleDataPlane(t *testing.T, n int) {
	t.Helper()
	count := "--replicas=" + strconv.Itoa(n)
	if _, err := kubernetes.Kubectl(t.Context(), "", "-n", weirNamespace, "scale", "deployment/weir-extproc", count); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, waitLimit, strconv.Itoa(n)+" replicas are ready, and no other is left", func() bool {
		all := podsOf(t, weirNamespace, dataPlane)
		return len(all) == n && readyOf(all) == n
	})
}

// applyPolicy makes the CachePolicy of testdata/policy.yaml, and waits until it says that it is in force and requests
// are under it. The first comes a little before the second: Envoy Gateway does not say when its Envoys run what it has
// accepted, and they call a replica only when its first health check has passed.
func (s *stage) applyPolicy() {
	s.t.Helper()
	s.apply("policy.yaml", nil)
	s.wantConditions(map[string]metav1.ConditionStatus{
		string(gatewayv1.PolicyConditionAccepted): metav1.ConditionTrue,
		v1alpha1.PolicyConditionProgrammed:        metav1.ConditionTrue,
	})
	s.awaitCache()
}

// awaitCache waits until weir is asked for requests that the guard, if there is one, lets in.
func (s *stage) awaitCache() {
	s.t.Helper()
	s.servePage("/probe", "public, max-age=60")
	programmed := time.Now()
	s.eventually("requests are under the policy", func() bool {
		return s.header(s.get("/probe"), "Cache-Status") != ""
	})
	s.t.Logf("requests were under the policy %v after it was programmed", time.Since(programmed))
}

// conditions returns the conditions of the CachePolicy at its only ancestor, nil as long as there is none.
func (s *stage) conditions() []metav1.Condition {
	s.t.Helper()
	var policy v1alpha1.CachePolicy
	key := client.ObjectKey{Namespace: s.namespace, Name: "catalog"}
	if err := kubernetes.Client.Get(s.t.Context(), key, &policy); err != nil {
		s.t.Fatalf("get the policy: %v", err)
	}
	if len(policy.Status.Ancestors) != 1 {
		return nil
	}
	return policy.Status.Ancestors[0].Conditions
}

// wantConditions waits until the CachePolicy has these conditions.
func (s *stage) wantConditions(want map[string]metav1.ConditionStatus) {
	s.t.Helper()
	var last []metav1.Condition
	s.t.Cleanup(func() {
		if s.t.Failed() {
			s.t.Logf("conditions of the policy, last seen: %+v", last)
		}
	})
	s.eventually("the policy has its conditions", func() bool {
		last = s.conditions()
		for kind, status := range want {
			if !meta.IsStatusConditionPresentAndEqual(last, kind, status) {
				return false
			}
		}
		return true
	})
}

// TestPolicyThroughGateway: the charts, a route and a CachePolicy are all it takes.
func TestPolicyThroughGateway(t *testing.T) {
	s := startFleet(t)
	s.servePage("/page", "max-age=60")
	s.applyPolicy()
	s.wantCacheStatus(harness.Do(t, s.get("/page")), "weir; fwd=uri-miss")
	s.wantCacheStatus(harness.Do(t, s.get("/page")), "weir; hit")
	if n := s.origin.Count("/page"); n != 1 {
		t.Errorf("the origin saw %d requests, want 1", n)
	}
	s.wantOneFetch(250)
	out := s.kubectl("get", "cachepolicy", "catalog")
	if !strings.Contains(out, "True") {
		t.Errorf("kubectl get cachepolicy shows no True:\n%s", out)
	}

	s.kubectl("delete", "cachepolicy", "catalog")
	s.eventually("without the policy nothing is cached", func() bool {
		return harness.Do(t, s.get("/page")).Header.Get("Cache-Status") == ""
	})
	if status := s.status(s.get("/page")); status != http.StatusOK {
		t.Errorf("status %d after the policy is gone, want 200", status)
	}
}

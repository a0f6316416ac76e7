package cluster_test

import (
	"net/http"
	"testing"

	"github.com/weirproxy/weir/e2e/cluster"
	"github.com/weirproxy/weir/e2e/harness"
)

const extprocImage = "weir.test/weir-extproc:local"

// TestStandalone: weir-extproc with policies from a ConfigMap, attached by a hand-written EnvoyExtensionPolicy.
func TestStandalone(t *testing.T) {
	s := startStage(t)
	s.weirIn = s.namespace
	const program = "/weir-extproc"
	kubernetes.LoadImage(t, cluster.Image{
		Name: extprocImage, Program: program, User: "65532",
		Files: map[string]string{program: harness.Binary(t, "weir-extproc")},
	})
	s.apply("standalone.yaml", map[string]any{
		"Image":      extprocImage,
		"EnvoyRoute": "httproute/" + s.namespace + "/catalog/rule/0/match/0/catalog_test",
	})
	kubernetes.Await(t, "--namespace="+s.namespace, "--for=condition=Available", "deployment/weir-extproc")
	s.servePage("/probe", "max-age=60")
	s.eventually("weir is in the path", func() bool {
		return harness.Do(t, s.get("/probe")).Header.Get("Cache-Status") != ""
	})

	s.servePage("/page", "max-age=60")
	s.wantCacheStatus(harness.Do(t, s.get("/page")), "weir; fwd=uri-miss")
	s.wantCacheStatus(harness.Do(t, s.get("/page")), "weir; hit")
	if n := s.origin.Count("/page"); n != 1 {
		t.Errorf("the origin saw %d requests, want 1", n)
	}
	s.wantOneFetch(250)
}

// wantOneFetch sends requests at the same time for a page that nobody has, and checks that the origin is asked once.
func (s *stage) wantOneFetch(clients int) {
	s.t.Helper()
	gate := make(chan struct{})
	s.origin.Handle("/cold", func(int, *http.Request) harness.Reply {
		return harness.Reply{Gate: gate, Body: []byte("cold"), Header: harness.Fields("Cache-Control", "max-age=60")}
	})
	answers := harness.StartBurst(s.t, clients, harness.Same(s.get("/cold")))
	s.eventually("all others wait", func() bool { return metric(s.t, s.weirIn, "weir_waiting") == float64(clients-1) })
	close(gate)
	for i, answer := range answers() {
		if answer.Err != nil || answer.Status != http.StatusOK || string(answer.Body) != "cold" {
			s.t.Errorf("client %d: status %d, body %q, error %v", i, answer.Status, answer.Body, answer.Err)
		}
	}
	if n := s.origin.Count("/cold"); n != 1 {
		s.t.Errorf("%d clients: the origin saw %d requests, want 1", clients, n)
	}
}

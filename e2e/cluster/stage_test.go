package cluster_test

import (
	"bytes"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"text/template"
	"time"

	"github.com/weirproxy/weir/e2e/cluster"
	"github.com/weirproxy/weir/e2e/harness"
)

// waitLimit bounds what a test waits for: a busy machine is slow.
const waitLimit = 2 * time.Minute

// envoyGateway installs Envoy Gateway at the first call.
var envoyGateway sync.Once

// stage is a namespace with a Gateway, the route catalog.test through it, and the origin behind.
type stage struct {
	t          *testing.T
	namespace  string
	weirIn     string // the namespace that weir-extproc runs in
	login      string // value of the field Authorization of requests, "" for none
	origin     *harness.Origin
	gatewayURL string
}

// startStage makes a namespace of its own and what testdata/gateway.yaml says.
func startStage(t *testing.T) *stage {
	t.Helper()
	envoyGateway.Do(func() { kubernetes.InstallEnvoyGateway(t) })
	s := &stage{t: t, namespace: kubernetes.Namespace(t), weirIn: weirNamespace}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(kubernetes.Describe(t, s.namespace))
		}
	})
	s.origin = harness.StartOriginOn(t, netip.MustParseAddr(cluster.NodeIP))
	_, port, err := net.SplitHostPort(s.origin.Address())
	if err != nil {
		t.Fatal(err)
	}
	s.apply("gateway.yaml", map[string]any{"OriginPort": port})
	s.gatewayURL = kubernetes.GatewayURL(t, s.namespace, "web", 80)
	s.origin.Handle("/ready", harness.Always(harness.Reply{Header: harness.Fields("Cache-Control", "no-store")}))
	s.eventually("the route leads to the origin", func() bool { return s.status(s.get("/ready")) == http.StatusOK })
	return s
}

// apply applies the file testdata/NAME with the values filled in, and with the namespace and the node's address.
func (s *stage) apply(name string, values map[string]any) {
	s.t.Helper()
	kubernetes.Apply(s.t, s.fill(name, values))
}

func (s *stage) fill(name string, values map[string]any) string {
	s.t.Helper()
	all := map[string]any{"Namespace": s.namespace, "NodeIP": cluster.NodeIP}
	maps.Copy(all, values)
	var text bytes.Buffer
	file, err := template.ParseFiles("testdata/" + name)
	if err == nil {
		err = file.Option("missingkey=error").Execute(&text, all)
	}
	if err != nil {
		s.t.Fatalf("fill in %s: %v", name, err)
	}
	return text.String()
}

// get makes a request for a path of catalog.test, with further header fields.
func (s *stage) get(path string, fields ...string) *http.Request {
	if s.login != "" {
		fields = append([]string{"Authorization", s.login}, fields...)
	}
	return harness.Get(s.gatewayURL+path, append([]string{"Host", "catalog.test"}, fields...)...)
}

// status sends a request and returns the status of the answer; 0 when there was none.
func (s *stage) status(request *http.Request) int {
	resp, err := s.try(request)
	if err != nil {
		return 0
	}
	return resp.StatusCode
}

// header sends a request and returns a field of the answer; "" when there was none.
func (s *stage) header(request *http.Request, name string) string {
	resp, err := s.try(request)
	if err != nil {
		return ""
	}
	return resp.Header.Get(name)
}

// try sends a request, which may fail. The answer's body is closed.
func (s *stage) try(request *http.Request) (*http.Response, error) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	resp, err := client.Do(request.WithContext(s.t.Context()))
	if err != nil {
		return nil, err
	}
	return resp, resp.Body.Close()
}

func (s *stage) eventually(what string, so func() bool) {
	s.t.Helper()
	harness.Eventually(s.t, waitLimit, what, so)
}

// kubectl runs kubectl in the stage's namespace.
func (s *stage) kubectl(args ...string) string {
	s.t.Helper()
	out, err := kubernetes.Kubectl(s.t.Context(), "", append([]string{"--namespace=" + s.namespace}, args...)...)
	if err != nil {
		s.t.Fatalf("%v", err)
	}
	return out
}

// servePage has the origin answer a path, whenever asked, with a body that names it.
func (s *stage) servePage(path, cacheControl string, fields ...string) {
	s.origin.Handle(path, harness.Always(harness.Reply{
		Body: []byte(path), Header: harness.Fields(append([]string{"Cache-Control", cacheControl}, fields...)...),
	}))
}

// wantCacheStatus checks that the answer says this in Cache-Status.
func (s *stage) wantCacheStatus(resp harness.Response, want string) {
	s.t.Helper()
	if got := resp.Header.Get("Cache-Status"); resp.Status != http.StatusOK || !strings.HasPrefix(got, want) {
		s.t.Errorf("status %d, Cache-Status %q, want 200 and %q", resp.Status, got, want)
	}
}

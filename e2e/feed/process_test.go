package feed_test

import (
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy/feed"
	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	controller "github.com/weirproxy/weir/controller/feed"
	"github.com/weirproxy/weir/e2e/harness"
)

// patience is for what takes a moment.
const patience = 20 * time.Second

// served is a controller's feed on loopback, with mTLS, and what a weir-extproc needs to follow it.
type served struct {
	*controller.Server
	address string
	stop    func()

	certFile, keyFile string
	args              []string // of weir-extproc
}

// serve serves a feed; an empty address takes a port from the system.
func serve(t *testing.T) *served {
	t.Helper()
	ca := harness.NewCA(t)
	s := &served{}
	s.certFile, s.keyFile = ca.Issue("weir-controller")
	clientCert, clientKey := ca.Issue("weir-extproc")
	s.listen(t, "127.0.0.1:0", ca.File)
	s.args = []string{
		"--policy-dir=", "--controller-address=" + s.address, "--controller-server-name=weir-controller",
		"--controller-ca-file=" + ca.File, "--controller-tls-cert-file=" + clientCert, "--controller-tls-key-file=" + clientKey,
		"--replica-name=weir-0", "--controller-wait=5s",
	}
	return s
}

func (s *served) listen(t *testing.T, address, ca string) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s.address = listener.Addr().String()
	files := controller.TLSFiles{Cert: s.certFile, Key: s.keyFile, ClientCA: ca}
	credentials, err := files.Credentials(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s.Server = controller.New(controller.Options{})
	server := grpc.NewServer(append(controller.ServerOptions(), grpc.Creds(credentials))...)
	s.Register(server)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener)
	}()
	s.stop = sync.OnceFunc(func() {
		s.Close()
		server.Stop()
		<-ended
	})
	t.Cleanup(s.stop)
}

// runs waits until the replica runs all that there is.
func (s *served) runs(t *testing.T) {
	t.Helper()
	harness.Eventually(t, patience, "the data plane runs all that the controller says", func() bool {
		r := s.Replicas()
		return len(r) == 1 && r[0].Synced && r[0].Behind == 0
	})
}

// routeName is what Envoy Gateway would name the route.
const routeName = "httproute/shop/catalog/rule/0/match/0/shop_example"

// catalog is the route, under a Gateway's policy and one of its own.
func catalog() feed.Route {
	return feed.Route{Kind: "HTTPRoute", Namespace: "shop", Name: "catalog", Rules: []feed.Rule{{
		Policies: []string{"infra/base", "shop/catalog"}, Scope: "shop/httproute/catalog/0123456789abcdef0123456789abcdef",
		EnvoyRoutes: []string{"httproute/shop/catalog/rule/0/*"}, Hosts: []string{"shop.example"},
		Entrances: []string{"entrance/infra/gw/http"}, MessageTimeoutMillis: 1000, MaxMessageTimeoutMillis: 60_000,
	}}}
}

// base and own are its policies.
func base(mode v1alpha1.Mode) feed.Policy {
	return feed.Policy{Namespace: "infra", Name: "base", Generation: 1, Spec: v1alpha1.CachePolicySpec{Mode: &mode}}
}

func own() feed.Policy { return feed.Policy{Namespace: "shop", Name: "catalog", Generation: 1} }

// front is an origin behind an Envoy whose one route is named as Envoy Gateway names it.
func front(t *testing.T) (*harness.Origin, *harness.Envoy) {
	t.Helper()
	origin := harness.StartOrigin(t)
	origin.Handle("/page", harness.Always(harness.Reply{
		Body: []byte("page"), Header: harness.Fields("Cache-Control", "max-age=60", "Content-Type", "text/plain", "Surrogate-Key", "p7"),
	}))
	origin.Handle("/short", harness.Always(harness.Reply{
		Body: []byte("short"), Header: harness.Fields("Cache-Control", "max-age=1, stale-while-revalidate=60", "Content-Type", "text/plain"),
	}))
	return origin, harness.StartEnvoy(t, harness.EnvoyOptions{
		Origins: []string{origin.Address()}, Routes: []harness.Route{{Name: routeName}},
	})
}

func cacheStatus(t *testing.T, envoy *harness.Envoy, path string) string {
	t.Helper()
	resp := harness.Do(t, harness.Get(envoy.URL(path)))
	if resp.Status != 200 {
		t.Fatalf("%s: status %d", path, resp.Status)
	}
	return resp.Header.Get("Cache-Status")
}

func wantStatus(t *testing.T, envoy *harness.Envoy, path, want string) {
	t.Helper()
	got := cacheStatus(t, envoy, path)
	if want == "" && got != "" || !strings.Contains(got, want) {
		t.Fatalf("%s: Cache-Status %q, want %q", path, got, want)
	}
}

func (s *served) set(t *testing.T, policies []feed.Policy, routes []feed.Route, envoy *harness.Envoy) {
	t.Helper()
	var entrances []feed.Entrance
	if envoy != nil {
		entrances = []feed.Entrance{{Namespace: "infra", Gateway: "gw", Listener: "http", Address: envoy.RefillAddress(), Scheme: "http"}}
	}
	if _, err := s.Set(policies, routes, entrances); err != nil {
		t.Fatal(err)
	}
}

// TestUnderAController is the life of a data plane under a controller, over mTLS: policies come, change and are
// refused; the controller goes, and what was good last stays; and it starts without one.
func TestUnderAController(t *testing.T) {
	t.Parallel()
	s := serve(t)
	origin, envoy := front(t)
	s.set(t, []feed.Policy{base("Enabled"), own()}, []feed.Route{catalog()}, envoy)
	weir := harness.StartWeir(t, harness.WeirOptions{Args: s.args})
	envoy.SetWeir(weir.GRPCAddress)
	s.runs(t)
	wantStatus(t, envoy, "/page", "fwd=")
	wantStatus(t, envoy, "/page", "hit")

	s.set(t, []feed.Policy{base("Disabled"), own()}, []feed.Route{catalog()}, envoy)
	s.runs(t)
	wantStatus(t, envoy, "/page", "")
	s.set(t, []feed.Policy{base("Enabled"), own()}, []feed.Route{catalog()}, envoy)
	s.runs(t)
	wantStatus(t, envoy, "/page", "hit") // the keys are the same

	bad := feed.Route{Kind: "HTTPRoute", Namespace: "shop", Name: "bad", Rules: []feed.Rule{{Scope: "elsewhere/x"}}}
	s.set(t, []feed.Policy{base("Enabled"), own()}, []feed.Route{catalog(), bad}, envoy)
	harness.Eventually(t, patience, "the controller hears which resource was refused", func() bool {
		return strings.Contains(s.Rejections(bad.Resource())["weir-0"], "scope")
	})
	wantStatus(t, envoy, "/page", "hit")
	var status struct {
		Policies struct {
			Count int
			InUse []struct {
				Name, Scope string
				Layers      []string
			}
			Feed struct {
				Connected, Synced   bool
				Resources, Rejected int
				Errors              []struct{ Resource, Error string }
			}
		}
	}
	weir.AdminGet("/v1/status", &status)
	p := status.Policies
	if !p.Feed.Connected || !p.Feed.Synced || p.Feed.Resources != 4 || p.Feed.Rejected != 1 || len(p.Feed.Errors) != 1 ||
		p.Count != 2 || len(p.InUse) != 1 || len(p.InUse[0].Layers) != 2 {
		t.Errorf("status %+v", p)
	}
	var explained struct {
		Policy, Decision string
		Layers           []string
	}
	weir.AdminGet("/v1/explain?url=http://shop.example/page", &explained)
	if explained.Policy != "shop/catalog" || strings.Join(explained.Layers, " ") != "infra/base shop/catalog" {
		t.Errorf("explained %+v", explained)
	}

	s.stop()
	harness.Eventually(t, patience, "weir notices that the controller is gone", func() bool {
		return weir.Metrics()["weir_feed_connected"] == 0
	})
	wantStatus(t, envoy, "/page", "hit")
	if !weir.IsReady() {
		t.Error("not ready without the controller")
	}
	weir.Terminate()
	if n := origin.Count("/page"); n != 2 { // the first, and the one while the policy was disabled
		t.Errorf("the origin saw %d requests, want 2", n)
	}

	again := harness.StartWeir(t, harness.WeirOptions{Args: append(s.args, "--controller-wait=100ms")})
	envoy.SetWeir(again.GRPCAddress)
	wantStatus(t, envoy, "/page", "")
	if !again.IsReady() {
		t.Error("not ready without a controller")
	}
}

// TestRefreshThroughTheEntrance: a stale answer is refreshed behind, through where the controller says.
func TestRefreshThroughTheEntrance(t *testing.T) {
	t.Parallel()
	s := serve(t)
	origin, envoy := front(t)
	s.set(t, []feed.Policy{base("Enabled"), own()}, []feed.Route{catalog()}, envoy)
	weir := harness.StartWeir(t, harness.WeirOptions{Args: s.args})
	envoy.SetWeir(weir.GRPCAddress)
	s.runs(t)
	wantStatus(t, envoy, "/short", "fwd=")
	harness.Eventually(t, patience, "the answer was refreshed by a detached fetch", func() bool {
		_ = cacheStatus(t, envoy, "/short")
		return weir.Metrics()[`weir_refills_total{result="stored"}`] >= 1
	})
	if n := origin.Count("/short"); n < 2 {
		t.Errorf("the origin saw %d requests, want 2", n)
	}
}

// TestInvalidateByTheController: what is stored under a route is the route's namespace's, whosever policy it is under.
func TestInvalidateByTheController(t *testing.T) {
	t.Parallel()
	s := serve(t)
	_, envoy := front(t)
	route := catalog()
	route.Rules[0].Policies = []string{"infra/base"}
	gateways := base("Enabled")
	gateways.Spec.Tags = &v1alpha1.Tags{ResponseHeader: new(gatewayv1.HeaderName("Surrogate-Key"))}
	s.set(t, []feed.Policy{gateways}, []feed.Route{route}, nil)
	weir := harness.StartWeir(t, harness.WeirOptions{Args: s.args})
	envoy.SetWeir(weir.GRPCAddress)
	s.runs(t)
	for _, tc := range []struct {
		name string
		i    feed.Invalidate
		want string // Cache-Status afterwards
	}{
		{"namespace of the route", feed.Invalidate{By: "Namespace", Value: "shop"}, "fwd="},
		{"namespace of the policy", feed.Invalidate{By: "Namespace", Value: "infra"}, "hit"},
		{"tag in the namespace of the route", feed.Invalidate{By: "Tag", Value: "p7", Namespace: "shop"}, "fwd="},
		{"tag in another", feed.Invalidate{By: "Tag", Value: "p7", Namespace: "infra"}, "hit"},
		{"policy", feed.Invalidate{By: "Policy", Value: "base", Namespace: "infra"}, "fwd="},
		{"another policy", feed.Invalidate{By: "Policy", Value: "base", Namespace: "shop"}, "hit"},
	} {
		_ = cacheStatus(t, envoy, "/page")
		wantStatus(t, envoy, "/page", "hit")
		got, err := s.Invalidate(t.Context(), tc.i)
		if err != nil || got.Confirmed != 1 || got.Total != 1 || got.Covered == "" {
			t.Errorf("%s: %+v, %v", tc.name, got, err)
		}
		if status := cacheStatus(t, envoy, "/page"); !strings.Contains(status, tc.want) {
			t.Errorf("%s: Cache-Status %q, want %q", tc.name, status, tc.want)
		}
	}
	if _, err := s.Invalidate(t.Context(), feed.Invalidate{By: "Tag", Value: "p7"}); err == nil || !strings.Contains(err.Error(), "namespace") {
		t.Errorf("a tag without namespace: %v", err)
	}
}

package harness_test

import (
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/weirproxy/weir/e2e/harness"
)

func TestEnvoyPassesThrough(t *testing.T) {
	t.Parallel()
	origin := harness.StartOrigin(t)
	origin.Handle("/hello", harness.Always(harness.Reply{Body: []byte("hello"), Header: harness.Fields("X-Cost", "1")}))
	envoy := harness.StartEnvoy(t, harness.EnvoyOptions{
		Origins: []string{origin.Address()},
		Routes:  []harness.Route{{Name: "plain", NoCache: true}},
	})

	resp := harness.Do(t, harness.Get(envoy.URL("/hello"), "X-Probe", "yes"))
	if resp.Status != http.StatusOK || string(resp.Body) != "hello" || resp.Header.Get("X-Cost") != "1" {
		t.Errorf("edge answered %d %q %v", resp.Status, resp.Body, resp.Header)
	}
	resp = harness.Do(t, harness.Get("http://"+envoy.RefillAddress()+"/hello", "X-Weir-Refill", "token"))
	if resp.Status != http.StatusOK || string(resp.Body) != "hello" {
		t.Errorf("refill listener answered %d %q", resp.Status, resp.Body)
	}
	seen := origin.Requests("/hello")
	if len(seen) != 2 || seen[0].Header.Get("X-Probe") != "yes" || seen[1].Header.Get("X-Weir-Refill") != "" {
		t.Errorf("origin saw %+v", seen)
	}
	log := envoy.WaitAccessLog(1, func(e harness.AccessLogEntry) bool { return e.Listener == "edge" })
	log[0].DurationMS, log[0].Authority = 0, ""
	want := harness.AccessLogEntry{
		Listener: "edge", Method: "GET", Path: "/hello", Code: 200, Flags: "-", Details: "via_upstream",
		Route: "plain", Attempts: 1, BytesSent: 5,
	}
	if diff := cmp.Diff([]harness.AccessLogEntry{want}, log); diff != "" {
		t.Errorf("access log (-want +got):\n%s", diff)
	}
	if got := envoy.Counter("http.edge.downstream_rq_2xx"); got != 1 {
		t.Errorf("Envoy counted %d answers on the edge, want 1", got)
	}
	if got := envoy.ResidentBytes(); got < 10<<20 {
		t.Errorf("Envoy's memory is %d bytes, cannot be", got)
	}
}

func TestEnvoyAsksWeir(t *testing.T) {
	t.Parallel()
	origin := harness.StartOrigin(t)
	origin.Handle("/", harness.Always(harness.Reply{Body: []byte("origin")}))
	envoy := harness.StartEnvoy(t, harness.EnvoyOptions{
		Origins: []string{origin.Address()},
		Routes:  []harness.Route{{Name: "off", Prefix: "/off", NoCache: true}, {Name: "shop", Policy: "shop/catalog"}},
		FiltersBefore: []string{`name: before
typed_config:
  "@type": type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation
  mutations: {response_mutations: [{append: {header: {key: x-before, value: seen}}}]}`},
	})

	// Without weir, traffic flows.
	if got := string(harness.Do(t, harness.Get(envoy.URL("/"))).Body); got != "origin" {
		t.Errorf("without weir: %q", got)
	}
	for _, listen := range []func(*testing.T) (net.Listener, string){listenTCP, listenUnix} {
		listener, address := listen(t)
		serveConstant(t, listener)
		envoy.SetWeir(address)
		resp := harness.Do(t, harness.Get(envoy.URL("/")))
		if got := string(resp.Body); got != "shop/catalog shop" || resp.Header.Get("X-Before") != "seen" {
			t.Errorf("with weir at %s: %q %v", address, got, resp.Header)
		}
	}
	if got := string(harness.Do(t, harness.Get(envoy.URL("/off"))).Body); got != "origin" {
		t.Errorf("on the route without cache: %q", got)
	}
	envoy.SetWeir()
	if got := string(harness.Do(t, harness.Get(envoy.URL("/"))).Body); got != "origin" {
		t.Errorf("after weir is gone: %q", got)
	}
}

func listenTCP(t *testing.T) (net.Listener, string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener, listener.Addr().String()
}

func listenUnix(t *testing.T) (net.Listener, string) {
	path := t.TempDir() + "/ext_proc.sock"
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	return listener, "unix://" + path
}

// constantServer answers each request with the policy and the route that Envoy named.
type constantServer struct {
	extprocv3.UnimplementedExternalProcessorServer
}

func serveConstant(t *testing.T, listener net.Listener, options ...grpc.ServerOption) {
	server := grpc.NewServer(options...)
	extprocv3.RegisterExternalProcessorServer(server, constantServer{})
	go func() { _ = server.Serve(listener) }() // ends with Stop
	t.Cleanup(server.Stop)
}

func (constantServer) Process(stream extprocv3.ExternalProcessor_ProcessServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	attributes := first.GetAttributes()["envoy.filters.http.ext_proc"].GetFields()
	policy := strings.Join(metadata.ValueFromIncomingContext(stream.Context(), "x-weir-policy"), ",")
	return stream.Send(&extprocv3.ProcessingResponse{
		Response: &extprocv3.ProcessingResponse_ImmediateResponse{ImmediateResponse: &extprocv3.ImmediateResponse{
			Headers: &extprocv3.HeaderMutation{SetHeaders: []*corev3.HeaderValueOption{
				{Header: &corev3.HeaderValue{Key: "x-answered-by", RawValue: []byte("constant")}},
			}},
			Body: []byte(policy + " " + attributes["xds.route_name"].GetStringValue()),
		}},
	})
}

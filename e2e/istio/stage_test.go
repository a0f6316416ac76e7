package istio_test

import (
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weirproxy/weir/e2e/harness"
	"github.com/weirproxy/weir/e2e/istio"
)

var mesh *istio.Istio

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(istio.Main(m, &mesh))
}

// stage is a Gateway of class istio with its proxy, in a namespace of its own, and a Service of an origin.
type stage struct {
	t         *testing.T
	namespace string
	port      string // of the Gateway
	proxy     *istio.Proxy
	origin    *harness.Origin
}

// newStage starts one. Its Gateway is called gw, the origin's Service web.
func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, namespace: mesh.Kube.Namespace(t), port: istio.FreePort(t), origin: harness.StartOrigin(t)}
	mesh.Service(t, s.namespace, "web", "http", 80, s.origin.Address())
	s.apply(`
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, annotations: {networking.istio.io/service-type: ClusterIP}}
spec:
  gatewayClassName: istio
  listeners: [{name: http, port: %s, protocol: HTTP}]
`, s.port)
	s.proxy = mesh.StartGateway(t, s.namespace, "gw")
	return s
}

// apply applies documents in the namespace.
func (s *stage) apply(format string, args ...any) {
	s.t.Helper()
	mesh.ApplyIn(s.t, s.namespace, fmt.Sprintf(format, args...))
}

// get asks the Gateway.
func (s *stage) get(host, path string) harness.Response {
	s.t.Helper()
	return harness.Do(s.t, harness.Get("http://"+net.JoinHostPort("127.0.0.1", s.port)+path, "Host", host))
}

// listening says whether the proxy has its listener: until then it refuses connections.
func (s *stage) listening() bool { return listens(net.JoinHostPort("127.0.0.1", s.port)) }

func listens(address string) bool {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return false
	}
	_ = conn.Close() // nothing was sent
	return true
}

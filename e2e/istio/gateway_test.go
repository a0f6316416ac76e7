package istio_test

import (
	"testing"
	"time"

	"github.com/weirproxy/weir/e2e/harness"
)

// TestGatewayServes: an HTTPRoute behind a Gateway of class istio, without weir.
func TestGatewayServes(t *testing.T) {
	s := newStage(t)
	s.origin.Handle("/", harness.Always(harness.Reply{Body: []byte("hello\n")}))
	s.apply(`
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: hr}
spec:
  parentRefs: [{name: gw}]
  rules: [{backendRefs: [{name: web, port: 80}]}]
`)
	harness.Eventually(t, time.Minute, "the Gateway listens", s.listening)
	harness.Eventually(t, time.Minute, "the Gateway serves", func() bool {
		return string(s.get("any.test", "/").Body) == "hello\n"
	})
}

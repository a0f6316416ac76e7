package e2e_test

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"github.com/weirproxy/weir/e2e/harness"
)

// TestColdKey is the promise weir is named for: however many clients come at the same moment, the origin sees one
// request, and all get the same bytes. The origin answers when all wait.
//
// On a busy machine Envoy alone can take more than the usual second until it reads what weir said of 5,000 streams;
// its message timeout is longer here, for this is about coalescing. So is the time that followers wait.
func TestColdKey(t *testing.T) {
	const (
		messageTimeout = 20 * time.Second
		patience       = "\n  coalescing: {maxWait: 30s}\n"
	)
	for _, clients := range []int{250, 5000} {
		t.Run(fmt.Sprint(clients), func(t *testing.T) {
			origin := harness.StartOrigin(t)
			all := make(chan struct{})
			origin.Handle("/page", harness.Always(harness.Reply{
				Gate: all, Size: 10_000, Header: harness.Fields("Cache-Control", "max-age=60"),
			}))
			envoy := harness.StartEnvoy(t, harness.EnvoyOptions{
				Origins: []string{origin.Address()}, MessageTimeout: messageTimeout,
			})
			weir := harness.StartWeir(t, harness.WeirOptions{
				Policies:      map[string]string{"shop.yaml": shopPolicy + patience},
				RefillAddress: envoy.RefillAddress(),
				Args:          []string{"--envoy-message-timeout=" + messageTimeout.String()},
			})
			envoy.SetWeir(weir.GRPCAddress)

			answers := harness.StartBurst(t, clients, harness.Same(harness.Get(envoy.URL("/page"))))
			harness.Eventually(t, 25*time.Second, "all clients but one wait", func() bool {
				return weir.Metrics().Sum("weir_waiting") == float64(clients-1)
			})
			close(all)
			want := sha256.Sum256(harness.GeneratedBody(10_000))
			for i, r := range answers() {
				if r.Err != nil || r.Status != 200 || r.Hash != want {
					t.Fatalf("client %d of %d: status %d, %d bytes, error %v", i, clients, r.Status, r.Length, r.Err)
				}
			}
			if n := origin.Count("/page"); n != 1 {
				t.Errorf("the origin saw %d requests, want 1", n)
			}
			if n := envoy.Counter("http.edge.ext_proc.failure_mode_allowed"); n != 0 {
				t.Errorf("%d requests went on without weir", n)
			}
		})
	}
}

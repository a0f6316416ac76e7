package main

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirproxy/weir/e2e/harness"
)

const (
	// cost is what the origin takes to make a page; slowCost is what it takes when it is in trouble.
	cost     = 300 * time.Millisecond
	slowCost = 2 * time.Second
	// lifetime is that of pages that expire during the show; expiry is long enough for one to do so.
	lifetime = time.Second
	expiry   = 1500 * time.Millisecond
	// softTimeout is how long a client waits for a slow origin where there is an old page.
	softTimeout = 250 * time.Millisecond
	// pageSize is about that of a small page.
	pageSize = 2 << 10
)

// policies of the show. "report" serves nothing stale at once, so that its soft timeout can be seen.
const policies = `
apiVersion: weir.dev/v1alpha1
kind: CachePolicy
metadata: {name: catalog, namespace: demo}
spec:
  targetRefs: [{group: weir.dev, kind: EnvoyRoute, name: catalog}]
  stale: {whileRevalidate: 30s, ifError: 10m, softTimeout: 250ms}
---
apiVersion: weir.dev/v1alpha1
kind: CachePolicy
metadata: {name: report, namespace: demo}
spec:
  targetRefs: [{group: weir.dev, kind: EnvoyRoute, name: report}]
  stale: {whileRevalidate: 0s, ifError: 10m, softTimeout: 250ms}
`

// stage is the running installation.
type stage struct {
	tb     harness.TB
	origin *harness.Origin
	envoy  *harness.Envoy
	weir   *harness.Weir

	delay   atomic.Int64 // what a page costs now, a time.Duration
	failing atomic.Bool
}

// newStage starts everything. With wellKnown, ports are the same each time if they are free, for people to type.
func newStage(tb harness.TB, wellKnown bool) *stage {
	port := func(p int) int {
		if !wellKnown || !free(p) {
			return 0
		}
		return p
	}
	address := func(p int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port(p))) }

	s := &stage{tb: tb, origin: harness.StartOrigin(tb)}
	s.delay.Store(int64(cost))
	s.origin.Handle("/", s.page)
	s.origin.Handle("/control/", s.control)
	s.envoy = harness.StartEnvoy(tb, harness.EnvoyOptions{
		EdgePort: port(18000),
		Origins:  []string{s.origin.Address()},
		Routes: []harness.Route{
			{
				Name: "direct", Prefix: "/direct/", NoCache: true,
				Action: `route: {cluster: origin, prefix_rewrite: "/"}`,
			},
			{Name: "report", Prefix: "/report"},
			{Name: "catalog"},
		},
	})
	s.weir = harness.StartWeir(tb, harness.WeirOptions{
		Policies:       map[string]string{"demo.yaml": policies},
		RefillAddress:  s.envoy.RefillAddress(),
		AdminAddress:   address(18004),
		MetricsAddress: address(18090),
	})
	s.envoy.SetWeir(s.weir.GRPCAddress)
	return s
}

func free(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// page is the origin's script: a page at a cost, which says which rendering it is.
func (s *stage) page(n int, r *http.Request) harness.Reply {
	if s.failing.Load() {
		return harness.Reply{Status: http.StatusServiceUnavailable, Body: []byte("the origin is failing\n")}
	}
	maxAge := lifetime
	if strings.HasPrefix(r.URL.Path, "/catalog") {
		maxAge = time.Minute
	}
	delay := time.Duration(s.delay.Load())
	text := fmt.Sprintf("%s: the origin's rendering number %d, which took it %v\n", r.URL.Path, n, delay)
	return harness.Reply{
		Delay: delay,
		Header: harness.Fields(
			"Content-Type", "text/plain",
			"Cache-Control", fmt.Sprintf("max-age=%d", int(maxAge.Seconds())),
		),
		Body: []byte(text + strings.Repeat(".", pageSize-len(text)-1) + "\n"),
	}
}

// control lets a person change the origin: /control/slow, /control/failing, /control/fast.
func (s *stage) control(_ int, r *http.Request) harness.Reply {
	state := strings.TrimPrefix(r.URL.Path, "/control/")
	switch state {
	case "slow":
		s.delay.Store(int64(slowCost))
	case "failing":
		s.failing.Store(true)
	case "fast":
		s.delay.Store(int64(cost))
		s.failing.Store(false)
	default:
		return harness.Reply{Status: http.StatusNotFound, Body: []byte("slow, failing or fast\n")}
	}
	return harness.Reply{Body: []byte("the origin is " + state + " now\n")}
}

// open makes the stage one that people can play on: the origin is up and well.
func (s *stage) open() {
	s.origin.Up()
	s.delay.Store(int64(cost))
}

// settle waits until the origin has nothing under way, so that what is counted next belongs to the next scene.
func (s *stage) settle() {
	harness.Eventually(s.tb, time.Minute, "the origin is idle", func() bool { return s.origin.Concurrent("/") == 0 })
}

// pause lets time pass: pages expire.
func (s *stage) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.tb.Context().Done():
	}
}

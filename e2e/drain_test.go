package e2e_test

import (
	"bytes"
	"syscall"
	"testing"

	"github.com/weirproxy/weir/e2e/harness"
)

// TestDrainUnderLoad: on SIGTERM no client is lost. Those held get the answer that they wait for, those who read one
// get the rest of it; new ones pass weir by.
func TestDrainUnderLoad(t *testing.T) {
	t.Parallel()
	const followers = 30
	e := startEdge(t, edgeOptions{Spec: "storage: {maxObjectSize: 16Mi}"})
	traffic := e.startTraffic(8)
	held := e.hold("/held", followers)
	rest := make(chan struct{})
	e.serve("/large", harness.Always(harness.Reply{
		Size: largeSize, PauseAfter: halfway, BodyGate: rest, Header: harness.Fields("Cache-Control", "max-age=60"),
	}))
	readers := []*answer{e.begin(e.get("/large"), halfway), e.begin(e.get("/large"), 1000), e.begin(e.get("/large"), 1000)}
	traffic.more(100)

	e.weir.Signal(syscall.SIGTERM)
	e.eventually("weir says that it is not ready", func() bool { return !e.weir.IsReady() })
	traffic.more(100)
	e.wantCount("/held", 1)
	held.wantAnswered(t)
	close(rest)
	for i, r := range readers {
		if body, err := r.rest(); err != nil || !bytes.Equal(body, harness.GeneratedBody(largeSize)) {
			t.Errorf("reader %d: %d bytes, error %v", i, len(body), err)
		}
	}
	e.weir.WaitDrained()
	traffic.more(30)
	if broken := traffic.end(); broken != 0 {
		t.Errorf("%d answers broke off", broken)
	}
	e.wantCount("/held", 1)
	e.wantCount("/large", 1)
}

// TestDrainReleasesTheHeld: when the answer does not come in time, weir sends those held to the origin before it ends.
// Envoy fails closed here: it is not to do that in weir's place.
func TestDrainReleasesTheHeld(t *testing.T) {
	t.Parallel()
	const followers = 30
	e := startEdge(t, edgeOptions{
		Envoy: harness.EnvoyOptions{FailClosed: true},
		Spec:  "coalescing: {maxWait: 50s}",
		Weir:  harness.WeirOptions{Args: []string{"--drain-timeout=8s"}},
	})
	held := e.hold("/held", followers)
	e.weir.Signal(syscall.SIGTERM)
	e.answering("/held", 1+followers)
	held.wantAnswered(t)
	e.weir.WaitDrained()
	e.wantCount("/held", 1+followers)
}

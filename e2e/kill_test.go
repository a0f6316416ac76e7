package e2e_test

import (
	"bytes"
	"syscall"
	"testing"

	"github.com/weirproxy/weir/e2e/harness"
)

// TestKilledUnderLoad: weir dies as by a power cut. A client whose answer had not begun gets one, held ones included; an
// answer that had begun ends whole or breaks visibly, never short as if whole. Another weir takes over.
func TestKilledUnderLoad(t *testing.T) {
	t.Parallel()
	const followers = 30
	e := startEdge(t, edgeOptions{Spec: "storage: {maxObjectSize: 16Mi}"})
	traffic := e.startTraffic(8)
	held := e.hold("/held", followers)

	rest := make(chan struct{})
	e.serve("/large", harness.Always(harness.Reply{
		Size: largeSize, PauseAfter: halfway, BodyGate: rest, Header: harness.Fields("Cache-Control", "max-age=60"),
	}))
	leader := e.begin(e.get("/large"), halfway)
	var readers []*answer // weir hands them the leader's body as it comes
	for range 5 {
		readers = append(readers, e.begin(e.get("/large"), 1000))
	}
	e.wantCount("/large", 1)
	traffic.more(100)

	e.weir.Kill()
	e.answering("/held", 1+followers) // all at once
	held.wantAnswered(t)
	close(rest)
	if body, err := leader.rest(); err != nil || !bytes.Equal(body, harness.GeneratedBody(largeSize)) {
		t.Errorf("the leader, whose answer comes from the origin: %d bytes, error %v", len(body), err)
	}
	for i, r := range readers {
		if body, err := r.rest(); err == nil || !bytes.HasPrefix(harness.GeneratedBody(largeSize), body) {
			t.Errorf("reader %d: %d bytes, error %v; want a visible break", i, len(body), err)
		}
	}
	traffic.more(100) // without weir

	e.weir = harness.StartWeir(t, harness.WeirOptions{
		Policies: map[string]string{"shop.yaml": shopPolicy}, RefillAddress: e.envoy.RefillAddress(),
	})
	e.envoy.SetWeir(e.weir.GRPCAddress)
	traffic.more(100)
	t.Logf("%d answers broke off", traffic.end())
	e.quiet()
	if hits := e.outcomes()["hit"]; hits == 0 {
		t.Errorf("the new weir serves nothing from its cache: %v", e.outcomes())
	}
}

// TestHungUnderLoad: a weir that hangs is given up after the message timeout, and traffic flows.
func TestHungUnderLoad(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{})
	traffic := e.startTraffic(4)
	traffic.more(30)
	e.weir.Signal(syscall.SIGSTOP)
	traffic.more(30)
	e.weir.Signal(syscall.SIGCONT)
	if broken := traffic.end(); broken != 0 {
		t.Logf("%d answers broke off", broken)
	}
	e.quiet()
	if got := e.do(e.get("/small")); got.Status != 200 {
		t.Errorf("afterwards: %d", got.Status)
	}
}

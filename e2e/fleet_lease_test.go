package e2e_test

import (
	"fmt"
	"net/http"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/weirproxy/weir/e2e/harness"
)

// TestFleetOwners: what becomes of a fetch, and of those who wait for it, when the process that makes it is slow, is
// stopped, is killed or gives up, and when Redis's word about it is lost. From reference case 29.
func TestFleetOwners(t *testing.T) {
	f := startFleet(t)
	for _, part := range []struct {
		name string
		run  func(*fleet)
	}{
		{"the fetch outlives its lease", (*fleet).slowFetch},
		{"the leader's client hangs up", (*fleet).clientLeaves},
		{"the reply to a claim is lost", (*fleet).lostReply},
		{"the leader is stopped for a while", (*fleet).stoppedLeader},
		{"the leader is killed", (*fleet).killedLeader},
	} {
		t.Run(part.name, func(t *testing.T) { f.run(t, part.run) })
	}
}

// versions answers with its number: the n-th answer of a path is "vN". Those that have a gate wait for it.
func versions(gates ...<-chan struct{}) harness.Script {
	return func(n int, _ *http.Request) harness.Reply {
		reply := harness.Reply{
			Body:   fmt.Appendf(nil, "v%d", n),
			Header: harness.Fields("Cache-Control", "max-age=600", "Content-Type", "text/plain"),
		}
		if n <= len(gates) {
			reply.Gate = gates[n-1]
		}
		return reply
	}
}

// leads has replica a ask for the path, which must be cold, and waits until it makes the fetch for all.
func (f *fleet) leads(path string) *answerTo {
	f.t.Helper()
	a := f.replicas[0]
	leader := a.ask(path)
	a.answering(path, 1)
	a.eventually("a has the lease", func() bool { return a.fleetStatus().Fleet.Leases == 1 })
	return leader
}

// follow sends a request for the path to each other replica, and waits until they wait.
func (f *fleet) follow(path string) []*answerTo {
	f.t.Helper()
	var answers []*answerTo
	for _, r := range f.replicas[1:] {
		answers = append(answers, r.ask(path))
	}
	f.replicas[1].eventually("the others wait", func() bool {
		return !slices.ContainsFunc(f.replicas[1:], func(r *replica) bool {
			return r.weir.Metrics().Sum("weir_waiting") != 1 || r.fleetStatus().Fleet.Waiting != 1
		})
	})
	return answers
}

// slowFetch: a fetch that takes longer than a lease lives is not made twice.
func (f *fleet) slowFetch() {
	gate := make(chan struct{})
	f.serve("/slow", versions(gate))
	leader := f.leads("/slow")
	followers := f.follow("/slow")
	time.Sleep(leaseLife + leaseLife/2) // not a limit: the time a lease lives must pass
	close(gate)
	leader.wantsBody("v1")
	for _, a := range followers {
		a.wantsBody("v1")
	}
	f.wantCount("/slow", 1)
	if n := f.sum("weir_fleet_lease_renewals_total"); n == 0 {
		f.t.Error("no lease was renewed")
	}
}

// clientLeaves: the only client that the fetch was for goes away, and with it the lease; another process goes on at
// once.
func (f *fleet) clientLeaves() {
	first, second := make(chan struct{}), make(chan struct{})
	defer close(first)
	f.serve("/left", versions(first, second))
	leader := f.leads("/left")
	followers := f.follow("/left")
	leader.hangUp()
	left := time.Now()
	f.replicas[0].eventually("another has taken the fetch over", func() bool { return f.origin.Count("/left") == 2 })
	f.t.Logf("taken over %v after the leader's client left", time.Since(left))
	close(second)
	for _, a := range followers {
		a.wantsBody("v2")
	}
	f.wantCount("/left", 2)
}

// lostReply: Redis gave the lease, but the process did not hear of it. It fetches all the same, and the lease blocks
// nobody for longer than it lives.
func (f *fleet) lostReply() {
	f.serve("/lost", versions())
	a, b := f.replicas[0], f.replicas[1]
	f.mute(true)
	if got := a.do(a.get("/lost")); string(got.Body) != "v1" {
		f.t.Errorf("with Redis mute: %d %q", got.Status, got.Body)
	}
	f.mute(false)
	f.inTouch()
	if got := b.do(b.get("/lost")); got.Status != 200 {
		f.t.Errorf("afterwards: %d %q", got.Status, got.Body)
	}
	if n := f.origin.Count("/lost"); n > 2 {
		f.t.Errorf("the origin saw %d requests, want at most one of each", n)
	}
}

// stoppedLeader: a process that is stopped loses its lease to another. When it goes on, it neither takes away nor
// overwrites what is there.
func (f *fleet) stoppedLeader() {
	first, second := make(chan struct{}), make(chan struct{})
	f.serve("/stopped", versions(first, second))
	leader := f.leads("/stopped")
	followers := f.follow("/stopped")
	a := f.replicas[0]
	a.weir.Signal(syscall.SIGSTOP)
	a.eventually("another has taken the fetch over", func() bool { return f.origin.Count("/stopped") == 2 })
	close(second)
	for _, answer := range followers {
		answer.wantsBody("v2")
	}
	close(first) // the first answer arrives while its process is stopped
	a.weir.Signal(syscall.SIGCONT)
	leader.wantsBody("v1")
	f.inTouch()
	f.wantCount("/stopped", 2)
	for _, r := range f.replicas[1:] {
		r.wantsStored("/stopped", "v2")
	}
	// What is stored for all is what a process gets that knows nothing.
	c := f.replicas[2]
	c.weir.Terminate()
	c.start()
	f.inTouch()
	c.wantsStored("/stopped", "v2")
	f.wantCount("/stopped", 2)
}

// killedLeader: a process dies with the fetch. Another takes over when the lease has ended.
func (f *fleet) killedLeader() {
	first, second := make(chan struct{}), make(chan struct{})
	defer close(first)
	f.serve("/killed", versions(first, second))
	leader := f.leads("/killed")
	followers := f.follow("/killed")
	a := f.replicas[0]
	a.weir.Kill()
	leader.hangUp()
	killed := time.Now()
	a.eventually("another has taken the fetch over", func() bool { return f.origin.Count("/killed") == 2 })
	f.t.Logf("taken over %v after the kill", time.Since(killed))
	close(second)
	for _, answer := range followers {
		answer.wantsBody("v2")
	}
	f.wantCount("/killed", 2)
	a.start()
	f.inTouch()
	a.wantsStored("/killed", "v2")
	f.wantCount("/killed", 2)
}

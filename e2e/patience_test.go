package e2e_test

import (
	"net/http"
	"testing"

	"github.com/weirproxy/weir/e2e/harness"
)

// eachWay runs a test with a listener for detached fetches, and without.
func eachWay(t *testing.T, test func(t *testing.T, noRefill bool)) {
	t.Helper()
	t.Run("refill", func(t *testing.T) { test(t, false) })
	t.Run("no refill", func(t *testing.T) { test(t, true) })
}

// TestFollowersKeepTheirOwnClocks: the leader's client gives up, then one follower's; the other gets its answer from
// the fetch that replaced the leader's, and nobody's leaving starts another.
func TestFollowersKeepTheirOwnClocks(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, noRefill bool) {
		e := startEdge(t, edgeOptions{NoRefill: noRefill})
		defer e.settles()
		gate := make(chan struct{})
		e.serve("/page", harness.Always(harness.Reply{
			Gate: gate, Body: []byte("page"), Header: harness.Fields("Cache-Control", "max-age=60"),
		}))
		leader := e.send(e.get("/page"))
		e.answering("/page", 1)
		hasty := e.send(e.get("/page"))
		e.waiting(1)
		patient := e.burst(1, e.get("/page"))
		e.waiting(2)

		e.hangUp(leader)
		waiting := 2
		if noRefill {
			waiting = 1 // who has most time left carries the fetch
		}
		e.waiting(waiting)
		e.eventually("another fetch has taken the leader's place", func() bool { return e.origin.Count("/page") == 2 })
		e.answering("/page", 1)
		e.hangUp(hasty)
		e.waiting(waiting - 1)
		close(gate)
		e.wantBody(patient(), []byte("page"))
		e.wantCount("/page", 2)
		if hit := e.do(e.get("/page")); string(hit.Body) != "page" {
			t.Errorf("afterwards: %d %q", hit.Status, hit.Body)
		}
		e.wantCount("/page", 2)
		last := "coalesced"
		if noRefill {
			last = "miss"
		}
		e.wantOutcomes(map[string]int{"canceled": 2, last: 1, "hit": 1})
	})
}

// TestFollowersWhoWaitedTooLong go to the origin, each once, and do not queue again.
func TestFollowersWhoWaitedTooLong(t *testing.T) {
	t.Parallel()
	const followers = 10
	e := startEdge(t, edgeOptions{Spec: "coalescing: {maxWait: 1s}"})
	defer e.settles()
	gate := make(chan struct{})
	e.serve("/page", numbered(gate, "no-store"))
	leader := e.burst(1, e.get("/page"))
	e.answering("/page", 1)
	answers := e.burst(followers, e.get("/page"))
	e.answering("/page", 1+followers)
	e.waiting(0)
	close(gate)
	wantDistinct(t, append(leader(), answers()...))
	e.wantCount("/page", 1+followers)
	e.wantOutcomes(map[string]int{"miss_uncacheable": 1 + followers})
}

// TestFollowersWhoWaitedTooLongGetStale: with a copy that may stand in and onTimeout: Stale, nobody else goes.
func TestFollowersWhoWaitedTooLongGetStale(t *testing.T) {
	t.Parallel()
	const followers = 10
	e := startEdge(t, edgeOptions{
		Spec: "coalescing: {maxWait: 1s, onTimeout: Stale}\nstale: {whileRevalidate: 0s, ifError: 1h, softTimeout: 0s}",
	})
	defer e.settles()
	gate := make(chan struct{})
	e.serve("/page", func(n int, _ *http.Request) harness.Reply {
		reply := harness.Reply{Body: []byte("old"), Header: harness.Fields("Cache-Control", "max-age=0")}
		if n > 1 {
			reply.Gate, reply.Body = gate, []byte("new")
		}
		return reply
	})
	e.do(e.get("/page"))
	leader := e.burst(1, e.get("/page"))
	e.answering("/page", 1)
	answers := e.burst(followers, e.get("/page"))
	e.wantBody(answers(), []byte("old"))
	close(gate)
	e.wantBody(leader(), []byte("new"))
	e.wantCount("/page", 2)
	e.wantOutcomes(map[string]int{"miss": 2, "stale_slow": followers})
}

// TestNobodyWaitsAnyMore: when all clients have left, the fetch that they shared is cancelled too, the detached one
// included.
func TestNobodyWaitsAnyMore(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, noRefill bool) {
		e := startEdge(t, edgeOptions{
			NoRefill: noRefill,
			// No timeout of Envoy's is to end the fetch.
			Envoy: harness.EnvoyOptions{Routes: []harness.Route{{Name: "default", Timeout: 10 * patience}}},
		})
		defer e.settles()
		e.serve("/page", harness.Always(harness.Reply{Hang: true}))
		leader := e.send(e.get("/page"))
		e.answering("/page", 1)
		one, other := e.send(e.get("/page")), e.send(e.get("/page"))
		e.waiting(2)
		e.hangUp(leader)
		e.eventually("another fetch has taken the leader's place", func() bool { return e.origin.Count("/page") == 2 })
		e.hangUp(one)
		e.hangUp(other)
		e.answering("/page", 0)
		e.quiet()
		if n := e.origin.Count("/page"); n > 3 { // a follower promoted and gone may have had a successor
			t.Errorf("the origin saw %d requests for three clients", n)
		}
		e.wantOutcomes(map[string]int{"canceled": 3})
	})
}

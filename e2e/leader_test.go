package e2e_test

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/weirproxy/weir/e2e/harness"
)

// TestLeaderHangsUpBeforeTheHeaders: exactly one fetch takes the leader's place, the other clients go on waiting, and
// nobody inherits the leader's cancellation.
func TestLeaderHangsUpBeforeTheHeaders(t *testing.T) {
	t.Parallel()
	const followers = 19
	eachWay(t, func(t *testing.T, noRefill bool) {
		e := startEdge(t, edgeOptions{NoRefill: noRefill})
		defer e.settles()
		gate := make(chan struct{})
		e.serve("/page", harness.Always(harness.Reply{
			Gate: gate, Size: 10_000, Header: harness.Fields("Cache-Control", "max-age=60"),
		}))
		leader := e.send(e.get("/page"))
		e.answering("/page", 1)
		answers := e.burst(followers, e.get("/page"))
		e.waiting(followers)
		e.hangUp(leader)
		e.eventually("another fetch has taken the leader's place", func() bool { return e.origin.Count("/page") == 2 })
		e.answering("/page", 1) // the leader's fetch died with it
		want := map[string]int{"canceled": 1, "coalesced": followers}
		if noRefill {
			e.waiting(followers - 1)
			want["coalesced"], want["miss"] = followers-1, 1
		} else {
			e.waiting(followers)
		}
		close(gate)
		e.wantBody(answers(), harness.GeneratedBody(10_000))
		e.wantCount("/page", 2)
		e.wantOutcomes(want)
	})
}

const (
	largeSize = 5_000_000
	halfway   = 1 << 20
)

// broken is a fetch of a large object whose leader hangs up in the middle of the body, while followers read.
type broken struct {
	*edge
	followers []*answer
	successor chan struct{} // opened, lets the next fetch be answered
}

// breakHalfway has the leader hang up after a MiB. The second fetch brings what second says, when the gate opens.
func breakHalfway(t *testing.T, noRefill bool, first, second harness.Reply) *broken {
	t.Helper()
	e := startEdge(t, edgeOptions{NoRefill: noRefill, Spec: "storage: {maxObjectSize: 16Mi}"})
	b := &broken{edge: e, successor: make(chan struct{})}
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	first.PauseAfter, first.BodyGate = halfway, never
	second.Gate = b.successor
	e.serve("/large", func(n int, _ *http.Request) harness.Reply {
		if n == 1 {
			return first
		}
		return second
	})
	leader := e.begin(e.get("/large"), halfway)
	for range 3 {
		b.followers = append(b.followers, e.begin(e.get("/large"), 1000))
	}
	e.wantCount("/large", 1)
	leader.hangUp()
	e.eventually("the leader's fetch has ended", func() bool { return e.origin.Count("/large") == 2 || noRefill })
	return b
}

// TestLeaderHangsUpInTheBody: a detached fetch of the same representation goes on where the leader's broke off, so that
// followers get the whole.
func TestLeaderHangsUpInTheBody(t *testing.T) {
	t.Parallel()
	reply := harness.Reply{Size: largeSize, ETag: `"v1"`, Header: harness.Fields("Cache-Control", "max-age=60")}
	b := breakHalfway(t, false, reply, reply)
	defer b.settles()
	close(b.successor)
	for i, f := range b.followers {
		if body, err := f.rest(); err != nil || !bytes.Equal(body, harness.GeneratedBody(largeSize)) {
			t.Errorf("follower %d: %d bytes, error %v", i, len(body), err)
		}
	}
	b.wantWhole(harness.GeneratedBody(largeSize))
	b.wantCount("/large", 2)
}

// TestLeaderHangsUpInTheBodyOfAnother: what cannot be proven to be the same representation is never joined to what
// clients have. Their answers break visibly; a client that has nothing yet gets the successor's.
func TestLeaderHangsUpInTheBodyOfAnother(t *testing.T) {
	t.Parallel()
	old := bytes.Repeat([]byte("old "), largeSize/4)
	fresh := bytes.Repeat([]byte("new "), largeSize/4)
	header := harness.Fields("Cache-Control", "max-age=60")
	b := breakHalfway(t, false, harness.Reply{Body: old, Header: header}, harness.Reply{Body: fresh, Header: header})
	defer b.settles()
	newcomer := b.burst(1, b.get("/large"))
	b.waiting(1)
	close(b.successor)
	b.wantBody(newcomer(), fresh)
	b.wantBroken(old)
	b.wantWhole(fresh)
	b.wantCount("/large", 2)
}

// TestLeaderHangsUpInTheBodyForGood: with no way to fetch on its own weir breaks the followers' answers, whether they
// have a length or not, and stores nothing.
func TestLeaderHangsUpInTheBodyForGood(t *testing.T) {
	t.Parallel()
	for name, chunked := range map[string]bool{"length": false, "chunked": true} {
		t.Run(name, func(t *testing.T) {
			reply := harness.Reply{
				Size: largeSize, Chunked: chunked, ETag: `"v1"`, Header: harness.Fields("Cache-Control", "max-age=60"),
			}
			b := breakHalfway(t, true, reply, reply)
			defer b.settles()
			b.wantBroken(harness.GeneratedBody(largeSize))
			if n := b.status().Store.Entries; n != 0 {
				t.Errorf("%d entries are stored of a body that never was whole", n)
			}
			close(b.successor)
			b.wantWhole(harness.GeneratedBody(largeSize))
			b.wantCount("/large", 2)
		})
	}
}

// wantBroken checks that no follower took its answer for whole.
func (b *broken) wantBroken(whole []byte) {
	b.t.Helper()
	for i, f := range b.followers {
		body, err := f.rest()
		if err == nil || len(body) >= len(whole) || !bytes.HasPrefix(whole, body) {
			b.t.Errorf("follower %d: %d bytes and error %v, want a visible break", i, len(body), err)
		}
	}
}

// wantWhole checks what the next clients get.
func (b *broken) wantWhole(want []byte) {
	b.t.Helper()
	for range 2 {
		if got := b.do(b.get("/large")); !bytes.Equal(got.Body, want) {
			b.t.Errorf("afterwards: %d, %d bytes, Cache-Status %q", got.Status, len(got.Body), got.Header.Get("Cache-Status"))
		}
	}
}

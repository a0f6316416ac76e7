package e2e_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strconv"
	"testing"

	"github.com/weirproxy/weir/e2e/harness"
)

func hash(body []byte) [sha256.Size]byte { return sha256.Sum256(body) }

// numbered answers each request with its number, once gate opens.
func numbered(gate <-chan struct{}, cacheControl string) harness.Script {
	return func(n int, _ *http.Request) harness.Reply {
		return harness.Reply{
			Gate: gate, Body: []byte(strconv.Itoa(n)), Header: harness.Fields("Cache-Control", cacheControl),
		}
	}
}

// wantDistinct checks that each client got an answer of its own.
func wantDistinct(t *testing.T, answers []harness.BurstResult) {
	t.Helper()
	seen := make(map[string]bool)
	for i, r := range answers {
		if r.Err != nil || r.Status != http.StatusOK || seen[string(r.Body)] {
			t.Errorf("client %d: status %d, body %q, error %v", i, r.Status, r.Body, r.Err)
		}
		seen[string(r.Body)] = true
	}
}

// TestUncacheableAnswersDoNotQueue: as soon as a response's headers show that it cannot be shared, all followers go to
// the origin together, and the next burst does not even wait. A cacheable answer ends that.
func TestUncacheableAnswersDoNotQueue(t *testing.T) {
	t.Parallel()
	const clients = 50
	e := startEdge(t, edgeOptions{})
	defer e.settles()
	leader, rest := make(chan struct{}), make(chan struct{})
	e.serve("/page", func(n int, r *http.Request) harness.Reply {
		if n == 1 {
			return numbered(leader, "private")(n, r)
		}
		return numbered(rest, "private")(n, r)
	})
	answers := e.burst(clients, e.get("/page"))
	e.waiting(clients - 1)
	e.answering("/page", 1)
	close(leader)
	e.answering("/page", clients-1) // at the same time: the origin answers none before all are there
	close(rest)
	wantDistinct(t, answers())
	e.wantCount("/page", clients)
	if n := e.status().Flights.Marks; n != 1 {
		t.Errorf("%d marks, want 1", n)
	}

	e.origin.Reset()
	again := make(chan struct{})
	e.serve("/page", numbered(again, "private"))
	answers = e.burst(clients, e.get("/page"))
	e.answering("/page", clients)
	e.waiting(0)
	close(again)
	wantDistinct(t, answers())
	e.wantCount("/page", clients)
	e.wantOutcomes(map[string]int{"miss_uncacheable": 2 * clients})

	// The mark stands, so all go; the first answer that may be stored takes it away.
	cacheable := make(chan struct{})
	e.serve("/page", numbered(cacheable, "max-age=60"))
	answers = e.burst(clients, e.get("/page"))
	e.answering("/page", clients)
	close(cacheable)
	wantDistinct(t, answers())

	e.invalidate("/page") // what was stored would be a hit
	e.origin.Reset()
	last := make(chan struct{})
	e.serve("/page", numbered(last, "max-age=60"))
	answers = e.burst(clients, e.get("/page"))
	e.waiting(clients - 1)
	close(last)
	e.wantBody(answers(), []byte("1"))
	e.wantCount("/page", 1)
}

// TestSharedAnswerThatIsStaleOnArrival: an answer of no lifetime still serves those who asked while it was fetched,
// and none who come later; no-cache serves nobody but the one who asked.
func TestSharedAnswerThatIsStaleOnArrival(t *testing.T) {
	t.Parallel()
	const clients = 20
	e := startEdge(t, edgeOptions{Spec: "stale: {whileRevalidate: 0s, ifError: 0s}"})
	defer e.settles()

	gate := make(chan struct{})
	e.serve("/stale", harness.Always(harness.Reply{
		Gate: gate, Body: []byte("old"), ETag: `"v1"`, Header: harness.Fields("Cache-Control", "max-age=0"),
	}))
	answers := e.burst(clients, e.get("/stale"))
	e.waiting(clients - 1)
	close(gate)
	e.wantBody(answers(), []byte("old"))
	e.wantCount("/stale", 1)
	later := e.do(e.get("/stale"))
	if later.Status != http.StatusOK || string(later.Body) != "old" {
		t.Errorf("later: %d %q", later.Status, later.Body)
	}
	seen := e.origin.Requests("/stale")
	if len(seen) != 2 || seen[1].Header.Get("If-None-Match") != `"v1"` {
		t.Errorf("the origin saw %v, want a second request, with the stored tag", seen)
	}
	e.wantOutcomes(map[string]int{"miss": 1, "coalesced": clients - 1, "revalidated": 1})

	leader, rest := make(chan struct{}), make(chan struct{})
	e.serve("/no-cache", func(n int, r *http.Request) harness.Reply {
		gate := rest
		if n == 1 {
			gate = leader
		}
		reply := numbered(gate, "no-cache")(n, r)
		reply.ETag = fmt.Sprintf("%q", reply.Body) // it may be stored, to be validated
		return reply
	})
	answers = e.burst(clients, e.get("/no-cache"))
	e.waiting(clients - 1)
	close(leader)
	e.answering("/no-cache", clients-1)
	close(rest)
	wantDistinct(t, answers())
	e.wantCount("/no-cache", clients)
}

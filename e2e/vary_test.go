package e2e_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/weirproxy/weir/e2e/harness"
)

// byEncoding answers in the coding that was asked for, once gate opens.
func byEncoding(gate <-chan struct{}, vary string) harness.Script {
	return func(_ int, r *http.Request) harness.Reply {
		coding := r.Header.Get("Accept-Encoding")
		header := harness.Fields("Cache-Control", "max-age=60", "Vary", vary)
		if coding != "identity" {
			header.Set("Content-Encoding", coding)
		}
		return harness.Reply{Gate: gate, Body: []byte("in " + coding), Header: header}
	}
}

// mixed makes every other request of a burst one for gzip.
func (e *edge) mixed(path string) func(int) *http.Request {
	return func(i int) *http.Request {
		return e.get(path, "Accept-Encoding", []string{"gzip", "identity"}[i%2])
	}
}

// wantCodings checks the answers to mixed requests.
func wantCodings(t *testing.T, answers []harness.BurstResult) {
	t.Helper()
	for i, r := range answers {
		want := []string{"in gzip", "in identity"}[i%2]
		if r.Err != nil || string(r.Body) != want {
			t.Errorf("client %d: status %d, %q, error %v; want %q", i, r.Status, r.Body, r.Err, want)
		}
	}
}

// TestVaryIsKnownOnlyAfterTheAnswer: the followers whose fields differ from the leader's elect one leader of their own,
// and once Vary is known the groups do not even meet.
func TestVaryIsKnownOnlyAfterTheAnswer(t *testing.T) {
	t.Parallel()
	const clients = 20
	eachWay(t, func(t *testing.T, noRefill bool) {
		e := startEdge(t, edgeOptions{NoRefill: noRefill})
		defer e.settles()
		first, second := make(chan struct{}), make(chan struct{})
		e.serve("/page", func(n int, r *http.Request) harness.Reply {
			return byEncoding([]chan struct{}{first, second}[min(n, 2)-1], "Accept-Encoding")(n, r)
		})
		leader := e.burst(1, e.get("/page", "Accept-Encoding", "gzip"))
		e.answering("/page", 1)
		answers := harness.StartBurst(t, clients, e.mixed("/page"))
		e.waiting(clients)
		close(first)
		e.wantBody(leader(), []byte("in gzip"))
		e.answering("/page", 1) // a leader of those who want it as it is
		e.waiting(clients/2 - 1)
		close(second)
		wantCodings(t, answers())
		e.wantCount("/page", 2)
		e.wantOutcomes(map[string]int{"miss": 2, "coalesced": clients - 1})

		e.invalidate("/page")
		e.origin.Reset()
		gate := make(chan struct{})
		e.serve("/page", byEncoding(gate, "Accept-Encoding"))
		answers = harness.StartBurst(t, clients, e.mixed("/page"))
		e.waiting(clients - 2)
		e.answering("/page", 2) // both groups at once, before any answer
		close(gate)
		wantCodings(t, answers())
		e.wantCount("/page", 2)
		if n := e.envoy.Counter("http.edge.ext_proc.override_message_timeout_ignored"); n != 0 {
			t.Errorf("Envoy was asked %d times for more time again", n)
		}
	})
}

// TestVaryStarIsSharedWithNobody.
func TestVaryStarIsSharedWithNobody(t *testing.T) {
	t.Parallel()
	const clients = 10
	e := startEdge(t, edgeOptions{})
	defer e.settles()
	leader, rest := make(chan struct{}), make(chan struct{})
	e.serve("/page", func(n int, r *http.Request) harness.Reply {
		return byEncoding([]chan struct{}{leader, rest}[min(n, 2)-1], "*")(n, r)
	})
	answers := e.burst(clients, e.get("/page", "Accept-Encoding", "gzip"))
	e.waiting(clients - 1)
	close(leader)
	e.answering("/page", clients-1)
	close(rest)
	for i, r := range answers() {
		if status := r.Header.Get("Cache-Status"); r.Err != nil || strings.Contains(status, "hit") {
			t.Errorf("client %d: error %v, Cache-Status %q", i, r.Err, status)
		}
	}
	e.wantCount("/page", clients)
	e.wantOutcomes(map[string]int{"miss_uncacheable": clients})
}

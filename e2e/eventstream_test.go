package e2e_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/weirproxy/weir/e2e/harness"
)

// TestEventStreamsAreNotHeld: each client has a stream of its own and sees its first event while the origin has not yet
// sent the second, whatever Cache-Control says. Nothing is stored.
func TestEventStreamsAreNotHeld(t *testing.T) {
	t.Parallel()
	const clients = 5
	first, second := "data: 1\n\n", "data: 2\n\n"
	e := startEdge(t, edgeOptions{})
	defer e.settles()
	for path, cacheControl := range map[string]string{"/events": "", "/stray": "max-age=60"} {
		next := make(chan struct{})
		header := harness.Fields("Content-Type", "text/event-stream")
		if cacheControl != "" {
			header.Set("Cache-Control", cacheControl)
		}
		e.serve(path, harness.Always(harness.Reply{
			Header: header, Chunked: true, Body: []byte(first + second), PauseAfter: len(first), BodyGate: next,
		}))
		var readers []*answer
		for range clients {
			readers = append(readers, e.begin(e.get(path), len(first)))
		}
		e.answering(path, clients)
		e.quiet() // weir has left the streams, which have not ended
		for _, r := range readers {
			if string(r.got) != first || r.resp.StatusCode != http.StatusOK {
				t.Errorf("%s: %d, first event %q", path, r.resp.StatusCode, r.got)
			}
		}
		close(next)
		for _, r := range readers {
			if body, err := r.rest(); err != nil || string(body) != first+second {
				t.Errorf("%s: %q, error %v", path, body, err)
			}
			r.hangUp()
		}
		e.wantCount(path, clients)
	}
	if n := e.status().Store.Entries; n != 0 {
		t.Errorf("%d entries are stored", n)
	}
	e.wantOutcomes(map[string]int{"miss_uncacheable": 2 * clients})
}

// TestEventStreamsAreNotQueued: clients who come at once do not wait for each other past the headers.
func TestEventStreamsAreNotQueued(t *testing.T) {
	t.Parallel()
	const clients = 5
	e := startEdge(t, edgeOptions{})
	defer e.settles()
	headers, never := make(chan struct{}), make(chan struct{})
	e.serve("/events", harness.Always(harness.Reply{
		Header: harness.Fields("Content-Type", "text/event-stream", "Cache-Control", "max-age=60"),
		Gate:   headers, Chunked: true, Body: []byte("data: 1\n\n"), PauseAfter: 4, BodyGate: never,
	}))
	answers := e.burst(clients, e.get("/events"))
	e.waiting(clients - 1)
	e.answering("/events", 1)
	close(headers)
	e.answering("/events", clients) // the first has not ended, and never will
	e.quiet()
	close(never)
	e.wantBody(answers(), []byte("data: 1\n\n"))
	e.wantCount("/events", clients)
}

// TestLengthIsKept: a plain file has its Content-Length on a miss, on a hit and for HEAD; so it has when others read it
// along.
func TestLengthIsKept(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{})
	defer e.settles()
	for _, size := range []int{1000, 300_000} { // in one message, and streamed
		gate := make(chan struct{})
		path := "/file/" + strconv.Itoa(size)
		e.serve(path, harness.Always(harness.Reply{
			Size: size, Header: harness.Fields("Cache-Control", "max-age=60", "Content-Type", "text/plain"),
			PauseAfter: size / 2, BodyGate: gate,
		}))
		readers := []*answer{e.begin(e.get(path), 10), e.begin(e.get(path), 10)}
		close(gate)
		for i, r := range readers {
			if body, err := r.rest(); err != nil || len(body) != size || r.resp.ContentLength != int64(size) {
				t.Errorf("client %d: %d of %d bytes, Content-Length %d, %v", i, len(body), size, r.resp.ContentLength, err)
			}
		}
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			req := e.get(path)
			req.Method = method
			resp := e.do(req)
			length, status := resp.Header.Get("Content-Length"), resp.Header.Get("Cache-Status")
			if length != strconv.Itoa(size) || !strings.Contains(status, "hit") {
				t.Errorf("%s: Content-Length %q, Cache-Status %q", method, length, status)
			}
		}
		e.wantCount(path, 1)
	}
	e.wantOutcomes(map[string]int{"miss": 2, "coalesced": 2, "hit": 4})

	e.serve("/chunked", harness.Always(harness.Reply{
		Size: smallSize, Chunked: true, Header: harness.Fields("Cache-Control", "max-age=60"),
	}))
	if miss := e.do(e.get("/chunked")); len(miss.Body) != smallSize || miss.Header.Get("Content-Length") != "" {
		t.Errorf("a miss whose length nobody knows: %d bytes, Content-Length %q", len(miss.Body), miss.Header.Get("Content-Length"))
	}
	hit := e.do(e.get("/chunked"))
	if length := hit.Header.Get("Content-Length"); len(hit.Body) != smallSize || length != strconv.Itoa(smallSize) {
		t.Errorf("a hit on it: %d bytes, Content-Length %q", len(hit.Body), length)
	}
}

package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/weirproxy/weir/e2e/harness"
)

const kib = 1 << 10

// TestObjectSizes: around each boundary between the store, weir's messages and Envoy's buffers, with and without
// Content-Length, all clients get every byte: who fetches, who follows and who comes later. What is larger than
// maxObjectSize is not stored, whether that is known from the start or found out on the way.
func TestObjectSizes(t *testing.T) {
	t.Parallel()
	const maxObjectSize = 8 * mib
	e := startEdge(t, edgeOptions{Spec: "storage: {maxObjectSize: 8Mi}\ncoalescing: {maxWait: 30s}"})
	defer e.settles()
	largest := harness.GeneratedBody(64 * mib)
	for _, tt := range []struct{ size, followers int }{
		{0, 3}, {kib, 3}, {64*kib - 1, 3}, {64*kib + 1, 3}, {128*kib - 1, 3}, {128 * kib, 3}, {128*kib + 1, 3}, {mib, 3},
		{4*mib - 1, 3}, {4*mib + 1, 3}, {maxObjectSize, 3}, {maxObjectSize + 1, 3}, {64 * mib, 1},
	} {
		for _, chunked := range []bool{false, true} {
			path := fmt.Sprintf("/%d-%v", tt.size, chunked)
			before := e.weir.Metrics()
			gate := make(chan struct{})
			e.serve(path, harness.Always(harness.Reply{
				Gate: gate, Body: largest[:tt.size], Chunked: chunked,
				Header: harness.Fields("Cache-Control", "max-age=60", "Content-Type", "text/plain"),
			}))
			answers := e.burst(1+tt.followers, e.get(path))
			e.waiting(tt.followers)
			close(gate)
			e.wantBody(append(answers(), e.burst(1, e.get(path))()...), largest[:tt.size])

			clients := tt.followers + 2
			want := map[string]int{"miss": 1, "coalesced": tt.followers, "hit": 1}
			switch {
			case tt.size > maxObjectSize && !chunked:
				want = map[string]int{"miss_uncacheable": clients}
			case tt.size > maxObjectSize: // the followers read along, and Cache-Status was sent before it was known
				want = map[string]int{"miss": 2, "coalesced": tt.followers}
			}
			e.wantOutcomesSince(before, path, want)
			e.wantCount(path, clients-want["coalesced"]-want["hit"])
		}
	}
	if n := e.status().Store.Entries; n != 2*11 {
		t.Errorf("%d entries are stored, want those of 11 sizes", n)
	}
}

// TestLargeBodiesPassUntouched: 64 MiB on a route without a policy, and under one whose rules keep it from the store.
func TestLargeBodiesPassUntouched(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{Envoy: harness.EnvoyOptions{Routes: []harness.Route{
		{Name: "none", Prefix: "/none"}, {Name: "default"},
	}}})
	defer e.settles()
	body := harness.GeneratedBody(64 * mib)
	for _, path := range []string{"/none", "/private"} {
		for _, chunked := range []bool{false, true} {
			e.serve(path, harness.Always(harness.Reply{
				Body: body, Chunked: chunked, Header: harness.Fields("Cache-Control", "private, max-age=60"),
			}))
			answers := e.burst(1, e.get(path))()
			e.wantBody(answers, body)
			if length := answers[0].Header.Get("Content-Length"); (length == "") != chunked {
				t.Errorf("%s: Content-Length %q", path, length)
			}
		}
	}
	e.wantOutcomes(map[string]int{"bypass_policy": 2, "miss_uncacheable": 2})
}

// TestClientsThatStopReading: hits go to Envoy whether its client reads or not, and Envoy keeps what is not read. A crowd
// of clients that ask for a large object and read nothing costs Envoy no more than its overload manager lets it, and weir
// nothing; when it is over, others are served as before.
func TestClientsThatStopReading(t *testing.T) {
	t.Parallel()
	const (
		object  = 8 * mib
		clients = 150
		heap    = 192 * mib
		slack   = 160 * mib // Envoy beside its heap, and what comes between two looks of the overload manager
	)
	e := startEdge(t, edgeOptions{
		Envoy: harness.EnvoyOptions{MaxHeapBytes: heap}, Spec: "storage: {maxObjectSize: 8Mi}",
	})
	body := harness.GeneratedBody(object)
	e.serve("/large", harness.Always(harness.Reply{Body: body, Header: harness.Fields("Cache-Control", "max-age=600")}))
	e.wantBody(e.burst(1, e.get("/large"))(), body)
	e.eventually("the object is stored", func() bool { return e.status().Store.Entries == 1 })

	weirBefore := e.weir.ResidentBytes()
	var envoyMost, weirMost uint64
	var stalled []io.Closer
	for range clients {
		conn := e.send(e.get("/large"))
		if err := conn.SetReadBuffer(16 * kib); err != nil {
			t.Fatal(err)
		}
		stalled = append(stalled, conn)
		for range 4 {
			envoyMost = max(envoyMost, e.envoy.ResidentBytes())
			weirMost = max(weirMost, e.weir.ResidentBytes())
			time.Sleep(10 * time.Millisecond) // the pace at which clients come
		}
	}
	t.Logf("Envoy held up to %d MiB; weir %d MiB before and up to %d MiB", envoyMost/mib, weirBefore/mib, weirMost/mib)
	if envoyMost > heap+slack {
		t.Errorf("Envoy held %d MiB, want no more than %d", envoyMost/mib, (heap+slack)/mib)
	}
	if envoyMost < heap/2 {
		t.Errorf("Envoy held %d MiB: the clients did not stop reading", envoyMost/mib)
	}
	if weirMost > weirBefore+64*mib {
		t.Errorf("weir held %d MiB after %d", weirMost/mib, weirBefore/mib)
	}
	for _, conn := range stalled {
		e.hangUp(conn)
	}
	e.eventually("others are served again", func() bool {
		answer := e.burst(1, e.get("/large"))()[0]
		return answer.Err == nil && answer.Status == http.StatusOK && answer.Hash == hash(body)
	})
	e.wantCount("/large", 1)
	e.quiet()
}

package e2e_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weirproxy/weir/e2e/harness"
)

// traffic are clients that ask for hits, small and streamed, and for misses, one after another until they are stopped.
type traffic struct {
	e    *edge
	stop chan struct{}
	wg   sync.WaitGroup

	answered atomic.Int64 // whole
	broken   atomic.Int64 // broke off after they had begun
}

const (
	smallSize    = 1000
	streamedSize = 300_000
)

// startTraffic has n clients ask. An answer that has not begun must begin, and one that ends must be whole: all else
// fails the test.
func (e *edge) startTraffic(n int) *traffic {
	e.t.Helper()
	sized := func(size int) harness.Script {
		return harness.Always(harness.Reply{
			Size: size, Header: harness.Fields("Cache-Control", "max-age=3600", "Content-Type", "text/plain"),
		})
	}
	e.serve("/small", sized(smallSize))
	e.serve("/streamed", sized(streamedSize))
	e.serve("/miss/", sized(smallSize))
	e.do(e.get("/small"))
	e.do(e.get("/streamed"))
	tr := &traffic{e: e, stop: make(chan struct{})}
	for i := range n {
		tr.wg.Go(func() { tr.client(i) })
	}
	return tr
}

func (tr *traffic) client(id int) {
	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 2 * patience}
	for i := 0; ; i++ {
		select {
		case <-tr.stop:
			return
		default:
		}
		switch i % 3 {
		case 0:
			tr.ask(client, "/small", smallSize)
		case 1:
			tr.ask(client, "/streamed", streamedSize)
		default:
			tr.ask(client, fmt.Sprintf("/miss/%d/%d", id, i), smallSize)
		}
	}
}

func (tr *traffic) ask(client *http.Client, path string, size int) {
	resp, err := client.Do(tr.e.get(path))
	if err != nil {
		tr.e.t.Errorf("%s: no answer: %v", path, err)
		return
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	switch {
	case err != nil:
		tr.broken.Add(1)
	case resp.StatusCode != http.StatusOK || !bytes.Equal(body, harness.GeneratedBody(size)):
		tr.e.t.Errorf("%s: status %d, %d of %d bytes, as if whole", path, resp.StatusCode, len(body), size)
	default:
		tr.answered.Add(1)
	}
}

// more waits for n more whole answers.
func (tr *traffic) more(n int64) {
	tr.e.t.Helper()
	want := tr.answered.Load() + n
	tr.e.eventually("clients are answered", func() bool { return tr.answered.Load() >= want })
}

// end stops the clients and returns how many answers broke off.
func (tr *traffic) end() int64 {
	close(tr.stop)
	tr.wg.Wait()
	return tr.broken.Load()
}

// held are requests for one path at the origin, whose answer the test gives: a leader and those who follow it.
type held struct {
	path      string
	gate      chan struct{}
	followers int
	answers   func() []harness.BurstResult
}

// hold has a leader and followers wait for an answer.
func (e *edge) hold(path string, followers int) *held {
	e.t.Helper()
	h := &held{path: path, gate: make(chan struct{}), followers: followers}
	e.serve(path, harness.Always(harness.Reply{
		Gate: h.gate, Size: smallSize, Header: harness.Fields("Cache-Control", "max-age=60"),
	}))
	h.answers = e.burst(followers+1, e.get(path))
	e.waiting(followers)
	e.answering(path, 1)
	return h
}

// wantAnswered opens the gate and checks that every client gets the whole answer.
func (h *held) wantAnswered(t *testing.T) {
	t.Helper()
	close(h.gate)
	for i, r := range h.answers() {
		if r.Err != nil || r.Status != http.StatusOK || r.Hash != hash(harness.GeneratedBody(smallSize)) {
			t.Errorf("held client %d: status %d, %d bytes, %v", i, r.Status, r.Length, r.Err)
		}
	}
}

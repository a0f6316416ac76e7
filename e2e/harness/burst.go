package harness

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// maxDials bounds connections being opened at a time, so that no listen queue overflows.
	maxDials = 128
	// maxKeptBody is how much of a body a BurstResult keeps.
	maxKeptBody = 4 << 10
)

// BurstResult is what one client of a burst saw. Err is set when the response did not come to a proper end; what came
// before is there all the same.
type BurstResult struct {
	Err    error
	Status int
	Header http.Header
	Length int64             // of the body
	Hash   [sha256.Size]byte // of the body, SHA-256
	Body   []byte            // its first 4 KiB
	// FirstByte and LastByte are the times from the start of the burst to the response's first and last byte.
	FirstByte, LastByte time.Duration
}

// Burst sends n requests at the same time, each on a connection of its own opened beforehand, and waits for all
// responses. request(i) makes the i-th request; all go to the host of their URL. n may be 5000 and more, if the system
// lets a process open that many files.
func Burst(tb TB, n int, request func(i int) *http.Request) []BurstResult {
	tb.Helper()
	return StartBurst(tb, n, request)()
}

// StartBurst is Burst for a test that has something to do while the clients wait: it returns when the requests are on
// their way. wait returns the results; it must be called once.
func StartBurst(tb TB, n int, request func(i int) *http.Request) (wait func() []BurstResult) {
	tb.Helper()
	raiseFileLimit(tb)
	clients, err := dialBurst(n, request)
	closeAll := func() {
		for _, c := range clients {
			if c != nil {
				_ = c.conn.Close()
			}
		}
	}
	tb.Cleanup(closeAll)
	if err != nil {
		tb.Fatalf("burst: %v", err)
	}
	results := make([]BurstResult, n)
	gate := make(chan struct{}) // closed when the burst starts
	var start time.Time
	var wg sync.WaitGroup
	for i, c := range clients {
		wg.Go(func() {
			<-gate
			results[i] = c.exchange(start)
		})
	}
	start = time.Now()
	close(gate)
	return func() []BurstResult {
		wg.Wait()
		closeAll()
		return results
	}
}

// Same makes each request of a burst the same one, which must have no body.
func Same(req *http.Request) func(int) *http.Request {
	return func(int) *http.Request { return req.Clone(req.Context()) }
}

// burstClient is a connection and the bytes to send on it.
type burstClient struct {
	conn    net.Conn
	req     *http.Request
	message []byte
}

func dialBurst(n int, request func(int) *http.Request) ([]*burstClient, error) {
	clients := make([]*burstClient, n)
	failures := make([]error, n)
	slots := make(chan struct{}, maxDials)
	var wg sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			clients[i], failures[i] = newBurstClient(request(i))
		})
	}
	wg.Wait()
	return clients, errors.Join(failures...)
}

func newBurstClient(req *http.Request) (*burstClient, error) {
	var message bytes.Buffer
	if err := req.Write(&message); err != nil {
		return nil, fmt.Errorf("write the request: %w", err)
	}
	conn, err := net.DialTimeout("tcp", req.URL.Host, clientLimit)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if err := conn.SetDeadline(time.Now().Add(2 * clientLimit)); err != nil {
		return nil, errors.Join(fmt.Errorf("connect: %w", err), conn.Close())
	}
	return &burstClient{conn: conn, req: req, message: message.Bytes()}, nil
}

// exchange sends the request and reads the response.
func (c *burstClient) exchange(start time.Time) (r BurstResult) {
	if _, err := c.conn.Write(c.message); err != nil {
		r.Err = fmt.Errorf("send: %w", err)
		return r
	}
	reader := bufio.NewReader(c.conn)
	_, err := reader.Peek(1)
	r.FirstByte = time.Since(start)
	r.LastByte = r.FirstByte
	if err != nil {
		r.Err = fmt.Errorf("wait for the response: %w", err)
		return r
	}
	resp, err := http.ReadResponse(reader, c.req)
	if err != nil {
		r.Err = fmt.Errorf("read the response's head: %w", err)
		return r
	}
	defer func() { _ = resp.Body.Close() }()
	r.Status, r.Header = resp.StatusCode, resp.Header
	head, whole := &limitedBuffer{limit: maxKeptBody}, sha256.New()
	r.Length, err = io.Copy(io.MultiWriter(head, whole), resp.Body)
	r.LastByte = time.Since(start)
	if err != nil {
		r.Err = fmt.Errorf("read the response's body: %w", err)
	}
	r.Body, r.Hash = head.kept, [sha256.Size]byte(whole.Sum(nil))
	return r
}

// limitedBuffer keeps the first bytes written and counts the rest as written.
type limitedBuffer struct {
	kept  []byte
	limit int
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	room := min(len(p), b.limit-len(b.kept))
	b.kept = append(b.kept, p[:room]...)
	return len(p), nil
}

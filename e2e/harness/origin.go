package harness

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxRecorded bounds the requests remembered per path; counting goes on beyond it.
	maxRecorded = 10_000
	// maxRecordedBody bounds what is remembered of a request's body.
	maxRecordedBody = 64 << 10
)

// Request is a request the origin saw.
type Request struct {
	Method string
	Path   string // with query, as sent
	Host   string
	Header http.Header
	Body   []byte // its first 64 KiB
	At     time.Time
}

// Script decides how the origin answers the n-th request of a path, counted from 1.
type Script func(n int, r *http.Request) Reply

// Always answers every request alike.
func Always(reply Reply) Script {
	return func(int, *http.Request) Reply { return reply }
}

// Origin is an HTTP/1.1 server that answers by script. It is safe for concurrent use.
type Origin struct {
	tb      TB
	address string
	reserve int // a socket that keeps the port while the origin is down

	ctx    context.Context // ends with the origin: replies that wait give up
	mu     sync.Mutex
	server *http.Server // nil while the origin is down
	served sync.WaitGroup
	paths  map[string]*pathRecord
}

// pathRecord is what the origin knows of one path, or of all below one that ends in "/".
type pathRecord struct {
	script        Script
	count         int
	concurrent    int
	maxConcurrent int
	requests      []Request
}

// StartOrigin starts an origin on 127.0.0.1 that answers 404 to everything until Handle says otherwise.
func StartOrigin(tb TB) *Origin {
	tb.Helper()
	return StartOriginOn(tb, netip.MustParseAddr("127.0.0.1"))
}

// StartOriginOn does as StartOrigin, on an IPv4 address of this machine.
func StartOriginOn(tb TB, ip netip.Addr) *Origin {
	tb.Helper()
	raiseFileLimit(tb)
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	o := &Origin{tb: tb, ctx: ctx, paths: make(map[string]*pathRecord)}
	reserve, address, err := reservePort(ip)
	if err != nil {
		cancel()
		tb.Fatalf("start the origin: %v", err)
	}
	o.reserve, o.address = reserve, address
	tb.Cleanup(func() {
		cancel()
		o.Down()
		_ = unix.Close(o.reserve)
	})
	o.Up()
	return o
}

// Address is the origin's host:port. It stays the same over Down and Up.
func (o *Origin) Address() string { return o.address }

// Handle answers a path by script. A path that ends in "/" stands for all below it that have no script of their own.
// What was counted of the path is kept.
func (o *Origin) Handle(path string, script Script) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.record(path).script = script
}

// Count is the number of requests that came in for a path (exactly as given to Handle, or one without script).
func (o *Origin) Count(path string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.record(path).count
}

// Concurrent is the number of requests of the path being answered now.
func (o *Origin) Concurrent(path string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.record(path).concurrent
}

// MaxConcurrent is the largest number of requests of the path that were being answered at a time.
func (o *Origin) MaxConcurrent(path string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.record(path).maxConcurrent
}

// Requests returns the first requests seen of a path, up to 10,000, oldest first.
func (o *Origin) Requests(path string) []Request {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.record(path).requests)
}

// Reset forgets what was counted and recorded; scripts stay.
func (o *Origin) Reset() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range o.paths {
		p.count, p.maxConcurrent, p.requests = 0, p.concurrent, nil
	}
}

// record returns the record of exactly this path, made when missing. o.mu is held.
func (o *Origin) record(path string) *pathRecord {
	p, ok := o.paths[path]
	if !ok {
		p = &pathRecord{}
		o.paths[path] = p
	}
	return p
}

// find returns the record that answers a request's path: its own, or the closest above that has a script.
func (o *Origin) find(path string) *pathRecord {
	if p, ok := o.paths[path]; ok && p.script != nil {
		return p
	}
	for above := path; above != ""; {
		above = above[:strings.LastIndexByte(strings.TrimSuffix(above, "/"), '/')+1]
		if p, ok := o.paths[above]; ok && p.script != nil {
			return p
		}
	}
	return o.record(path)
}

func (o *Origin) serve(w http.ResponseWriter, r *http.Request) {
	seen := Request{Method: r.Method, Path: r.RequestURI, Host: r.Host, Header: r.Header.Clone(), At: time.Now()}
	seen.Body, _ = io.ReadAll(io.LimitReader(r.Body, maxRecordedBody)) // a cut body is recorded as far as it came

	o.mu.Lock()
	p := o.find(r.URL.Path)
	p.count++
	p.concurrent++
	p.maxConcurrent = max(p.maxConcurrent, p.concurrent)
	if len(p.requests) < maxRecorded {
		p.requests = append(p.requests, seen)
	}
	n, script := p.count, p.script
	o.mu.Unlock()
	defer func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		p.concurrent--
	}()
	if script == nil {
		http.NotFound(w, r)
		return
	}
	ctx, cancel := context.WithCancel(r.Context()) // ends when the client is gone, or the origin
	defer cancel()
	defer context.AfterFunc(o.ctx, cancel)()
	script(n, r).write(ctx, w, r)
}

// Down ends the origin: running responses break, new connections are refused.
func (o *Origin) Down() {
	o.mu.Lock()
	server := o.server
	o.server = nil
	o.mu.Unlock()
	if server != nil {
		_ = server.Close() // its listener and connections are closed; there is no one to tell
		o.served.Wait()
	}
}

// Up starts the origin again after Down, at the same address. When it is up, Up does nothing.
func (o *Origin) Up() {
	o.tb.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.server != nil {
		return
	}
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error { return control(c, reusePort) }}
	listener, err := config.Listen(o.ctx, "tcp", o.address)
	if err != nil {
		o.tb.Fatalf("start the origin: %v", err)
	}
	server := &http.Server{Handler: http.HandlerFunc(o.serve), MaxHeaderBytes: 1 << 20}
	o.server = server
	o.served.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			o.tb.Logf("origin: %v", err)
		}
	})
}

// reservePort binds a socket to a free port without listening: connections are refused, nobody else gets the port.
func reservePort(ip netip.Addr) (fd int, address string, err error) {
	fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, "", err
	}
	var bound unix.Sockaddr
	err = reusePort(fd)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Addr: ip.As4()})
	}
	if err == nil {
		bound, err = unix.Getsockname(fd)
	}
	if err != nil {
		return 0, "", errors.Join(err, unix.Close(fd))
	}
	return fd, netip.AddrPortFrom(ip, uint16(bound.(*unix.SockaddrInet4).Port)).String(), nil
}

func reusePort(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) }

func control(c syscall.RawConn, set func(fd int) error) error {
	var failed error
	if err := c.Control(func(fd uintptr) { failed = set(int(fd)) }); err != nil {
		return err
	}
	return failed
}

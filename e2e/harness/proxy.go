package harness

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Proxy is a TCP proxy on 127.0.0.1 that makes what is behind it slow, or mute.
type Proxy struct {
	// Address is its host:port.
	Address string

	target   string
	listener net.Listener
	delay    atomic.Int64 // time.Duration
	mute     atomic.Bool
	running  sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool // nil once it has ended
}

// StartProxy starts a proxy in front of target (host:port).
func StartProxy(tb TB, target string) *Proxy {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("start a proxy: %v", err)
	}
	p := &Proxy{Address: l.Addr().String(), target: target, listener: l, conns: map[net.Conn]bool{}}
	p.running.Go(p.accept)
	tb.Cleanup(p.close)
	return p
}

// Delay holds each piece of an answer back for d from now on.
func (p *Proxy) Delay(d time.Duration) { p.delay.Store(int64(d)) }

// Mute loses all answers while it is on: what is asked arrives.
func (p *Proxy) Mute(on bool) { p.mute.Store(on) }

func (p *Proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	for c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
	p.mu.Unlock()
	p.running.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil || !p.keep(client, server) {
			_ = client.Close()
			continue
		}
		p.running.Go(func() {
			_, _ = io.Copy(server, client)
			p.drop(client, server)
		})
		p.running.Go(func() {
			p.answer(client, server)
			p.drop(client, server)
		})
	}
}

// answer passes on what the server says.
func (p *Proxy) answer(client io.Writer, server io.Reader) {
	piece := make([]byte, 64<<10)
	for {
		n, err := server.Read(piece)
		if err != nil {
			return
		}
		time.Sleep(time.Duration(p.delay.Load()))
		if p.mute.Load() {
			continue
		}
		if _, err := client.Write(piece[:n]); err != nil {
			return
		}
	}
}

func (p *Proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.conns == nil {
			_ = c.Close()
			continue
		}
		p.conns[c] = true
	}
	return p.conns != nil
}

func (p *Proxy) drop(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
		delete(p.conns, c)
	}
}

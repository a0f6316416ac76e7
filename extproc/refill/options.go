package refill

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// Defaults of Options.
const (
	DefaultMaxConcurrent  = 256
	DefaultMaxHeaderBytes = 64 << 10
	DefaultConnectTimeout = time.Second
	DefaultHeaderTimeout  = 15 * time.Second
	DefaultIdleTimeout    = 10 * time.Second
	DefaultTotalTimeout   = 5 * time.Minute
)

// Options configure a Fetcher. Only Addr is needed.
type Options struct {
	// Addr is where fetches enter Envoy: host:port, or a Unix socket as
	// unix:///path or /path.
	Addr string
	// TLS, if not nil, is how to speak to Addr. Without a ServerName the host of
	// the request's authority is sent as SNI and verified.
	TLS *tls.Config
	// Dial, if not nil, makes the connections to Addr, as in tests without a network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Tokens mark the requests as weir's own; nil for a listener without the filter.
	Tokens *Tokens
	// MaxConcurrent bounds the fetches that are sent at a time; others wait.
	MaxConcurrent int
	// MaxHeaderBytes bounds the head of an answer.
	MaxHeaderBytes int64
	// ConnectTimeout, HeaderTimeout (from sending to the head of the answer),
	// IdleTimeout (without a byte of the body) and TotalTimeout bound a fetch.
	ConnectTimeout, HeaderTimeout, IdleTimeout, TotalTimeout time.Duration
}

func (o *Options) setDefaults() {
	if o.MaxConcurrent <= 0 {
		o.MaxConcurrent = DefaultMaxConcurrent
	}
	if o.MaxHeaderBytes <= 0 {
		o.MaxHeaderBytes = DefaultMaxHeaderBytes
	}
	for _, d := range [...]struct {
		value    *time.Duration
		fallback time.Duration
	}{
		{&o.ConnectTimeout, DefaultConnectTimeout},
		{&o.HeaderTimeout, DefaultHeaderTimeout},
		{&o.IdleTimeout, DefaultIdleTimeout},
		{&o.TotalTimeout, DefaultTotalTimeout},
	} {
		if *d.value <= 0 {
			*d.value = d.fallback
		}
	}
}

// splitAddr returns the network and the address to dial.
func splitAddr(addr string) (network, address string, err error) {
	if path, ok := strings.CutPrefix(addr, "unix://"); ok {
		addr = path
		if !strings.HasPrefix(addr, "/") {
			return "", "", fmt.Errorf("refill address unix://%s: the path is not absolute", path)
		}
	}
	if strings.HasPrefix(addr, "/") {
		return "unix", addr, nil
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", "", fmt.Errorf("refill address: %w", err)
	}
	if host == "" || port == "" {
		return "", "", fmt.Errorf("refill address %q: %w", addr, errAddr)
	}
	return "tcp", addr, nil
}

var errAddr = errors.New("host and port are both needed")

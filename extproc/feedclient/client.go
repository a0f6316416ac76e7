package feedclient

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	grpcbackoff "google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/cachepolicy/feed"
	"github.com/weirproxy/weir/cachepolicy/feed/feedpb"
)

const (
	// backoffBase and backoffMax bound the wait before a stream is opened again: a
	// share, drawn each time, of base·2^failures.
	backoffBase = 250 * time.Millisecond
	backoffMax  = 15 * time.Second
	// resolveInterval is how often the controller's name is resolved.
	resolveInterval = 10 * time.Second
	// trafficInterval is how often counters are reported.
	trafficInterval = time.Minute
	connectTimeout  = 3 * time.Second
	// keepaliveTime and keepaliveTimeout find a controller that is gone without a
	// goodbye. The controller allows a ping each 5 s.
	keepaliveTime    = 10 * time.Second
	keepaliveTimeout = 5 * time.Second
)

// Options configure a Client. Address, Replica and OnChange are needed.
type Options struct {
	// Address is the controller's, host:port. All addresses that the host resolves to
	// are its replicas.
	Address string
	TLS     TLSFiles
	// ServerName is verified in the controller's certificate; empty: the host.
	ServerName string
	// Replica names this process, Version its release, Started when it began.
	Replica, Version string
	Started          time.Time
	// OnChange takes each new set into use. It is called by one goroutine at a time.
	OnChange func(*cachepolicy.Set)
	// Traffic returns the counters by policy since the start; nil: none.
	Traffic func() map[string]feed.Traffic
	// Invalidate carries out a command; nil: it is refused.
	Invalidate func(ctx context.Context, i feed.Invalidate) feed.Result
	Logger     *slog.Logger // nil: none
	// Resolve returns the addresses of a host; nil: the system's resolver.
	Resolve func(ctx context.Context, host string) ([]string, error)
	// Dial makes the connections; nil: over TCP.
	Dial func(ctx context.Context, address string) (net.Conn, error)
}

// Client is the data plane's side of the feed. Its methods are safe for concurrent
// use.
type Client struct {
	opts       Options
	host, port string
	state      *state
	synced     chan struct{} // closed once the first set was complete
}

// New returns a Client that does nothing until it is run.
func New(o Options) (*Client, error) {
	host, port, err := net.SplitHostPort(o.Address)
	if err != nil {
		return nil, fmt.Errorf("address of the controller: %w", err)
	}
	if o.TLS.Enabled() {
		if err := o.TLS.Check(); err != nil {
			return nil, err
		}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Resolve == nil {
		o.Resolve = net.DefaultResolver.LookupHost
	}
	if o.Dial == nil {
		o.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		}
	}
	if o.ServerName == "" {
		o.ServerName = host
	}
	return &Client{opts: o, host: host, port: port, state: newState(), synced: make(chan struct{})}, nil
}

// Run subscribes and reports until ctx ends.
func (c *Client) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		c.subscribe(ctx)
		return nil
	})
	g.Go(func() error {
		c.reportToAll(ctx)
		return nil
	})
	return g.Wait()
}

// Synced is closed once a first set was complete, even if it is empty.
func (c *Client) Synced() <-chan struct{} { return c.synced }

// addresses returns the addresses of the controller's replicas.
func (c *Client) addresses(ctx context.Context) ([]string, error) {
	hosts, err := c.opts.Resolve(ctx, c.host)
	if err != nil {
		return nil, fmt.Errorf("resolving the controller: %w", err)
	}
	if len(hosts) == 0 {
		return nil, errors.New("resolving the controller: no address")
	}
	out := make([]string, len(hosts))
	for i, host := range hosts {
		out[i] = net.JoinHostPort(host, c.port)
	}
	return out, nil
}

// connect returns a connection to one replica of the controller.
func (c *Client) connect(address string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(c.opts.TLS.credentials()),
		grpc.WithAuthority(c.opts.ServerName),
		grpc.WithContextDialer(c.opts.Dial),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time: keepaliveTime, Timeout: keepaliveTimeout, PermitWithoutStream: true,
		}),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: grpcbackoff.DefaultConfig, MinConnectTimeout: connectTimeout}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(feedpb.MaxMessageBytes)),
		grpc.WithDisableServiceConfig(),
		grpc.WithNoProxy(),
	)
}

// backoff is the wait between attempts: exponential, with full jitter, so that all
// replicas do not come back at once.
type backoff struct{ failures int }

// wait waits, and reports false when ctx ended.
func (b *backoff) wait(ctx context.Context) bool {
	limit := min(backoffBase<<min(b.failures, 10), backoffMax)
	b.failures++
	t := time.NewTimer(rand.N(limit) + time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

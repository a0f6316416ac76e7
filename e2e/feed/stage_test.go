package feed_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/cachepolicy/feed"
	controller "github.com/weirproxy/weir/controller/feed"
	"github.com/weirproxy/weir/extproc/feedclient"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is replicas of a controller, by address, and what the data plane sees of them.
type stage struct {
	t testing.TB

	mu          sync.Mutex
	controllers map[string]*controllerReplica
	listed      []string
	bytes       atomic.Int64 // that came to the data plane over all connections
}

// controllerReplica is one replica of the controller, on a network in memory.
type controllerReplica struct {
	*controller.Server
	t       testing.TB
	address string
	stop    func()
	listen  *bufconn.Listener
}

func newStage(tb testing.TB) *stage {
	tb.Helper()
	return &stage{t: tb, controllers: map[string]*controllerReplica{}}
}

// start starts a replica of the controller at an address, and lists it.
func (s *stage) start(host string) *controllerReplica {
	s.t.Helper()
	c := &controllerReplica{
		Server: controller.New(controller.Options{}), t: s.t, address: host + ":18000", listen: bufconn.Listen(1 << 20),
	}
	server := grpc.NewServer(controller.ServerOptions()...)
	c.Register(server)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(c.listen)
	}()
	c.stop = sync.OnceFunc(func() {
		s.mu.Lock()
		delete(s.controllers, c.address)
		s.mu.Unlock()
		c.Close()
		server.Stop()
		<-served
	})
	s.t.Cleanup(c.stop)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.controllers[c.address] = c
	s.listed = append(s.listed, host)
	return c
}

func (s *stage) dial(ctx context.Context, address string) (net.Conn, error) {
	s.mu.Lock()
	c := s.controllers[address]
	s.mu.Unlock()
	if c == nil {
		return nil, fmt.Errorf("%s: connection refused", address)
	}
	conn, err := c.listen.DialContext(ctx)
	return &countedConn{conn, &s.bytes}, err
}

type countedConn struct {
	net.Conn
	bytes *atomic.Int64
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

// dataPlane is a replica of the data plane.
type dataPlane struct {
	*feedclient.Client
	set  atomic.Pointer[cachepolicy.Set]
	sets chan *cachepolicy.Set // each that came into use
}

// join starts a replica of the data plane.
func (s *stage) join(name string, change ...func(*feedclient.Options)) *dataPlane {
	s.t.Helper()
	d := &dataPlane{sets: make(chan *cachepolicy.Set, 1000)}
	o := feedclient.Options{
		Address: "controller:18000", Replica: name, Version: "v1", Started: time.Now(), Dial: s.dial,
		OnChange: func(set *cachepolicy.Set) {
			d.set.Store(set)
			d.sets <- set
		},
		Resolve: func(context.Context, string) ([]string, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return append([]string(nil), s.listed...), nil
		},
	}
	for _, f := range change {
		f(&o)
	}
	client, err := feedclient.New(o)
	if err != nil {
		s.t.Fatal(err)
	}
	d.Client = client
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = client.Run(ctx)
	}()
	s.t.Cleanup(func() {
		cancel()
		<-ended
	})
	return d
}

// next waits for the next set that is in use.
func (d *dataPlane) next(tb testing.TB) *cachepolicy.Set {
	tb.Helper()
	select {
	case set := <-d.sets:
		return set
	case <-time.After(20 * time.Second):
		tb.Fatalf("no new set; the feed is %+v", d.Status())
		return nil
	}
}

// eventually waits until ok.
func (c *controllerReplica) eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	late := time.After(20 * time.Second)
	for !ok() {
		select {
		case <-c.Changed():
		case <-late:
			tb.Fatalf("%s: not so; replicas %+v", what, c.Replicas())
		}
	}
}

// set sets resources, all of which can be sent.
func (c *controllerReplica) set(policies []feed.Policy, routes []feed.Route) {
	c.t.Helper()
	if _, err := c.Set(policies, routes, nil); err != nil {
		c.t.Fatal(err)
	}
}

func policy(namespace, name string, jitter int32) feed.Policy {
	p := feed.Policy{Namespace: namespace, Name: name, Generation: int64(jitter)}
	p.Spec.JitterPercent = &jitter
	return p
}

func route(namespace, name string, policies ...string) feed.Route {
	return feed.Route{Kind: "HTTPRoute", Namespace: namespace, Name: name, Rules: []feed.Rule{{
		Policies: policies, Scope: namespace + "/httproute/" + name + "/0123456789abcdef0123456789abcdef",
		EnvoyRoutes: []string{"httproute/" + namespace + "/" + name + "/rule/0/*"}, Hosts: []string{name + ".example"},
		MessageTimeoutMillis: 5500,
	}}}
}

// jitterOf is the jitter in force on a route; -1: no policy is.
func jitterOf(set *cachepolicy.Set, namespace, name string) int {
	b, _ := set.Identify("", "", "httproute/"+namespace+"/"+name+"/rule/0/match/0/*")
	if b == nil {
		return -1
	}
	return b.Policy.JitterPercent
}

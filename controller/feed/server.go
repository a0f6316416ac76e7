package feed

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/delta/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weirproxy/weir/cachepolicy/feed"
	"github.com/weirproxy/weir/cachepolicy/feed/feedpb"
)

// Options configure a Server; the zero value is usable.
type Options struct {
	Logger *slog.Logger // nil: none
}

// Server gives the data plane its configuration and hears what it runs. Every
// replica of the controller has one, elected or not; all have the same resources in
// the same versions. It is safe for concurrent use.
type Server struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	log     *slog.Logger
	ctx     context.Context //nolint:containedctx // it is the server's life
	cancel  context.CancelFunc
	xds     delta.Server
	changed chan struct{}

	setting sync.Mutex             // one Set at a time
	given   map[string]feed.Object // the last, by name of resource

	mu          sync.Mutex
	subscribers subscribers
	replicas    map[string]*replica // connected
	retired     retired
	traffic     map[string]feed.Traffic
	commands    uint64 // sent
}

// New returns a Server that has no resources, and tells subscribers so only after
// the first Set: one that was served before keeps what it has until then.
func New(o Options) *Server {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		log: o.Logger, changed: make(chan struct{}, 1),
		subscribers: subscribers{history: newHistory(), open: map[*subscription]struct{}{}},
		given:       map[string]feed.Object{},
		replicas:    map[string]*replica{}, traffic: map[string]feed.Traffic{}, retired: newRetired(),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.xds = delta.NewServer(s.ctx, watcher{s}, nil)
	return s
}

// Register adds the server's services to a gRPC server, which is best made with
// ServerOptions.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(r, s)
	r.RegisterService(feedpb.ControlStream(func(_ any, stream grpc.ServerStream) error { return s.connect(stream) }), s)
}

// Close ends all streams. It is called before the gRPC server's GracefulStop.
func (s *Server) Close() { s.cancel() }

// DeltaAggregatedResources is the subscription of one replica of the data plane.
func (s *Server) DeltaAggregatedResources(
	stream discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer,
) error {
	return s.xds.DeltaStreamHandler(stream, resource.AnyType)
}

// Set makes these the resources, tells subscribers what changed, and returns how
// many did (removed ones too). An object that cannot be sent (too large) is left
// out, keeps the version that was sent before, and is in the error by name. What is
// given is kept to compare the next with: it must not be changed afterwards.
func (s *Server) Set(policies []feed.Policy, routes []feed.Route, entrances []feed.Entrance) (changed int, err error) {
	s.setting.Lock()
	defer s.setting.Unlock()
	n := newNext(s, len(policies)+len(routes)+len(entrances))
	// Policies and entrances come before the routes that name them.
	for i := range policies {
		n.put(&policies[i])
	}
	for i := range entrances {
		n.put(&entrances[i])
	}
	for i := range routes {
		n.put(&routes[i])
	}
	changed = s.take(n)
	return changed, errors.Join(n.faults...)
}

// next is what Set is told, compared with what is there.
type next struct {
	server  *Server
	names   map[string]struct{}
	changed []feed.Resource
	faults  []error
}

func newNext(s *Server, size int) *next {
	return &next{server: s, names: make(map[string]struct{}, size)}
}

func (n *next) put(o feed.Object) {
	name := o.Resource()
	n.names[name] = struct{}{}
	if old, ok := n.server.given[name]; ok && feed.Equal(old, o) {
		return
	}
	r, err := feed.Encode(o)
	if err != nil {
		delete(n.server.given, name)
		n.faults = append(n.faults, err)
		return
	}
	n.server.given[name] = o
	if n.server.Version(name) != r.Version {
		n.changed = append(n.changed, r)
	}
}

// take makes the next resources the current ones.
func (s *Server) take(n *next) (changed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.subscribers.history
	for i := range n.changed {
		wire, err := feedpb.Wrap(n.changed[i])
		if err != nil {
			n.faults = append(n.faults, err)
			continue
		}
		h.put(n.changed[i].Name, n.changed[i].Version, wire)
		s.isBehind(n.changed[i].Name)
		changed++
	}
	var gone []string
	for name, r := range h.byName {
		if _, ok := n.names[name]; !ok && r.wire != nil {
			gone = append(gone, name)
		}
	}
	for _, name := range gone {
		h.remove(name)
		delete(s.given, name)
		s.isBehind(name)
		s.forgetTraffic(name)
	}
	first := !s.subscribers.ready
	s.subscribers.ready = true
	if changed += len(gone); changed > 0 || first {
		s.subscribers.tell()
		s.notify()
	}
	return changed
}

// Version returns the current version of a resource ([feed.Policy.Resource] and the
// like give names); empty: there is none.
func (s *Server) Version(resource string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.subscribers.history.version(resource)
}

// Changed gets a value after anything changed in what Replicas, Runs, Running,
// Rejections or Traffic return; changes that come before it was received are one.
func (s *Server) Changed() <-chan struct{} { return s.changed }

func (s *Server) notify() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// watcher is the server as go-control-plane's delta server asks it.
type watcher struct{ *Server }

// CreateWatch implements [cache.ConfigWatcher]: only deltas are served.
func (watcher) CreateWatch(*cache.Request, cache.Subscription, chan cache.Response) (func(), error) {
	return nil, status.Error(codes.Unimplemented, "only delta xDS is served")
}

// CreateDeltaWatch implements [cache.ConfigWatcher].
func (w watcher) CreateDeltaWatch(
	req *cache.DeltaRequest, sub cache.Subscription, out chan cache.DeltaResponse,
) (func(), error) {
	open, err := newSubscription(req, sub, out)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.subscribers.add(open); err != nil {
		return nil, err
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.subscribers.open, open)
	}, nil
}

package controller_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirproxy/weir/cachepolicy/feed"
	"github.com/weirproxy/weir/cachepolicy/feed/feedpb"
)

// replica plays a replica of the data plane: it runs what it is sent, unless refuse says why not.
type replica struct {
	name    string
	refuse  func(resource string) string
	started int64

	mu       sync.Mutex
	running  map[string]string
	objects  map[string]feed.Object
	commands []feed.Invalidate
	answer   func(feed.Invalidate) feed.Result // nil: applied
	control  grpc.ClientStream
}

// startReplica connects a replica to a controller. It comes back when the controller does, until the test ends or
// stop is called.
func startReplica(t *testing.T, name, address string) (r *replica, stop func()) {
	t.Helper()
	r = &replica{name: name, started: time.Now().UnixNano()}
	return r, r.start(t, address)
}

// start connects the replica.
func (r *replica) start(t *testing.T, address string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			r.connect(ctx, address)
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	t.Cleanup(stop)
	return stop
}

// connect holds both streams until one ends.
func (r *replica) connect(ctx context.Context, address string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	control, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, feedpb.ControlConnect)
	if err != nil {
		return
	}
	r.mu.Lock()
	r.control, r.running, r.objects = control, map[string]string{}, map[string]feed.Object{}
	r.mu.Unlock()
	if r.report(feed.Report{Replica: r.name, Version: "test", Started: r.started, Synced: true}) != nil {
		return
	}
	xds, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	if err != nil {
		return
	}
	err = xds.Send(&discoveryv3.DeltaDiscoveryRequest{
		Node: &corev3.Node{Id: r.name}, TypeUrl: feedpb.TypeURL, ResourceNamesSubscribe: []string{"*"},
	})
	if err != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { defer cancel(); r.obey(control) })
	both.Go(func() { defer cancel(); r.subscribe(xds) })
	both.Wait()
}

func (r *replica) subscribe(xds discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient) {
	for {
		response, err := xds.Recv()
		if err != nil {
			return
		}
		said := feed.Report{Running: map[string]string{}, Rejected: map[string]feed.Rejection{}}
		for _, resource := range response.GetResources() {
			if r.refuse != nil && r.refuse(resource.GetName()) != "" {
				said.Rejected[resource.GetName()] = feed.Rejection{
					Version: resource.GetVersion(), Error: r.refuse(resource.GetName()),
				}
				continue
			}
			said.Running[resource.GetName()] = resource.GetVersion()
		}
		for _, name := range response.GetRemovedResources() {
			said.Running[name] = ""
		}
		r.keep(response)
		ack := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: feedpb.TypeURL, ResponseNonce: response.GetNonce()}
		if xds.Send(ack) != nil || r.report(said) != nil {
			return
		}
		r.mu.Lock()
		for name, version := range said.Running {
			if r.running[name] = version; version == "" {
				delete(r.running, name)
			}
		}
		r.mu.Unlock()
	}
}

// keep keeps what resources say.
func (r *replica) keep(response *discoveryv3.DeltaDiscoveryResponse) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, resource := range response.GetResources() {
		data, err := feedpb.Unwrap(resource)
		if err != nil {
			continue
		}
		if o, err := feed.Decode(resource.GetName(), data); err == nil {
			r.objects[resource.GetName()] = o
		}
	}
	for _, name := range response.GetRemovedResources() {
		delete(r.objects, name)
	}
}

// route is what the replica was sent of an HTTPRoute; nil: nothing.
func (r *replica) route(namespace, name string) *feed.Route {
	r.mu.Lock()
	defer r.mu.Unlock()
	route, _ := r.objects["route/httproute/"+namespace+"/"+name].(*feed.Route)
	return route
}

// obey answers commands.
func (r *replica) obey(control grpc.ClientStream) {
	for {
		var frame wrapperspb.BytesValue
		var command feed.Command
		if control.RecvMsg(&frame) != nil || feedpb.ReadFrame(&frame, &command) != nil {
			return
		}
		if command.Invalidate == nil {
			continue
		}
		r.mu.Lock()
		r.commands = append(r.commands, *command.Invalidate)
		answer := r.answer
		r.mu.Unlock()
		result := feed.Result{Covered: command.Invalidate.By + " " + command.Invalidate.Value, Confirmed: 1, Total: 1}
		if answer != nil {
			result = answer(*command.Invalidate)
		}
		result.ID = command.ID
		if r.report(feed.Report{Result: &result}) != nil {
			return
		}
	}
}

func (r *replica) report(said feed.Report) error {
	frame, err := feedpb.Frame(said)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.control.SendMsg(frame)
}

// resources are the names of what it runs.
func (r *replica) resources() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.running))
}

// told are the invalidations that it was told.
func (r *replica) told() []feed.Invalidate {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.commands)
}

// runsNothing reports whether it runs nothing of a namespace.
func (r *replica) runsNothing(namespace string) bool {
	return !slices.ContainsFunc(r.resources(), func(s string) bool { return strings.Contains(s, "/"+namespace+"/") })
}

// generation is that of the policy it was sent; 0: none.
func (r *replica) generation(namespace, name string) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p, ok := r.objects["policy/"+namespace+"/"+name].(*feed.Policy); ok {
		return p.Generation
	}
	return 0
}

package feedclient

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/cachepolicy/feed"
	"github.com/weirproxy/weir/cachepolicy/feed/feedpb"
)

const (
	// maxResources bounds the resources of a feed.
	maxResources = 200_000
	// maxNacked bounds the refusals that one response is answered with.
	maxNacked = 20
)

// subscriber keeps the set at what the controller says. One goroutine uses it.
type subscriber struct {
	*Client
	table *cachepolicy.Table
	// versions are those of all resources that came, refused ones included: what a
	// replica of the controller need not send again.
	versions map[string]string
	// unread are the resources that came last in a form that cannot be read, and why.
	unread map[string]error
	// batch is what came of an update of which more is to come.
	batch map[string]arrived
}

// arrived is a resource as it came; no version: it is gone.
type arrived struct {
	version string
	object  feed.Object
	err     error // why it cannot be read
}

// subscribe keeps a subscription to one replica of the controller until ctx ends.
func (c *Client) subscribe(ctx context.Context) {
	s := &subscriber{Client: c, table: cachepolicy.NewTable(), versions: map[string]string{}, unread: map[string]error{}}
	var wait backoff
	for ctx.Err() == nil {
		before := c.Status().Updates
		err := s.stream(ctx)
		c.state.update(func(st *Status) {
			st.Address, st.ConnectedAt = "", time.Time{}
			if err != nil && ctx.Err() == nil {
				st.LastError = err.Error()
				st.Failures++
			}
		})
		if c.Status().Updates != before {
			wait = backoff{}
		}
		if ctx.Err() != nil || !wait.wait(ctx) {
			return
		}
		c.opts.Logger.Info("Subscribing again to the controller", "error", err)
	}
}

// stream subscribes once, and returns when that broke.
func (s *subscriber) stream(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	addresses, err := s.addresses(ctx)
	if err != nil {
		return err
	}
	address := addresses[rand.IntN(len(addresses))] // spread over the replicas
	conn, err := s.connect(address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	xds, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	if err != nil {
		return fmt.Errorf("controller %s: %w", address, err)
	}
	s.batch = map[string]arrived{}
	err = xds.Send(&discoveryv3.DeltaDiscoveryRequest{
		Node: &corev3.Node{Id: s.opts.Replica, Cluster: "weir-extproc", UserAgentName: "weir-extproc",
			UserAgentVersionType: &corev3.Node_UserAgentVersion{UserAgentVersion: s.opts.Version}},
		TypeUrl: feedpb.TypeURL, ResourceNamesSubscribe: []string{"*"}, InitialResourceVersions: s.versions,
	})
	for err == nil {
		var response *discoveryv3.DeltaDiscoveryResponse
		if response, err = xds.Recv(); err != nil {
			break
		}
		s.state.update(func(st *Status) {
			if st.Address == "" {
				st.Address, st.ConnectedAt, st.LastError = address, time.Now(), ""
			}
		})
		answer := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: feedpb.TypeURL, ResponseNonce: response.GetNonce()}
		if refused := s.take(response); len(refused) > 0 {
			answer.ErrorDetail = &statuspb.Status{Code: int32(codes.InvalidArgument), Message: nack(refused)}
		}
		err = xds.Send(answer)
	}
	return fmt.Errorf("controller %s: %w", address, err)
}

// nack names what was refused and why.
func nack(refused map[string]error) string {
	var b strings.Builder
	for i, name := range slices.Sorted(maps.Keys(refused)) {
		if i == maxNacked {
			fmt.Fprintf(&b, "and %d more", len(refused)-i)
			break
		}
		fmt.Fprintf(&b, "%s: %s\n", name, refused[name])
	}
	return b.String()
}

// take takes a response in. What it brings is in force when take returns, unless
// more belongs to it; what of that is refused is returned by name.
func (s *subscriber) take(response *discoveryv3.DeltaDiscoveryResponse) (refused map[string]error) {
	for _, r := range response.GetResources() {
		a := arrived{version: r.GetVersion()}
		if data, err := feedpb.Unwrap(r); err != nil {
			a.err = err
		} else {
			a.object, a.err = feed.Decode(r.GetName(), data)
		}
		s.batch[r.GetName()] = a
	}
	for _, name := range response.GetRemovedResources() {
		s.batch[name] = arrived{}
	}
	if response.GetSystemVersionInfo() == feedpb.More {
		return nil
	}
	batch := s.batch
	s.batch = map[string]arrived{}
	return s.apply(batch)
}

// apply makes a new set.
func (s *subscriber) apply(batch map[string]arrived) (refused map[string]error) {
	refused = map[string]error{}
	var changes []cachepolicy.Change
	for name, a := range batch {
		delete(s.unread, name)
		switch {
		case a.version == "":
			delete(s.versions, name)
			changes = append(changes, cachepolicy.Change{Name: name})
			continue
		case a.err != nil:
			refused[name], s.unread[name] = a.err, a.err
		case len(s.versions) >= maxResources && s.versions[name] == "":
			refused[name] = fmt.Errorf("there are more than %d resources", maxResources)
			continue
		default:
			changes = append(changes, cachepolicy.Change{Name: name, Object: a.object})
		}
		s.versions[name] = a.version
	}
	set, verdicts := s.table.Apply(changes)
	s.opts.OnChange(set)
	for name, err := range verdicts {
		if err = errors.Join(err, s.unread[name]); err != nil {
			refused[name] = err
			continue
		}
		s.state.note(name, s.versions[name], nil)
	}
	for name, err := range refused {
		s.state.note(name, s.versions[name], err)
		s.opts.Logger.Warn("A resource of the controller is refused", "resource", name, "error", err)
	}
	s.state.update(func(st *Status) {
		st.Updates++
		st.UpdatedAt, st.Synced = time.Now(), true
	})
	if len(batch) > 0 {
		s.opts.Logger.Debug("Policies of the controller in use", "changes", len(batch), "policies", set.Len())
	}
	select {
	case <-s.synced:
	default:
		close(s.synced)
	}
	return refused
}

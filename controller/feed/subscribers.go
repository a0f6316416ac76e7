package feed

import (
	"errors"
	"maps"
	"strconv"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/weirproxy/weir/cachepolicy/feed/feedpb"
)

// maxSubscribers bounds the subscriptions that wait for a change.
const maxSubscribers = 1000

// subscribers is what stands behind go-control-plane's delta server in place of its
// own caches, which look at every resource for every subscriber at every change.
//
// What a subscriber has is a position in the history. The server keeps for each
// stream the map that the last response gave it, and gives it back with the next
// request; the position is in that map, under a name that no resource has, and beside
// it, until the subscriber is current for the first time, the versions it began with.
//
// A subscriber has one response under way: the next is made of what changed by the
// time it acknowledged. So a slow one costs no memory, and gets changes together.
type subscribers struct {
	history *history
	// ready: resources were set. Until then nobody is answered: to say that there are
	// none would take from a replica what it runs.
	ready bool
	open  map[*subscription]struct{} // waiting for a change
}

// positionKey is the position's name in a stream's map.
const positionKey = ""

// subscription is a request that waits for its response.
type subscription struct {
	req      *cache.DeltaRequest
	out      chan cache.DeltaResponse
	began    bool // it had a response before
	position uint64
	have     map[string]string // what it said it has; nil once it is current
}

var errBehind = errors.New("the subscriber is too far behind: it is to say anew what it has")

// newSubscription reads where the subscriber stands.
func newSubscription(
	req *cache.DeltaRequest, sub cache.Subscription, out chan cache.DeltaResponse,
) (*subscription, error) {
	switch {
	case req.GetTypeUrl() != feedpb.TypeURL:
		return nil, status.Errorf(codes.InvalidArgument, "type %q: only %s is served", req.GetTypeUrl(), feedpb.TypeURL)
	case !sub.IsWildcard():
		return nil, status.Error(codes.InvalidArgument, "the feed is subscribed to as a whole: want *")
	}
	s := &subscription{req: req, out: out}
	given := sub.ReturnedResources()
	if at, ok := given[positionKey]; ok {
		s.began = true
		s.position, _ = strconv.ParseUint(at, 10, 64) // it is ours
		if len(given) == 1 {
			return s, nil
		}
	}
	s.have = make(map[string]string, len(given))
	maps.Copy(s.have, given)
	delete(s.have, positionKey)
	return s, nil
}

// add answers a subscription, or keeps it until there is news.
func (s *subscribers) add(sub *subscription) error {
	if sub.have == nil && sub.position < s.history.horizon {
		return status.Error(codes.Aborted, errBehind.Error())
	}
	if s.answer(sub) {
		return nil
	}
	if len(s.open) >= maxSubscribers {
		return status.Error(codes.ResourceExhausted, "too many subscribers")
	}
	s.open[sub] = struct{}{}
	return nil
}

// tell answers all who wait.
func (s *subscribers) tell() {
	for sub := range s.open {
		if s.answer(sub) {
			delete(s.open, sub)
		}
	}
}

// answer sends what the subscriber lacks, up to a bound; false: there is nothing.
func (s *subscribers) answer(sub *subscription) bool {
	if !s.ready || sub.began && sub.position == s.history.head {
		return false
	}
	out := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: feedpb.TypeURL}
	position, size := s.history.head, 0
	for e := s.history.after(sub.position); e != nil; e = e.Next() {
		r := e.Value.(*record)
		if size >= feedpb.MaxResponseBytes {
			position, out.SystemVersionInfo = e.Prev().Value.(*record).at, feedpb.More
			break
		}
		size += sub.add(out, r)
	}
	returned := map[string]string{positionKey: strconv.FormatUint(position, 10)}
	if out.GetSystemVersionInfo() == feedpb.More {
		maps.Copy(returned, sub.have)
	} else {
		for name := range sub.have {
			if s.history.version(name) == "" {
				out.RemovedResources = append(out.RemovedResources, name)
			}
		}
	}
	// The channel has room: a stream has one subscription of the type, and this is the
	// one response to it.
	sub.out <- &cache.DeltaPassthroughResponse{
		DeltaRequest: sub.req, NextVersionMap: returned, DeltaDiscoveryResponse: out,
	}
	return true
}

// add adds a resource to the response, unless the subscriber has this version, and
// returns its bytes.
func (sub *subscription) add(out *discoveryv3.DeltaDiscoveryResponse, r *record) int {
	if sub.have != nil {
		if r.wire == nil || sub.have[r.name] == r.version {
			return 0 // what is removed is said at the end, of what it has
		}
		sub.have[r.name] = r.version // it may be removed or change back before the last response
	}
	if r.wire == nil {
		out.RemovedResources = append(out.RemovedResources, r.name)
		return len(r.name)
	}
	out.Resources = append(out.Resources, r.wire)
	return proto.Size(r.wire)
}

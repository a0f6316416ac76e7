package feed

import (
	"container/list"
	"strings"

	"github.com/weirproxy/weir/cachepolicy/feed"
)

// maxRetired bounds the replicas that are gone and whose counters are remembered,
// in case they come back.
const maxRetired = 1000

// retired are the counters of replicas that are not connected: a replica that comes
// back goes on counting where it was, and must not be counted twice.
type retired struct {
	byName map[string]*list.Element
	order  *list.List // of *counters; the front went last
}

type counters struct {
	name    string
	started int64
	traffic map[string]feed.Traffic
}

func newRetired() retired { return retired{map[string]*list.Element{}, list.New()} }

func (r *retired) keep(name string, started int64, t map[string]feed.Traffic) {
	if e, ok := r.byName[name]; ok {
		r.order.Remove(e)
	}
	r.byName[name] = r.order.PushFront(&counters{name, started, t})
	if r.order.Len() > maxRetired {
		delete(r.byName, r.order.Remove(r.order.Back()).(*counters).name)
	}
}

// back returns the counters of a process that was here before; none for another.
func (r *retired) back(name string, started int64) map[string]feed.Traffic {
	e, ok := r.byName[name]
	if !ok {
		return map[string]feed.Traffic{}
	}
	delete(r.byName, name)
	if c := r.order.Remove(e).(*counters); c.started == started {
		return c.traffic
	}
	return map[string]feed.Traffic{}
}

// count adds what a replica counted since it last said so. Policies that are not
// known are none of ours. The caller holds mu.
func (s *Server) count(r *replica, said map[string]feed.Traffic) {
	for policy, now := range said {
		if s.subscribers.history.version(feed.PolicyResource(policy)) == "" {
			continue
		}
		before, sum := r.traffic[policy], s.traffic[policy]
		sum.Requests += since(now.Requests, before.Requests)
		sum.Hits += since(now.Hits, before.Hits)
		sum.Stale += since(now.Stale, before.Stale)
		sum.OriginSaved += since(now.OriginSaved, before.OriginSaved)
		s.traffic[policy], r.traffic[policy] = sum, now
	}
}

func since(now, before uint64) uint64 { return max(now, before) - before }

// forgetTraffic drops the counters of a policy that is gone.
func (s *Server) forgetTraffic(resource string) {
	policy, ok := strings.CutPrefix(resource, feed.PolicyResource(""))
	if !ok {
		return
	}
	delete(s.traffic, policy)
}

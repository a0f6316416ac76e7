package extproc

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/fleet"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/refill"
)

// policyState is what a policy has at work in this process. It outlives changes
// of the policy.
type policyState struct {
	waiters atomic.Int64 // requests that follow a flight
	limiter *refill.Limiter
	budget  *refill.Budget
	applied atomic.Pointer[cachepolicy.Policy] // whose limits are in force
	sight   sight
	// cold is the position in the stream of invalidations up to which the ramp has
	// heard of those that leave the cache cold.
	cold atomic.Uint64
}

// retriesPerSecond bounds, per policy, the fetches of keys that failed before.
const retriesPerSecond = 10

// state returns the state of a policy, with the limits it has now. It begins, and
// so does its ramp, with the first request under the policy.
func (s *Service) state(p *cachepolicy.Policy) *policyState {
	v, ok := s.states.Load(p.String())
	if !ok {
		v, _ = s.states.LoadOrStore(p.String(), s.newState(p))
	}
	st := v.(*policyState)
	if st.applied.Load() != p && st.applied.Swap(p) != p {
		st.limiter.SetLimits(p.OriginLimits.MaxConcurrentFetches, p.OriginLimits.MaxQueue)
	}
	return st
}

func (s *Service) newState(p *cachepolicy.Policy) *policyState {
	l := refill.NewLimiter(p.OriginLimits.MaxConcurrentFetches, p.OriginLimits.MaxQueue,
		refill.NewRamp(s.opts.Ramp, time.Now()))
	st := &policyState{limiter: l, budget: refill.NewBudget(retriesPerSecond)}
	st.cold.Store(s.opts.Stamps.Position())
	return st
}

// limiter returns what admits the fetch of a request: leads, refills and
// followers that waited too long alike. If everything, or the request's
// namespace, policy or host, was invalidated since the ramp began, the cache is
// cold again and the ramp begins anew. That is seen when a covered fetch comes,
// so that an invalidation slows down those policies only that it is about.
func (s *Service) limiter(b *cachepolicy.Binding, req *httpcache.Request, now time.Time) *refill.Limiter {
	p := b.Policy
	st := s.state(p)
	since, position := st.cold.Load(), s.opts.Stamps.Position()
	if s.opts.Ramp.From > 0 && position > since && s.opts.Stamps.Check(fleet.Covered{
		Birth: since, Host: fleet.HostOf(uriOf(req)), Policy: p.String(), Namespace: b.Tenant(),
	}) != fleet.Valid && st.cold.CompareAndSwap(since, position) {
		st.limiter.Restart(now)
	}
	return st.limiter
}

// OriginStats are the fetches of one policy at one moment.
type OriginStats struct {
	Policy string // namespace/name
	refill.LimiterStats
}

// Origins returns the fetches of every policy under which there was one, by name.
func (s *Service) Origins() []OriginStats {
	var all []OriginStats
	for name, st := range s.states.Range {
		all = append(all, OriginStats{name.(string), st.(*policyState).limiter.Stats()})
	}
	slices.SortFunc(all, func(a, b OriginStats) int { return cmp.Compare(a.Policy, b.Policy) })
	return all
}

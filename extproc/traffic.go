package extproc

import (
	"sync"
	"sync/atomic"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/metrics"
)

// Traffic counts the requests of clients under one policy since the process began.
type Traffic struct {
	Requests    uint64
	Hits        uint64 // answered from the cache, stale ones too
	Stale       uint64 // of these, answered stale
	OriginSaved uint64 // hits, and followers that had their answer of another's fetch
}

// traffic counts by policy. The zero value is ready. Safe for concurrent use; to
// count takes no lock that others wait for.
type traffic struct {
	byPolicy sync.Map // *cachepolicy.Policy → *tally: as long as the policy is in use
	mu       sync.Mutex
	gone     map[string]Traffic // by name, of policies that were replaced
}

// tally is what is counted under one compiled policy.
type tally struct{ requests, hits, stale, coalesced atomic.Uint64 }

// count counts a request under its policy; nil: none applied.
func (t *traffic) count(p *cachepolicy.Policy, o metrics.Outcome) {
	if p == nil {
		return
	}
	v, ok := t.byPolicy.Load(p)
	if !ok {
		v, _ = t.byPolicy.LoadOrStore(p, &tally{})
	}
	c := v.(*tally)
	c.requests.Add(1)
	switch o {
	case metrics.OutcomeHit, metrics.OutcomeHitNegative:
		c.hits.Add(1)
	case metrics.OutcomeHitStale, metrics.OutcomeStaleIfError, metrics.OutcomeStaleSlow, metrics.OutcomeStaleOverflow:
		c.hits.Add(1)
		c.stale.Add(1)
	case metrics.OutcomeCoalesced:
		c.coalesced.Add(1)
	default:
	}
}

func (c *tally) add(to Traffic) Traffic {
	hits := c.hits.Load()
	to.Requests += c.requests.Load()
	to.Hits += hits
	to.Stale += c.stale.Load()
	to.OriginSaved += hits + c.coalesced.Load()
	return to
}

// Traffic returns what was counted, by policy (namespace/name), of the policies that
// are in the set. What was counted under others is forgotten, and with it what is
// still counted by streams that began under them.
func (s *Service) Traffic(set *cachepolicy.Set) map[string]Traffic {
	inUse := make(map[*cachepolicy.Policy]bool)
	names := make(map[string]bool)
	for p := range set.Policies() {
		inUse[p], names[p.String()] = true, true
	}
	return s.traffic.sum(inUse, names)
}

func (t *traffic) sum(inUse map[*cachepolicy.Policy]bool, names map[string]bool) map[string]Traffic {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make(map[string]Traffic)
	if t.gone == nil {
		t.gone = make(map[string]Traffic)
	}
	for key, v := range t.byPolicy.Range {
		p := key.(*cachepolicy.Policy)
		if !inUse[p] {
			t.byPolicy.Delete(p)
			t.gone[p.String()] = v.(*tally).add(t.gone[p.String()])
			continue
		}
		out[p.String()] = v.(*tally).add(out[p.String()])
	}
	for name, before := range t.gone {
		if !names[name] {
			delete(t.gone, name)
			continue
		}
		sum := out[name]
		sum.Requests += before.Requests
		sum.Hits += before.Hits
		sum.Stale += before.Stale
		sum.OriginSaved += before.OriginSaved
		out[name] = sum
	}
	return out
}

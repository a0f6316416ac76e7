package extproc

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/fleet"
	"github.com/weirproxy/weir/extproc/flight"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store"
)

// What this file does: who leads a flight of this process claims the fetch in the
// fleet before it goes to the origin. The lease it is granted is attached to the
// flight, so that it goes along when the fetch changes hands, and is given back
// when the flight ends without an answer for all. If another process fetches, the
// flight waits for that one, and with it all who follow here.

// maxClaims bounds how often one request claims, each time because more is known.
const maxClaims = 16

// awaited is the fetch of another process that a flight waits for; it is attached
// to the flight.
type awaited struct {
	fleet.Claimed
	vary httpcache.Vary // under which it was claimed
}

// claims reports whether fetches under a policy are claimed in the fleet.
func (s *Service) claims(p *cachepolicy.Policy) bool {
	return s.opts.Fleet != nil && fleet.Coalesces(p)
}

func (j *job) claim() fleet.Claim {
	p := j.binding.Policy
	return fleet.Claim{
		Key: &j.key, Vary: j.vary, Header: j.req.Header, Known: j.stored, Policy: p, URI: ResourceOf(&p.Key, &j.req),
		Namespace: j.binding.Tenant(),
	}
}

// knowsLess reports whether the fleet knows a resource to vary by less than this
// process does, which has seen the head of an answer that is not stored yet. One
// fetch is under way for all then, and is claimed as it was.
func knowsLess(fleets, own httpcache.Vary) bool {
	return len(fleets.Names) < len(own.Names) &&
		!slices.ContainsFunc(fleets.Names, func(name string) bool { return !slices.Contains(own.Names, name) })
}

// claim claims the fetch that this request leads. False: the request went on in
// another way.
func (s *session) claim(e *effect) bool {
	less := (*httpcache.Vary)(nil)
	for range maxClaims {
		c := s.ownJob().claim()
		if less != nil {
			c.Vary = *less
		}
		got := s.svc.opts.Fleet.Acquire(s.stream.Context(), c)
		switch got.State {
		case fleet.Granted:
			s.lead.Attach(got.Lease)
			return true
		case fleet.Found:
			if s.found(got.Entry) {
				return false
			}
		case fleet.Held:
			s.followFleet(e, awaited{got, c.Vary})
			return false
		case fleet.VaryChanged:
			if knowsLess(got.Vary, s.m.vary) {
				less = &got.Vary
				continue
			}
			s.svc.varies(s.lead, got.Vary)
			s.lead = nil
			s.m.rejoin(&store.Entry{Vary: got.Vary}, time.Now())
			return false
		case fleet.Apart:
			s.lead.Release(true, reasonUncacheableLately)
			s.lead = nil
			s.m.onJoin(flight.RoleSolo, time.Now())
			return false
		default:
			if !s.svc.opts.Shed {
				return true
			}
			s.lead.Fail(reasonFleetAway)
			s.lead = nil
			s.m.onShed(time.Now())
			return false
		}
	}
	return true
}

// found answers from what the fleet had. A stale copy does not end the need to
// fetch: it is what the next claim knows.
func (s *session) found(e *store.Entry) bool {
	now := time.Now()
	kept := s.svc.adopt(s.stream.Context(), s.m.policy, e, now)
	if !isFresh(kept, now) {
		s.m.stored, s.m.vary = kept, kept.Vary
		return false
	}
	s.lead.Serve(kept)
	s.lead = nil
	s.m.onLookup(s.svc.judge(&s.m, store.Result{Entry: kept, Vary: kept.Vary, Known: true}), now)
	return true
}

// followFleet makes this request a follower of its own flight, which from now on
// waits for the process that fetches.
func (s *session) followFleet(e *effect, held awaited) {
	lead := s.lead
	s.lead = nil
	lead.Attach(held)
	role, own, w := s.svc.flights.Join(e.id, s.m.req.Header, e.at, s.svc.limits(s.ownJob()), time.Now())
	s.lead, s.waiter = own, w
	lead.Abandon() // takeOver sees what is attached
	s.m.onJoin(role, time.Now())
}

// claimRefresh claims the refresh that this request would carry behind nobody's
// back. False: another process makes it, or it is made.
func (s *session) claimRefresh() bool {
	got := s.svc.opts.Fleet.Acquire(s.stream.Context(), s.ownJob().claim())
	switch got.State {
	case fleet.Granted:
		s.lead.Attach(got.Lease)
		return true
	case fleet.Unavailable:
		if !s.svc.opts.Shed {
			return true
		}
	case fleet.Found:
		s.svc.adopt(s.stream.Context(), s.m.policy, got.Entry, time.Now())
	default:
	}
	s.lead.Release(false, reasonNotShareable)
	s.lead = nil
	return false
}

// claimDetached claims the fetch of a flight that no request leads, and waits for
// another process if that one fetches. True: this process is to fetch. It knows of
// the job what the fleet had.
func (s *Service) claimDetached(ctx context.Context, lead *flight.Lead, j *job, held *awaited) bool {
	c := j.claim()
	if held != nil {
		c.Vary = held.vary
	}
	for range maxClaims {
		got, lease := s.waitOrClaim(ctx, c, held)
		held = nil
		switch got.State {
		case fleet.Granted:
			lead.Attach(lease)
			return true
		case fleet.Found:
			if s.foundDetached(ctx, lead, j, got.Entry) {
				return false
			}
			c.Known = j.stored
		case fleet.VaryChanged:
			if !slices.Equal(got.Vary.Names, j.vary.Names) && !knowsLess(got.Vary, j.vary) {
				s.varies(lead, got.Vary)
				return false
			}
			c.Vary = got.Vary
		case fleet.Apart:
			lead.Release(true, reasonNotShareable)
			return false
		case fleet.Failed:
			s.failed(lead.ID(), time.Now())
			lead.Fail(reasonRefillFailed)
			return false
		case fleet.Held: // nobody here wants it any more
			return false
		default:
			if s.opts.Shed {
				lead.Fail(reasonFleetAway)
			}
			return !s.opts.Shed
		}
	}
	return true
}

// waitOrClaim waits for another process, and claims when nobody fetches, until
// there is something to be done about it.
func (s *Service) waitOrClaim(ctx context.Context, c fleet.Claim, held *awaited) (fleet.Waited, *fleet.Lease) {
	for {
		if held != nil {
			if got := s.opts.Fleet.Wait(ctx, c, held.Claimed); got.State != fleet.Free {
				return got, nil
			}
		}
		claimed := s.opts.Fleet.Acquire(ctx, c)
		if claimed.State != fleet.Held {
			return fleet.Waited{State: claimed.State, Entry: claimed.Entry, Vary: claimed.Vary}, claimed.Lease
		}
		held = &awaited{claimed, c.Vary}
	}
}

// foundDetached ends a flight with what the fleet had, unless that is stale.
func (s *Service) foundDetached(ctx context.Context, lead *flight.Lead, j *job, e *store.Entry) bool {
	now := time.Now()
	kept := s.adopt(ctx, j.binding.Policy, e, now)
	switch {
	case kept.ValidateAlways:
		lead.Release(true, reasonNotShareable)
	case isFresh(kept, now), j.stored == nil:
		// Even if it was stale on arrival: it was fetched while they waited.
		lead.Serve(kept)
	default:
		j.stored = kept
		return false
	}
	s.backoff.Succeeded(string(lead.ID()))
	return true
}

// varies tells those who wait which fields select the variant: they join again.
func (s *Service) varies(lead *flight.Lead, v httpcache.Vary) {
	e := &store.Entry{Vary: v, Body: store.WholeBody(nil)}
	lead.Serve(e)
}

// adopt keeps in this process what the fleet had, as hits need it.
func (s *Service) adopt(ctx context.Context, p *cachepolicy.Policy, e *store.Entry, now time.Time) *store.Entry {
	kept := e
	if e.Wire == nil {
		kept = prepare(e)
	}
	if err := s.opts.Store.Put(ctx, kept, p.Storage.MaxVariants, now); err != nil {
		s.opts.Logger.Debug("An answer of the fleet was not kept", "uri", e.URI, "error", err)
	}
	return kept
}

// Prepare returns an entry that came from elsewhere as a process keeps it: with the
// bytes of its hits made, where they are one message.
func Prepare(e *store.Entry) *store.Entry { return prepare(e) }

// lease takes the lease from a flight whose end is near.
func lease(lead *flight.Lead) *fleet.Lease {
	l, _ := lead.Detach().(*fleet.Lease)
	return l
}

// release ends a flight whose answer cannot be shared, here and in the fleet.
func (s *Service) release(lead *flight.Lead, mark bool, reason httpcache.Reason) {
	how := fleet.Release
	if mark {
		how = fleet.Uncacheable
	}
	s.settle(lease(lead), how)
	lead.Release(mark, reason)
}

// fail ends a flight whose fetch failed, here and in the fleet.
func (s *Service) fail(lead *flight.Lead, reason httpcache.Reason) {
	s.failed(lead.ID(), time.Now())
	s.settle(lease(lead), fleet.FetchFailed)
	lead.Fail(reason)
}

// settle ends a lease without an answer for all; nil is none. Redis is not waited
// for.
func (s *Service) settle(l *fleet.Lease, how fleet.Settlement) {
	if l == nil {
		return
	}
	s.behind.do(func() {
		if err := s.opts.Fleet.Settle(s.behind.ctx, l, how); err != nil && !errors.Is(err, fleet.ErrOver) {
			s.opts.Logger.Debug("The fleet was not told how a fetch ended", "error", err)
		}
	})
}

// commit stores an answer for all, by the lease that its fetch had, or without one
// through the shared store. old is what a 304 was about. Redis is not waited for.
func (s *Service) commit(l *fleet.Lease, p *cachepolicy.Policy, e, old *store.Entry) {
	switch {
	case l != nil:
		s.behind.do(func() {
			kept, err := s.opts.Fleet.Commit(s.behind.ctx, l, e, old)
			if err != nil {
				s.opts.Logger.Debug("An answer was not stored for all", "uri", e.URI, "error", err)
				return
			}
			s.shared(e, kept)
		})
	case s.shares(p):
		s.behind.do(func() {
			if err := s.opts.Through.Put(s.behind.ctx, e, p.Storage.MaxVariants, time.Now()); err != nil {
				s.opts.Logger.Debug("An answer was not stored for all", "uri", e.URI, "error", err)
			}
		})
	}
}

// shares reports whether answers under a policy are for all processes.
func (s *Service) shares(p *cachepolicy.Policy) bool { return s.opts.Through != nil && fleet.Shares(p) }

// shared notes in this process where the fleet has an entry.
func (s *Service) shared(e, kept *store.Entry) {
	err := s.opts.Store.Update(s.behind.ctx, &e.Key, time.Now(), func(all []*store.Entry) []*store.Entry {
		out := make([]*store.Entry, len(all))
		for i, have := range all {
			out[i] = have
			if have.SameVariant(e) && have.ResponseTime.Equal(e.ResponseTime) {
				known := *have
				known.Shared = kept.Shared
				out[i] = &known
			}
		}
		return out
	})
	if err != nil {
		s.opts.Logger.Debug("A stored answer was not marked as shared", "uri", e.URI, "error", err)
	}
}

// dropLease gives back what a flight left behind.
func (s *Service) dropLease(v any) {
	if l, ok := v.(*fleet.Lease); ok {
		s.settle(l, fleet.Release)
	}
}

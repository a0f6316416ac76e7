package extproc

import (
	"context"
	"slices"
	"time"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/fleet"
	"github.com/weirproxy/weir/extproc/flight"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store"
)

// lookup asks the store, and the invalidations about what it has. What other
// processes may have is asked for here only by requests that will not claim it.
func (s *Service) lookup(ctx context.Context, m *machine) found {
	now := time.Now()
	if s.opts.Fleet != nil && !s.opts.Fleet.CaughtUp(now) {
		return found{} // invalidations may have been missed: nothing stored can be judged
	}
	r, err := s.opts.Store.Get(ctx, &m.key, m.req.Header, now)
	if err == nil && r.Entry == nil && s.shares(m.policy) && !s.willClaim(m) {
		r, err = s.opts.Through.Get(ctx, &m.key, m.req.Header, now)
	}
	if err != nil {
		s.opts.Logger.Debug("The store did not answer; treated as a miss", "error", err)
		return found{}
	}
	return s.judge(m, r)
}

// willClaim reports whether a miss of this request leads to a claim in the fleet.
func (s *Service) willClaim(m *machine) bool {
	return s.claims(m.policy) && m.holds() && !m.credentials
}

// judge looks at what is stored through the invalidations.
func (s *Service) judge(m *machine, r store.Result) found {
	f := found{Result: r}
	if r.Entry == nil {
		return f
	}
	switch s.opts.Stamps.Check(fleet.CoveredBy(r.Entry, m.binding.Tenant())) {
	case fleet.Refused:
		f.Entry, f.invalidated = nil, true
	case fleet.SoftStale:
		f.soft = true
	default:
	}
	now := time.Now()
	f.beta = s.beta(m.policy, &m.key, r.Entry, now)
	if f.soft || !isFresh(r.Entry, now) {
		f.failing = s.backoff.Waiting(string(flight.VariantID(&m.key, r.Vary.Names, r.Vary.Select(m.req.Header))), now)
	}
	return f
}

// refused reports whether a fetch that began at birth is too old for this
// request: an invalidation of its URI, host or policy came between.
func (s *Service) refused(j *job, birth uint64) bool {
	p := j.binding.Policy
	uri := ResourceOf(&p.Key, &j.req)
	return s.opts.Stamps.Check(fleet.Covered{
		Birth: birth, URI: uri, Host: fleet.HostOf(uri), Policy: p.String(), Namespace: j.binding.Tenant(),
	}) == fleet.Refused
}

// put stores an entry whose body is whole, and returns it as it is kept.
func (s *Service) put(ctx context.Context, e *store.Entry, maxVariants int, now time.Time) *store.Entry {
	kept := prepare(e)
	if err := s.opts.Store.Put(ctx, kept, maxVariants, now); err != nil {
		s.opts.Logger.Debug("An answer was not stored", "uri", e.URI, "error", err)
	}
	return kept
}

// freshening is what a validation, or a HEAD, brought.
type freshening struct {
	entry *store.Entry     // the stored answer, freshened
	old   *store.Entry     // the stored answer as it was
	came  httpcache.Fields // the fields that freshened it
	req   httpcache.Fields // of the request that asked
}

// freshened puts the freshened answer in the place of the stored one, and freshens
// every other that the validation was about. lead is the flight that the
// validation was made for, or nil.
func (s *Service) freshened(ctx context.Context, p *cachepolicy.Policy, f *freshening, lead *flight.Lead) {
	fresh := prepare(f.entry)
	s.update(ctx, fresh, func(all []*store.Entry) []*store.Entry {
		out := make([]*store.Entry, 0, len(all))
		for _, have := range all {
			switch {
			case have.SameVariant(f.old):
				out = append(out, fresh)
			case have.SameVariant(fresh): // older than what was just validated
			case f.concerns(have):
				out = append(out, prepare(f.apply(have)))
			default:
				out = append(out, have)
			}
		}
		return out
	})
	if lead == nil {
		return
	}
	l := lease(lead)
	if fresh.ValidateAlways {
		lead.Release(false, reasonNotShareable)
	} else {
		lead.Publish(fresh)
		lead.Finish()
	}
	if l != nil {
		s.commit(l, p, fresh, f.old)
	}
}

// update changes what is stored of a resource, in this process and, behind, for all.
func (s *Service) update(ctx context.Context, e *store.Entry, fn func([]*store.Entry) []*store.Entry) {
	if err := s.opts.Store.Update(ctx, &e.Key, time.Now(), fn); err != nil {
		s.opts.Logger.Debug("A stored answer was not changed", "uri", e.URI, "error", err)
	}
}

// concerns reports whether the validation was about another stored answer too: one
// that could have been chosen for the request and is the same representation, by
// its strong tag (RFC 9111 §4.3.4). Other variants keep what they have: the fields
// of a 304 may be those of its request alone (Access-Control-Allow-Origin).
func (f *freshening) concerns(have *store.Entry) bool {
	return !have.Vary.Any && httpcache.SameVariant(have.Vary.Names, have.VaryValues, f.req) &&
		httpcache.SameStrongTag(have.Header, f.old.Header)
}

// apply freshens another stored answer.
func (f *freshening) apply(have *store.Entry) *store.Entry {
	out, e := *have, f.entry
	out.Header = httpcache.Freshen(have.Header, f.came)
	if vary := httpcache.ParseVary(out.Header); vary.Any || !slices.Equal(vary.Names, have.Vary.Names) {
		out.Vary, out.VaryValues = vary, vary.Select(f.req)
	}
	out.ResponseTime, out.InitialAge, out.Lifetime = e.ResponseTime, e.InitialAge, e.Lifetime
	out.WhileRevalidate, out.IfError, out.ValidateAlways = e.WhileRevalidate, e.IfError, e.ValidateAlways
	return &out
}

// dropped takes a stored variant away, for all.
func (s *Service) dropped(ctx context.Context, e *store.Entry) {
	s.update(ctx, e, func(all []*store.Entry) []*store.Entry {
		return slices.DeleteFunc(slices.Clone(all), e.SameVariant)
	})
	if s.opts.Shared == nil || e.Shared.Token == 0 {
		return
	}
	s.behind.do(func() {
		err := s.opts.Shared.Update(s.behind.ctx, &e.Key, time.Now(), func(all []*store.Entry) []*store.Entry {
			return slices.DeleteFunc(slices.Clone(all), func(have *store.Entry) bool {
				return e.SameVariant(have) && have.Shared.Token <= e.Shared.Token // not what another has fetched since
			})
		})
		if err != nil {
			s.opts.Logger.Debug("A stored answer was not dropped for all", "uri", e.URI, "error", err)
		}
	})
}

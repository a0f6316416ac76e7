package extproc

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/fleet"
	"github.com/weirproxy/weir/extproc/flight"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store"
)

// lookup asks the store, and the invalidations about what it has.
func (s *Service) lookup(ctx context.Context, m *machine) found {
	r, err := s.opts.Store.Get(ctx, &m.key, m.req.Header, time.Now())
	if err != nil {
		s.opts.Logger.Debug("The store did not answer; treated as a miss", "error", err)
		return found{}
	}
	f := found{Result: r}
	if r.Entry == nil {
		return f
	}
	switch s.opts.Stamps.Check(coveredEntry(m.policy, r.Entry)) {
	case fleet.Refused:
		f.Entry = nil
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

func coveredEntry(p *cachepolicy.Policy, e *store.Entry) fleet.Covered {
	return fleet.Covered{
		Birth: e.Birth, URI: e.URI, Host: hostOf(e.URI), Policy: e.Policy, Namespace: p.Namespace, Tags: e.Tags,
	}
}

// hostOf returns the authority of a URI as entries carry it.
func hostOf(uri string) string {
	_, rest, _ := strings.Cut(uri, "://")
	host, _, _ := strings.Cut(rest, "/")
	return host
}

// refused reports whether a fetch that began at birth is too old for this
// request: an invalidation of its URI, host or policy came between.
func (s *Service) refused(j *job, birth uint64) bool {
	if birth >= s.opts.Stamps.Position() {
		return false
	}
	p := j.binding.Policy
	uri := ResourceOf(&p.Key, &j.req)
	return s.opts.Stamps.Check(fleet.Covered{
		Birth: birth, URI: uri, Host: hostOf(uri), Policy: p.String(), Namespace: p.Namespace,
	}) == fleet.Refused
}

// put stores an entry whose body is whole.
func (s *Service) put(ctx context.Context, e *store.Entry, maxVariants int, now time.Time) {
	if err := s.opts.Store.Put(ctx, prepare(e), maxVariants, now); err != nil {
		s.opts.Logger.Debug("An answer was not stored", "uri", e.URI, "error", err)
	}
}

// freshened puts e in the place of the stored variant it came from, and freshens
// every other variant that the validation was about (RFC 9111 §4.3.4).
func (s *Service) freshened(ctx context.Context, e *store.Entry, lead *flight.Lead, now time.Time) {
	fresh := prepare(e)
	err := s.opts.Store.Update(ctx, &e.Key, now, func(all []*store.Entry) []*store.Entry {
		out := make([]*store.Entry, 0, len(all))
		for _, old := range all {
			switch {
			case old.SameVariant(fresh):
				out = append(out, fresh)
			case httpcache.Identifies(old.Header, e.Header) && old.Header.Has("etag"):
				out = append(out, prepare(freshenedLike(old, e)))
			default:
				out = append(out, old)
			}
		}
		return out
	})
	if err != nil {
		s.opts.Logger.Debug("A freshened answer was not stored", "uri", e.URI, "error", err)
	}
	if lead != nil {
		if fresh.ValidateAlways {
			lead.Release(false, reasonNotShareable)
			return
		}
		lead.Publish(fresh)
		lead.Finish()
	}
}

// freshenedLike gives another variant of the same resource, which the same 304
// identified, the new life of e.
func freshenedLike(old, e *store.Entry) *store.Entry {
	out := *old
	out.Header = httpcache.Freshen(old.Header, e.Header)
	out.ResponseTime, out.InitialAge, out.Lifetime = e.ResponseTime, e.InitialAge, e.Lifetime
	out.WhileRevalidate, out.IfError, out.ValidateAlways = e.WhileRevalidate, e.IfError, e.ValidateAlways
	return &out
}

// dropped takes a stored variant away.
func (s *Service) dropped(ctx context.Context, e *store.Entry, now time.Time) {
	err := s.opts.Store.Update(ctx, &e.Key, now, func(all []*store.Entry) []*store.Entry {
		return slices.DeleteFunc(slices.Clone(all), e.SameVariant)
	})
	if err != nil {
		s.opts.Logger.Debug("A stored answer was not dropped", "uri", e.URI, "error", err)
	}
}

// invalidated stamps what an unsafe request made invalid (RFC 9111 §4.4).
func (s *Service) invalidated(targets []httpcache.Target, namespace string, now time.Time) {
	for _, t := range targets {
		s.InvalidateURL(namespace, t, fleet.Hard, now)
	}
}

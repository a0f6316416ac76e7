package extproc

import (
	"context"
	"time"

	"github.com/weirproxy/weir/extproc/fleet"
	"github.com/weirproxy/weir/extproc/httpcache"
)

// Invalidate invalidates for the fleet, and says how far that came; in a process
// that is alone, for this one. Whatever the error, this process serves nothing that
// is covered and was fetched before.
func (s *Service) Invalidate(ctx context.Context, list ...fleet.Invalidation) (fleet.Receipt, error) {
	s.policies() // whose rules say in which forms URLs are known
	if s.opts.Fleet != nil {
		return s.opts.Fleet.Invalidate(ctx, list...)
	}
	return s.invalidateHere(list), nil
}

// invalidated stamps what an unsafe request made invalid (RFC 9111 §4.4). All
// replicas have it before the client hears that the request succeeded, as far as
// they answer soon; if Redis is away, this process holds the invalidation and the
// others are told later.
func (s *Service) invalidated(ctx context.Context, targets []httpcache.Target, namespace string) {
	list := make([]fleet.Invalidation, len(targets))
	for i, t := range targets {
		list[i] = fleet.Invalidation{Kind: fleet.ByURL, Namespace: namespace, Value: t.String(), Mode: fleet.Hard}
	}
	if s.opts.Fleet == nil {
		s.invalidateHere(list)
		return
	}
	r, err := s.opts.Fleet.Announce(ctx, list...)
	switch {
	case err != nil:
		s.opts.Logger.Debug("Not known whether the fleet has heard of an invalidation", "error", err)
	case r.Confirmed < r.Replicas:
		s.opts.Logger.Debug("Not all replicas have heard of an invalidation yet", "silent", r.Silent)
	}
}

// invalidateHere stamps in this process.
func (s *Service) invalidateHere(list []fleet.Invalidation) fleet.Receipt {
	r, now := fleet.Receipt{Replicas: 1, Confirmed: 1}, time.Now()
	for i := range list {
		r.Position = s.opts.Stamps.Add(list[i].Kind, list[i].Namespace, list[i].Value, list[i].Mode, now)
	}
	return r
}

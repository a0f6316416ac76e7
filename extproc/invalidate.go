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
	if s.opts.Fleet != nil {
		return s.opts.Fleet.Invalidate(ctx, list...)
	}
	return s.invalidateHere(list), nil
}

// InvalidateURL is Invalidate for a URL in a namespace, empty for all, in each form
// in which a policy there may know it: without the query parameters that are in no
// key. It returns what it has invalidated.
func (s *Service) InvalidateURL(
	ctx context.Context, namespace string, t httpcache.Target, mode fleet.Mode,
) (list []fleet.Invalidation, r fleet.Receipt, err error) {
	r, err = s.invalidateTargets(namespace, []httpcache.Target{t}, mode,
		func(forms []fleet.Invalidation) (fleet.Receipt, error) {
			list = forms
			return s.Invalidate(ctx, forms...)
		})
	return list, r, err
}

// invalidated stamps what an unsafe request made invalid (RFC 9111 §4.4). All
// replicas have it before the client hears that the request succeeded, as far as
// they answer soon; if Redis is away, this process holds the invalidation and the
// others are told later.
func (s *Service) invalidated(ctx context.Context, targets []httpcache.Target, namespace string) {
	r, err := s.invalidateTargets(namespace, targets, fleet.Hard,
		func(list []fleet.Invalidation) (fleet.Receipt, error) {
			if s.opts.Fleet == nil {
				return s.invalidateHere(list), nil
			}
			return s.opts.Fleet.Announce(ctx, list...)
		})
	switch {
	case err != nil:
		s.opts.Logger.Debug("Not known whether the fleet has heard of an invalidation", "error", err)
	case r.Confirmed < r.Replicas:
		s.opts.Logger.Debug("Not all replicas have heard of an invalidation yet", "silent", r.Silent)
	}
}

// maxRounds bounds how often targets are stamped again since policies changed.
const maxRounds = 3

// invalidateTargets stamps targets in each form that a policy may know them by. If
// the policies change meanwhile it does so again: what is stored by rules that come
// later than that was fetched later.
func (s *Service) invalidateTargets(
	namespace string, targets []httpcache.Target, mode fleet.Mode,
	stamp func([]fleet.Invalidation) (fleet.Receipt, error),
) (r fleet.Receipt, err error) {
	for range maxRounds {
		set := s.policies()
		var list []fleet.Invalidation
		for _, t := range targets {
			for _, uri := range s.resources.forms(namespace, t) {
				list = append(list, fleet.Invalidation{Kind: fleet.ByURL, Namespace: namespace, Value: uri, Mode: mode})
			}
		}
		r, err = stamp(list)
		if s.opts.Policies() == set {
			break
		}
	}
	return r, err
}

// invalidateHere stamps in this process.
func (s *Service) invalidateHere(list []fleet.Invalidation) fleet.Receipt {
	r, now := fleet.Receipt{Replicas: 1, Confirmed: 1}, time.Now()
	for i := range list {
		r.Position = s.opts.Stamps.Add(list[i].Kind, list[i].Namespace, list[i].Value, list[i].Mode, now)
	}
	return r
}

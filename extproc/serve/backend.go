package serve

import (
	"context"
	"time"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc"
	"github.com/weirproxy/weir/extproc/admin"
	"github.com/weirproxy/weir/extproc/fleet"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/metrics"
	"github.com/weirproxy/weir/extproc/store/memory"
	"github.com/weirproxy/weir/extproc/warm"
)

const (
	// maxListed bounds the policies that one status lists.
	maxListed = 1000
	// maxScanned bounds the entries that one page of a filtered listing looks at.
	maxScanned = 100_000
)

// backend answers the admin API from the parts of the process.
type backend struct {
	environment
	service  *extproc.Service
	store    *memory.Memory
	stamps   *fleet.Stamps
	policies *policies
	warmer   *warm.Warmer
	fleet    *membership // nil: this process is alone
}

// sources are what metrics are read from.
func (b *backend) sources() metrics.Sources {
	return metrics.Sources{
		Store: func() metrics.StoreStats {
			s := b.store.Stats()
			m := metrics.StoreStats{Bytes: s.Bytes, Limit: s.Limit, Entries: int64(s.Entries), Rejected: s.Rejected}
			m.Evicted[metrics.EvictCapacity], m.Evicted[metrics.EvictExpired] = s.Evicted.Capacity, s.Evicted.Expired
			m.Evicted[metrics.EvictReplaced], m.Evicted[metrics.EvictVariants] = s.Evicted.Replaced, s.Evicted.Variants
			m.Evicted[metrics.EvictDeleted] = s.Evicted.Deleted
			return m
		},
		Flights: func() metrics.FlightStats {
			s := b.service.Stats()
			f := metrics.FlightStats{Flights: s.Flights, Marks: s.Marks, Refills: s.Refills}
			for _, o := range b.service.Origins() {
				f.Running, f.Queued, f.Refused = f.Running+o.Running, f.Queued+o.Queued, f.Refused+o.Refused
				if o.Rate > 0 {
					f.Ramps++
				}
			}
			return f
		},
		Policies: func() metrics.PolicyStats {
			if b.policies.feed != nil {
				s := b.policies.feed.Status()
				return metrics.PolicyStats{Policies: b.policies.set.Load().Len(), Generation: s.Updates, Errors: s.Rejected,
					LoadedAt: s.UpdatedAt}
			}
			s := b.policies.watcher.Status()
			return metrics.PolicyStats{Policies: s.Policies, Generation: s.Generation, Failures: s.Failures,
				Errors: len(s.Errors), LoadedAt: s.LoadedAt}
		},
	}
}

// Status implements [admin.Backend].
func (b *backend) Status() admin.Status {
	flights, entries := b.service.Stats(), b.sources().Store()
	s := admin.Status{
		Version: b.build.Version, StartTime: b.started, State: b.ready.state(),
		Policies: b.policyStatus(),
		Streams:  b.metrics.Streams(), Waiting: b.metrics.Waiting(),
		Flights: admin.FlightCount{Flights: flights.Flights, Waiters: flights.Waiters, Marks: flights.Marks},
		Store: admin.StoreStatus{Bytes: entries.Bytes, LimitBytes: entries.Limit, Entries: entries.Entries,
			Evictions: map[string]uint64{}, Rejected: entries.Rejected},
		Refills: admin.Refills{Address: b.cfg.RefillAddress, Entrances: len(b.policies.set.Load().Entrances()),
			Running: flights.Refills},
		Origins: b.origins(), Warm: b.warmer.Jobs(), HotKeys: b.service.Popularity().Len(),
		Invalidations: b.stamps.Stats(), Fleet: b.fleet.status(),
		Limits: admin.Limits{MemoryBytes: b.memory.store, GoMemoryBytes: b.memory.goSoft,
			EnvoyMessageTimeout:    b.cfg.EnvoyMessageTimeout.String(),
			EnvoyMaxMessageTimeout: b.cfg.EnvoyMaxMessageTimeout.String()},
	}
	for reason, n := range entries.Evicted {
		s.Store.Evictions[metrics.EvictReason(reason).String()] = n
	}
	return s
}

func (b *backend) policyStatus() admin.PolicyStatus {
	var s admin.PolicyStatus
	if b.policies.feed != nil {
		s = b.feedStatus()
	} else {
		w := b.policies.watcher.Status()
		s = admin.PolicyStatus{
			Directory: w.Dir, Generation: w.Generation, LoadedAt: w.LoadedAt, Count: w.Policies, Errors: w.Errors,
		}
	}
	s.InUse = []admin.Policy{}
	for bound := range b.policies.set.Load().Bindings() {
		if len(s.InUse) == maxListed {
			break
		}
		s.InUse = append(s.InUse, admin.Policy{
			Name: bound.Policy.String(), Mode: string(bound.Policy.Mode), Route: bound.Route, Scope: bound.Scope,
			Layers: bound.Policy.Layers,
		})
	}
	return s
}

// Explain implements [admin.Backend].
func (b *backend) Explain(ctx context.Context, r admin.ExplainRequest) (any, error) {
	set, req := b.policies.set.Load(), r.Request()
	var binding *cachepolicy.Binding
	if set.Fed() && r.Policy == "" && r.Route == "" {
		binding = set.Match(matchOf(&req))
	} else {
		var err error
		if binding, err = admin.FindPolicy(set, r.Policy, r.Route); err != nil {
			return nil, err
		}
	}
	return b.service.Explain(ctx, &extproc.Question{Binding: binding, Request: req, Response: r.Response},
		time.Now()), nil
}

// matchOf is a request as the rules of routes match it.
func matchOf(req *httpcache.Request) *cachepolicy.MatchInput {
	return &cachepolicy.MatchInput{
		Authority: req.Authority, Method: req.Method, Path: req.Path, Header: req.Header.Joined,
	}
}

// Entries implements [admin.Backend].
func (b *backend) Entries(ctx context.Context, r admin.EntriesRequest) (admin.EntriesPage, error) {
	now, page := time.Now(), admin.EntriesPage{Entries: []admin.Entry{}, Next: r.After}
	for scanned := 0; ; {
		entries, next, err := b.store.Page(page.Next, r.Limit-len(page.Entries))
		if err != nil {
			return page, admin.BadRequest("give what next said", "after %q: %s", r.After, err)
		}
		for _, e := range entries {
			if listed(e, &r) {
				page.Entries = append(page.Entries, describe(e, now))
			}
		}
		page.Next, scanned = next, scanned+len(entries)
		if next == "" || len(page.Entries) >= r.Limit || scanned >= maxScanned {
			return page, ctx.Err()
		}
	}
}

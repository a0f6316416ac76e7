package extproc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/flight"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/metrics"
	"github.com/weirproxy/weir/extproc/refill"
	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/warm"
	"github.com/weirproxy/weir/extproc/wire"
)

// Warm loads the answer to a request into the cache, unless it is there and fresh.
// The stream machine, the one that decides about real requests, is asked what the
// key is; the fetch is a refill. So what is stored is what a request would have
// stored. It waits for its turn at the origin like other fetches, and for the end
// of the fetch.
func (s *Service) Warm(ctx context.Context, b *cachepolicy.Binding, req *httpcache.Request) warm.Outcome {
	now := time.Now()
	m := s.asked(b, req, now)
	switch {
	case m.state != stateLookup:
		return warm.Outcome{Result: warm.Failed, Reason: "a request like this passes the cache by: " + passReason(&m)}
	case m.credentials, req.Header.Has("authorization"):
		return warm.Outcome{Result: warm.Failed, Reason: "what is fetched for everybody carries no credentials"}
	case req.Header.Has("range"):
		return warm.Outcome{Result: warm.Failed, Reason: "the whole is stored, not a range"}
	case !m.refillable():
		return warm.Outcome{Result: warm.Failed, Reason: "no detached fetch is possible for the scheme " + req.Scheme}
	}
	f := s.lookup(ctx, &m)
	m.vary, m.stored = f.Vary, f.Entry
	if f.Entry != nil && !f.soft && isFresh(f.Entry, now) {
		return warm.Outcome{Result: warm.Skipped}
	}
	return s.load(ctx, &m)
}

// asked is a machine that was asked for an answer by nobody.
func (s *Service) asked(b *cachepolicy.Binding, req *httpcache.Request, now time.Time) machine {
	m := machine{facts: &s.facts, binding: b}
	m.onRequestHeaders(&wire.Message{
		Kind: wire.KindRequestHeaders, EndOfStream: true, Method: req.Method, Scheme: req.Scheme,
		Authority: req.Authority, Path: req.Path, Header: req.Header,
	}, now)
	return m
}

// LoadShared keeps here what the fleet has stored for a request, and returns it; nil
// if there is nothing, or the request is none that the cache answers. Nobody is
// asked but the shared store.
func (s *Service) LoadShared(ctx context.Context, b *cachepolicy.Binding, req *httpcache.Request) *store.Entry {
	now := time.Now()
	m := s.asked(b, req, now)
	if m.state != stateLookup || m.credentials || !s.shares(m.policy) {
		return nil
	}
	r, err := s.opts.Through.Get(ctx, &m.key, req.Header, now)
	if err != nil {
		return nil
	}
	return s.judge(&m, r).Entry
}

// load fetches for a machine that knows what is stored. If somebody else fetches
// the same it waits for that: the answer may turn out to be another variant's.
func (s *Service) load(ctx context.Context, m *machine) warm.Outcome {
	for range maxRejoins + 1 {
		if lead, won := s.flights.TryLead(m.flightID(), time.Now()); won {
			return s.fetchWarm(ctx, m, lead)
		}
		deadline := time.Now().Add(maxRefillWait)
		_, lead, w := s.flights.Join(m.flightID(), m.req.Header, deadline, s.limits(m.job()), time.Now())
		switch {
		case lead != nil:
			return s.fetchWarm(ctx, m, lead)
		case w == nil:
			return warm.Outcome{Result: warm.Failed, Reason: "too many wait for the same", Retry: true}
		}
		n, err := await(ctx, w, deadline)
		switch {
		case err != nil:
			return warm.Outcome{Result: warm.Failed, Reason: err.Error()}
		case n.Lead != nil:
			return s.fetchWarm(ctx, m, n.Lead)
		case n.Kind == flight.NewsAnswer:
			return warm.Outcome{Result: warm.Skipped}
		case n.Kind == flight.NewsRejoin:
			m.vary = n.Entry.Vary
		default:
			return warm.Outcome{Result: warm.Failed, Reason: "the fetch it followed: " + string(n.Reason), Retry: true}
		}
	}
	return warm.Outcome{Result: warm.Failed, Reason: "Vary changes all the time"}
}

// await waits for the news of a flight, and leaves it.
func await(ctx context.Context, w *flight.Waiter, deadline time.Time) (flight.News, error) {
	defer w.Leave()
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	select {
	case n := <-w.C():
		return n, nil
	case <-ctx.Done():
		return flight.News{}, context.Cause(ctx)
	}
}

// fetchWarm makes the fetch of a warm-up that owns lead.
func (s *Service) fetchWarm(ctx context.Context, m *machine, lead *flight.Lead) warm.Outcome {
	s.refills.Add(1)
	defer s.refills.Add(-1)
	defer lead.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.behind.ctx, cancel)()
	if f := s.newer(ctx, m); f.Entry != nil {
		lead.Serve(f.Entry)
		return warm.Outcome{Result: warm.Skipped}
	}
	j := m.job().detached()
	if s.unclaimed(lead, j) && !s.claimDetached(ctx, lead, j, nil) {
		return warm.Outcome{Result: warm.Skipped} // another process fetches, or has fetched
	}
	slot, err := s.admitRefill(ctx, j)
	if err != nil {
		s.opts.Metrics.Refill(metrics.RefillDropped)
		lead.Fail(reasonOverflow)
		return warm.Outcome{Result: warm.Failed, Reason: "originLimits: " + err.Error(), Retry: true}
	}
	defer slot.Release()
	return s.runRefill(ctx, lead, j, nil).outcome()
}

// outcome says how the fetch of a warm-up went.
func (k *sink) outcome() warm.Outcome {
	switch k.result {
	case metrics.RefillStored, metrics.RefillNotModified:
		if k.status >= 400 {
			return warm.Outcome{Result: warm.Failed, Reason: fmt.Sprintf("status %d, kept by negativeTTL", k.status)}
		}
		return warm.Outcome{Result: warm.Stored}
	case metrics.RefillUncacheable:
		reason := fmt.Sprintf("status %d: %s", k.status, k.reason)
		if errors.Is(k.err, errNotWanted) {
			reason = "larger than storage.maxObjectSize"
		}
		return warm.Outcome{Result: warm.Uncacheable, Reason: reason}
	}
	if k.status != 0 {
		return warm.Outcome{Result: warm.Failed, Reason: fmt.Sprintf("status %d", k.status), Retry: isFetchError(k.status)}
	}
	return warm.Outcome{Result: warm.Failed, Reason: k.err.Error(), Retry: errors.Is(k.err, refill.ErrUnreachable)}
}

package extproc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/fleet"
	"github.com/weirproxy/weir/extproc/flight"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/metrics"
	"github.com/weirproxy/weir/extproc/refill"
	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/wire"
)

// tryRefresh wins the right to refresh a key, unless somebody fetches it already or
// it failed lately.
func (s *Service) tryRefresh(id flight.ID, j *job) (*flight.Lead, bool) {
	now := time.Now()
	if !s.backoff.Try(string(id), s.state(j.binding.Policy).budget, now) {
		return nil, false
	}
	return s.flights.TryLead(id, now)
}

// failed notes that the fetch of id failed: the next one has to wait.
func (s *Service) failed(id flight.ID, now time.Time) {
	s.backoff.Failed(string(id), 1-s.facts.draw(), now)
}

// takeOver finds an owner for a flight whose leader went away: a detached fetch,
// or, if another process fetches, one that waits for it.
func (s *Service) takeOver(f *flight.Flight) bool {
	j, ok := f.Owner().(*job)
	if !ok || s.behind.ctx.Err() != nil {
		return false
	}
	lead := f.Lead()
	if held, ok := lead.Attached().(awaited); ok {
		lead.Detach()
		s.startRefill(lead, j, nil, &held)
		return true
	}
	if !s.facts.refill(j.binding, &j.req) {
		return false
	}
	s.startRefill(lead, j, f.Entry(), nil)
	return true
}

// startRefill runs a detached fetch that owns lead. resume is the answer whose
// body it is to go on with, held the fetch of another process to wait for first.
func (s *Service) startRefill(lead *flight.Lead, j *job, resume *store.Entry, held *awaited) {
	started := s.behind.do(func() {
		s.refills.Add(1)
		defer s.refills.Add(-1)
		defer lead.Close()
		ctx, cancel := context.WithCancel(s.behind.ctx)
		defer cancel()
		if unwanted := lead.Unwanted(); unwanted != nil {
			go func() {
				select {
				case <-unwanted:
					cancel()
				case <-ctx.Done():
				}
			}()
		}
		own := j.detached()
		if resume == nil && s.unclaimed(lead, own) && !s.claimDetached(ctx, lead, own, held) {
			return
		}
		if !s.facts.refill(j.binding, &j.req) {
			lead.Abandon() // one of those who wait is to fetch
			return
		}
		s.refill(ctx, lead, own, resume)
	})
	if !started {
		lead.Close()
	}
}

// unclaimed reports whether a detached fetch has yet to be claimed in the fleet.
func (s *Service) unclaimed(lead *flight.Lead, j *job) bool {
	return !j.alone && lead.Attached() == nil && s.claims(j.binding.Policy)
}

// refill waits for a turn at the origin and fetches.
func (s *Service) refill(ctx context.Context, lead *flight.Lead, j *job, resume *store.Entry) {
	slot, err := s.admitRefill(ctx, j)
	if err != nil {
		s.opts.Metrics.Refill(metrics.RefillDropped)
		lead.Fail(reasonOverflow)
		return
	}
	defer slot.Release()
	s.runRefill(ctx, lead, j, resume)
}

// maxRefillWait bounds how long a detached fetch waits for its turn.
const maxRefillWait = 30 * time.Second

// admitRefill waits for a turn at the origin.
func (s *Service) admitRefill(ctx context.Context, j *job) (*refill.Slot, error) {
	ctx, cancel := context.WithTimeout(ctx, maxRefillWait)
	defer cancel()
	now := time.Now()
	return s.limiter(j.binding, &j.req, now).Acquire(ctx, s.rate(&j.key, now))
}

// runRefill makes one detached fetch and stores what it brings. The sink tells how
// it went.
func (s *Service) runRefill(ctx context.Context, lead *flight.Lead, j *job, resume *store.Entry) *sink {
	k := &sink{svc: s, ctx: ctx, lead: lead, job: j, resume: resume, birth: s.opts.Stamps.Position()}
	req := refill.Request{
		Method: "GET", Scheme: j.req.Scheme, Authority: j.req.Authority, Path: j.req.Path,
		Header: j.req.Header, Cookies: j.binding.Policy.Key.Cookies,
	}
	if resume == nil && j.stored != nil {
		req.Validators = httpcache.Validators(j.stored.Header)
		k.validators = req.Validators
	}
	k.asked = time.Now()
	if k.fetcher = s.fetcher(j.binding, &j.req); k.fetcher == nil {
		k.end(errNoEntrance)
		return k
	}
	k.end(k.fetcher.Do(ctx, req, k))
	return k
}

// sink takes a detached fetch's answer in.
type sink struct {
	svc        *Service
	ctx        context.Context
	lead       *flight.Lead
	job        *job
	fetcher    *refill.Fetcher
	resume     *store.Entry
	validators httpcache.Fields
	asked      time.Time
	birth      uint64
	fill       fill
	filling    bool // fill counts how the fetch ends
	result     metrics.RefillResult
	settled    bool // the answer's head decided everything
	status     int  // of the answer; 0: none came
	reason     httpcache.Reason
	err        error
}

// Headers decides about the answer; true asks for its body.
func (k *sink) Headers(status int, fields httpcache.Fields, at time.Time) bool {
	resp := httpcache.Response{Status: status, Header: fields}
	f := &fetched{
		binding: k.job.binding, key: &k.job.key, req: &k.job.req, rules: &k.job.rules, resp: &resp,
		unreachable: k.fetcher.MadeByEnvoy(status, fields),
		stored:      k.job.stored, asked: k.asked, now: at, birth: k.birth, draw: k.svc.facts.draw(),
	}
	if !f.unreachable {
		k.svc.opts.Metrics.Fetched(at.Sub(k.asked))
	}
	k.status = status
	if k.resume != nil && k.lead.Resume(status, fields) {
		k.filling = true
		k.fill.resume(k.svc, k.lead, k.job, k.resume)
		return true
	}
	if k.validators != nil && status == 304 {
		k.notModified(f, at)
		return false
	}
	a := admit(f)
	if a.entry != nil && refill.NeverStored(status) {
		a.entry, a.reason = nil, reasonRefillStatus
	}
	k.reason = a.reason
	switch {
	case a.failed && (a.entry == nil || f.stored != nil && staleIfErrorAllowed(f.stored, at)):
		k.settled, k.result = true, metrics.RefillFailed
		k.svc.fail(k.lead, a.reason)
	case a.entry != nil:
		k.filling = true
		k.fill.begin(k.svc, k.lead, k.job, a.entry, a.share, a.reason)
		return true
	default:
		return k.uncacheable(f, &a)
	}
	return false
}

// uncacheable: the answer may not be kept. A stale copy is not served any longer
// then, since no refresh would ever replace it; a fresh one lives its life out.
// One of those who wait may have the answer; true asks for its body.
func (k *sink) uncacheable(f *fetched, a *admission) bool {
	if f.stored != nil {
		if a.drop || !isFresh(f.stored, f.now) {
			k.svc.dropped(k.ctx, f.stored)
		} else {
			k.svc.failed(k.lead.ID(), f.now)
		}
	}
	k.settled, k.result = true, metrics.RefillUncacheable
	n := contentLength(f.resp.Header)
	if n < 0 || n > f.binding.Policy.Storage.MaxObjectSize || f.resp.Header.Has("set-cookie") {
		k.svc.release(k.lead, true, a.reason)
		return false
	}
	v := httpcache.StoreVerdict{}
	e := newEntry(f, &v, cachepolicy.Lifetime{})
	if slices.ContainsFunc(e.Header, unsendable) {
		k.svc.release(k.lead, true, a.reason)
		return false
	}
	k.svc.settle(lease(k.lead), fleet.Uncacheable)
	wanted := k.lead.ReleaseButOne(e, true, a.reason, func(req httpcache.Fields) bool {
		return !req.Has("authorization") && !req.Has("cookie") &&
			(e.Vary.Any || httpcache.SameVariant(e.Vary.Names, e.VaryValues, req))
	})
	if wanted == nil {
		return false
	}
	k.fill.give(k.svc, k.lead, k.job, e, wanted)
	return true
}

// notModified freshens what is stored. A 304 that is about something else makes
// the next fetch unconditional.
func (k *sink) notModified(f *fetched, at time.Time) {
	k.settled, k.result = true, metrics.RefillNotModified
	if httpcache.Validated(f.stored.Header, k.validators, f.resp.Header) {
		fresh, forbidden := freshen(f)
		if forbidden != "" {
			k.result, k.reason = metrics.RefillUncacheable, forbidden
			k.svc.dropped(k.ctx, f.stored)
			k.svc.release(k.lead, true, forbidden)
			return
		}
		k.job.told.validated.Store(true)
		k.svc.freshened(k.ctx, k.job.binding.Policy, &freshening{
			entry: fresh, old: f.stored, came: updates(f.resp, at), req: k.job.req.Header,
		}, k.lead)
		return
	}
	k.result, k.reason = metrics.RefillFailed, reasonForeign304
	k.svc.dropped(k.ctx, f.stored)
	k.svc.fail(k.lead, reasonForeign304)
}

// errNoEntrance says that the way back into Envoy went away.
var errNoEntrance = fmt.Errorf("%w: there is no entrance any more", refill.ErrUnreachable)

// fetcher returns what makes detached fetches of a request; nil: none are possible.
// Under a controller its word counts alone: a route without an entrance may be one
// behind authentication.
func (s *Service) fetcher(b *cachepolicy.Binding, req *httpcache.Request) *refill.Fetcher {
	switch {
	case b.Fed && s.opts.Entrances != nil:
		return s.opts.Entrances.For(b.Entrances, req.Scheme, req.Authority)
	case !b.Fed && s.opts.Fetcher != nil && s.opts.Fetcher.Possible(req.Scheme):
		return s.opts.Fetcher
	}
	return nil
}

// Body takes a chunk; an error stops the fetch.
func (k *sink) Body(p []byte) error {
	if !k.fill.append(p, time.Now()) {
		return errNotWanted
	}
	return nil
}

var errNotWanted = errors.New("nothing more is wanted of this answer")

// end closes the fetch: nil means that the body was whole.
func (k *sink) end(err error) {
	k.err = err
	switch {
	case err == nil:
		k.fill.commit(k.ctx, time.Now())
		if !k.settled {
			k.result = metrics.RefillStored
		}
	case k.settled:
		k.fill.abandon()
	case errors.Is(err, errNotWanted):
		k.result = metrics.RefillUncacheable
	default:
		k.result = metrics.RefillFailed
		k.svc.opts.Logger.Debug("A detached fetch failed", "uri", uriOf(&k.job.req), "error", err)
		k.fill.abandon()
		k.svc.fail(k.lead, reasonRefillFailed)
	}
	switch k.result {
	case metrics.RefillStored, metrics.RefillNotModified:
		k.svc.backoff.Succeeded(string(k.lead.ID()))
	default:
	}
	k.svc.opts.Metrics.Refill(k.result)
	if !k.filling {
		k.svc.opts.Metrics.Fill(k.fillResult())
	}
}

// fillResult is how a fetch ended of which no body was to be stored.
func (k *sink) fillResult() metrics.FillResult {
	switch k.result {
	case metrics.RefillNotModified:
		return metrics.FillNotModified
	case metrics.RefillUncacheable:
		return metrics.FillUncacheable
	default:
		return metrics.FillFailed
	}
}

// refilled reports whether a request is one of our own detached fetches, coming
// through the same listener.
func (s *Service) refilled(msg *wire.Message) bool {
	token := msg.Header.Get(refill.TokenHeader)
	return token != "" && s.opts.Tokens != nil &&
		s.opts.Tokens.Verify(token, msg.Method, msg.Authority, msg.Path, time.Now())
}

// refilled lets one of our own fetches through, without its token.
func (m *machine) refilled() {
	m.counted = true // no client's request
	m.send(wire.ContinueRequest(wire.Mutation{Remove: []string{refill.TokenHeader}}))
	m.finish()
}

package extproc

import (
	"context"
	"errors"
	"time"

	"github.com/weirproxy/weir/extproc/fleet"
	"github.com/weirproxy/weir/extproc/flight"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/metrics"
	"github.com/weirproxy/weir/extproc/store"
)

const (
	// passAlong is the least that is kept of a body that outgrew
	// storage.maxObjectSize, for the followers who read it along.
	passAlong = 1 << 20
	// maxLag bounds how long one chunk of such a body waits for followers who lag.
	// Envoy's message timeout, which runs meanwhile, may bound it further.
	maxLag = 500 * time.Millisecond
	// lagPoll is how often it is looked whether they still do.
	lagPoll = 2 * time.Millisecond
)

// fill is an answer being copied: by the request that leads, or by a refill. The
// zero fill copies nothing. Not safe for concurrent use.
type fill struct {
	svc    *Service
	lead   *flight.Lead
	job    *job
	entry  *store.Entry
	shared bool // followers have the head
	grown  bool // outgrew maxObjectSize; only passed along
	ended  bool // how it ended was counted
	// wanted is set where the answer serves one request and is not stored.
	wanted func() bool
	// lease is the fleet's, for progress; the flight has it.
	lease *fleet.Lease
}

// begin starts to fill entry. With share its head goes to the followers; without
// they are released, and the next burst does not wait.
func (f *fill) begin(svc *Service, lead *flight.Lead, j *job, e *store.Entry, share bool, reason httpcache.Reason) {
	*f = fill{svc: svc, lead: lead, job: j, entry: e}
	if share {
		f.underLease()
		f.shared = lead.Publish(e)
		return
	}
	svc.release(lead, true, reason)
}

// underLease says that the fetch of a lease made progress.
func (f *fill) underLease() {
	if l, ok := f.lead.Attached().(*fleet.Lease); ok {
		f.lease = l
		l.Progress()
	}
}

// resume goes on with the answer of a flight that was taken over in the middle
// of its body.
func (f *fill) resume(svc *Service, lead *flight.Lead, j *job, e *store.Entry) {
	*f = fill{svc: svc, lead: lead, job: j, entry: e, shared: true}
	f.underLease()
}

// give copies an answer for the one request that it serves.
func (f *fill) give(svc *Service, lead *flight.Lead, j *job, e *store.Entry, wanted func() bool) {
	*f = fill{svc: svc, lead: lead, job: j, entry: e, wanted: wanted}
}

// append adds a chunk. It returns false when nothing more needs to come: nobody
// would store or read it.
func (f *fill) append(p []byte, now time.Time) bool {
	if f.entry == nil {
		return false
	}
	if f.wanted != nil && !f.wanted() {
		f.drop(errNotWanted)
		return false
	}
	limit := f.job.binding.Policy.Storage.MaxObjectSize
	if !f.grown && f.entry.Body.Len()+int64(len(p)) > limit {
		f.ends(metrics.FillTooLarge)
		if !f.shared || !f.lead.Outgrown() {
			f.drop(errTooLarge)
			return false
		}
		f.grown = true
		f.entry.Body.Trim(f.window())
	}
	if f.grown {
		f.awaitReaders()
	}
	if f.lease != nil {
		f.lease.Progress()
	}
	err := f.write(p, now)
	switch {
	case err == nil:
		return true
	case errors.Is(err, flight.ErrEnded):
		f.overtaken()
	default:
		f.drop(err)
	}
	return false
}

// window is how much of a body that outgrew storage.maxObjectSize is kept: no less
// than was kept before, so that nobody loses what was there.
func (f *fill) window() int64 { return max(passAlong, f.job.binding.Policy.Storage.MaxObjectSize) }

// awaitReaders gives followers who lag time to catch up, since they would lose what
// leaves the window. The origin waits meanwhile.
func (f *fill) awaitReaders() {
	message, _ := f.svc.facts.filterTimeouts(f.job.binding)
	last := time.Now().Add(min(maxLag, message/2))
	for f.lead.Lags(f.window()/2) && time.Now().Before(last) {
		time.Sleep(lagPoll)
	}
}

func (f *fill) write(p []byte, now time.Time) error {
	if f.shared {
		return f.lead.Append(p, now)
	}
	return f.entry.Body.Append(p)
}

// commit ends the body. It stores the entry before the flight ends, so that who
// comes next finds the one or the other.
func (f *fill) commit(ctx context.Context, now time.Time) {
	e := f.entry
	if e == nil {
		return
	}
	if f.shared {
		if err := f.lead.End(); err != nil {
			f.overtaken()
			return
		}
	} else {
		e.Body.End()
	}
	f.entry = nil
	policy := f.job.binding.Policy
	switch {
	case f.grown: // nor could anybody else store it
		f.svc.settle(lease(f.lead), fleet.Uncacheable)
	case f.wanted != nil: // not to be stored
	case !e.Body.Whole():
		f.ends(metrics.FillIncomplete)
	default:
		kept := f.svc.put(ctx, e, policy.Storage.MaxVariants, now)
		f.svc.commit(lease(f.lead), policy, kept, nil)
		f.ends(metrics.FillStored)
	}
	f.lead.Finish()
}

// abandon: who carried the fetch went away. The flight finds a successor, or its
// readers see the answer break.
func (f *fill) abandon() {
	if f.entry == nil {
		return
	}
	if f.shared {
		f.ends(metrics.FillIncomplete)
		f.entry = nil
		f.lead.Abandon()
		return
	}
	f.drop(flight.ErrAbandoned)
}

// overtaken: another fetch has made the body whole, or it broke for all.
func (f *fill) overtaken() {
	if f.entry.Body.Whole() {
		f.ends(metrics.FillRedundant)
	}
	f.ends(metrics.FillIncomplete)
	f.entry = nil
}

// ends counts how the fill ended, by what came first. An answer that was never to
// be stored is no fill.
func (f *fill) ends(r metrics.FillResult) {
	if f.ended || f.wanted != nil {
		return
	}
	f.ended = true
	f.svc.opts.Metrics.Fill(r)
}

// drop gives the answer up: its readers see it break.
func (f *fill) drop(err error) {
	f.ends(metrics.FillIncomplete)
	e := f.entry
	f.entry = nil
	if f.shared {
		f.lead.Break(err)
		return
	}
	e.Body.Break(err)
}

var errTooLarge = errors.New("larger than storage.maxObjectSize")

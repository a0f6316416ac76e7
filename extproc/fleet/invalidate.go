package fleet

import (
	"context"
	"errors"
	"slices"
	"time"
)

// Invalidation names what is invalid.
type Invalidation struct {
	Kind             Kind
	Namespace, Value string // as in [Stamps.Add]
	Mode             Mode
}

func (i *Invalidation) name() name { return nameOf(i.Kind, i.Namespace, i.Value) }

// ErrQueued says that Redis did not take an invalidation: it holds in this
// process, and the others are told once Redis is back.
var ErrQueued = errors.New("the fleet could not be told yet; this replica holds the invalidation")

// Stamp invalidates for the whole fleet, in one round trip, and does not wait for
// other replicas to hear of it. When it returns, whatever the error, this process
// serves nothing that is covered and was fetched before. It returns the position
// in the fleet, or ErrQueued.
func (f *Fleet) Stamp(ctx context.Context, list ...Invalidation) (uint64, error) {
	if len(list) == 0 {
		return 0, nil
	}
	position, _, err := f.tell(ctx, list)
	return position, err
}

// tell is Stamp, and returns in which history of Redis the stamps are.
func (f *Fleet) tell(ctx context.Context, list []Invalidation) (position uint64, in string, err error) {
	list = f.stamps.spellOut(list)
	history, applied := f.knows()
	args := []any{applied, history, everything(), f.opts.MaxStamps, streamLength, pageSize, f.follower.others()}
	for i := range list {
		args = append(args, list[i].name().text(list[i].Mode))
	}
	ctx = context.WithoutCancel(ctx)
	r, err := f.store.Run(ctx, f.stamp, f.stampKeys(), args...)
	if err != nil {
		f.queue(list)
		return 0, "", errors.Join(ErrQueued, err)
	}
	in, position = r.Text(0), r.Uint(1)
	if in == history && f.apply(logEntries(r.List(2))) {
		return position, in, nil
	}
	// We are behind: what is ours holds at once, the follower brings the rest.
	stamps := make([]Stamp, len(list))
	for i := range list {
		n := list[i].name()
		at := position - uint64(len(list)-1-i)
		stamps[i] = Stamp{Kind: n.kind, Namespace: n.namespace, Value: n.value, Mode: list[i].Mode, Position: at}
	}
	f.stamps.Apply(stamps, 0, f.opts.Now())
	return position, in, nil
}

func logEntries(list []string) []logEntry {
	entries := make([]logEntry, 0, len(list)/3)
	for ; len(list) >= 3; list = list[3:] {
		entries = append(entries, newLogEntry(list[0], list[1], list[2]))
	}
	return entries
}

// Receipt says how far an invalidation has come.
type Receipt struct {
	// Position is the position in the fleet; 0 if it was not told.
	Position uint64 `json:"position"`
	// Queued says that Redis is away: the invalidation holds in this process, and
	// the others are told once Redis is back. Nothing is known of them.
	Queued bool `json:"queued,omitempty"`
	// Replicas counts this one, those that are alive, and those that fell silent in
	// the last ten minutes without saying goodbye, which may be cut off and serving.
	Replicas int `json:"replicas"`
	// Confirmed counts those that have applied the invalidation.
	Confirmed int `json:"confirmed"`
	// Silent are those that have not, at most 100 of them.
	Silent []string `json:"silent,omitempty"`
	// Took is how long it took until all confirmed, or until they were given up on.
	Took time.Duration `json:"took"`
}

// maxSilent bounds Receipt.Silent.
const maxSilent = 100

// Invalidate invalidates for the whole fleet and waits until the replicas that are
// alive have applied it, for Options.Confirm at most. An error says that this
// could not be found out; the receipt says what is known all the same.
func (f *Fleet) Invalidate(ctx context.Context, list ...Invalidation) (Receipt, error) {
	return f.invalidate(ctx, f.opts.Confirm, list)
}

// announceLimit bounds how long Announce waits for other replicas: a client waits
// for its answer.
const announceLimit = 100 * time.Millisecond

// Announce is Invalidate for what a request made invalid: it waits for the others
// no longer than the request's client may be kept waiting.
func (f *Fleet) Announce(ctx context.Context, list ...Invalidation) (Receipt, error) {
	return f.invalidate(ctx, announceLimit, list)
}

func (f *Fleet) invalidate(ctx context.Context, limit time.Duration, list []Invalidation) (r Receipt, err error) {
	if len(list) == 0 {
		return Receipt{Replicas: 1, Confirmed: 1}, nil
	}
	began := f.opts.Now()
	defer func() { r.Took = f.opts.Now().Sub(began) }()
	var waiting context.Context
	for {
		position, history, err := f.tell(ctx, list)
		if err != nil {
			return Receipt{Queued: true, Replicas: 1, Confirmed: 1}, err
		}
		if waiting == nil {
			var cancel context.CancelFunc
			waiting, cancel = context.WithTimeout(ctx, limit)
			defer cancel()
		}
		r, err = f.confirm(waiting, position, history)
		if !errors.Is(err, errForgotten) || waiting.Err() != nil {
			return r, err
		}
	}
}

// errForgotten says that Redis lost a stamp before all had applied it.
var errForgotten = errors.New("redis lost the invalidation before all replicas had applied it")

// confirm waits until the replicas have applied a position of a history, or ctx
// ends. The error is of a list of replicas that could not be had, is not complete, or
// is of another history, which knows nothing of the stamp.
func (f *Fleet) confirm(ctx context.Context, position uint64, history string) (Receipt, error) {
	receipt, unknown := Receipt{Position: position, Replicas: 1, Confirmed: 1}, errIncomplete
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		all, err := f.members(ctx)
		switch {
		case err == nil && all.history != history:
			return receipt, errForgotten
		case err == nil:
			var waiting bool
			receipt, waiting = f.tally(position, all.replicas)
			if unknown = nil; all.age < complete {
				unknown = errIncomplete
			} else if !waiting {
				return receipt, nil
			}
		case receipt.Replicas == 1 && ctx.Err() == nil:
			return receipt, err // Redis is away: there is no use in waiting
		}
		select {
		case <-ctx.Done():
			return receipt, unknown
		case <-time.After(pause):
		}
	}
}

// tally counts who has confirmed; waiting says that another may do so yet.
func (f *Fleet) tally(position uint64, list []Replica) (r Receipt, waiting bool) {
	r = Receipt{Position: position, Replicas: 1, Confirmed: 1}
	for i := range list {
		other := &list[i]
		if other.Name == f.opts.Replica {
			continue // it has applied it before it came here
		}
		r.Replicas++
		if other.Applied >= position && other.Current {
			r.Confirmed++
			continue
		}
		if len(r.Silent) < maxSilent {
			r.Silent = append(r.Silent, other.Name)
		}
		waiting = waiting || f.Alive(other)
	}
	slices.Sort(r.Silent)
	return r, waiting
}

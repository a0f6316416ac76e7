package fleet

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/store/redis"
)

//go:embed scripts/*.lua
var scripts embed.FS

// Defaults of [Options].
const (
	DefaultLeaseLife = 3 * time.Second
	DefaultFirstByte = 30 * time.Second
	DefaultMark      = 5 * time.Second
	DefaultSilence   = 3 * time.Second
	DefaultConfirm   = time.Second
	DefaultClaim     = 250 * time.Millisecond
)

// Bounds of a lease's life: shorter ones are lost to a pause of the collector or
// the network, longer ones keep the fleet waiting for a process that died.
const (
	minLeaseLife = 2 * time.Second
	maxLeaseLife = 5 * time.Second
)

// Options are the parts and settings of a [Fleet].
type Options struct {
	// Store has the entries; leases and stamps lie in the same Redis. Required.
	Store *redis.Store
	// Stamps is what invalidations are applied to. Required.
	Stamps *Stamps
	// Replica names this process: no other may have the name. It has no / and no
	// spaces. Required.
	Replica string
	// Logger is told of changes of state; required.
	Logger *slog.Logger
	// LeaseLife is how long a lease lives without renewal, 2 to 5 s; 0 means 3 s.
	LeaseLife time.Duration
	// FirstByte is how long a fetch may take to its first byte before its lease is
	// no longer renewed; 0 means 30 s.
	FirstByte time.Duration
	// Mark is how long after an answer that could not be shared nobody waits for
	// the resource, at most a minute; 0 means 5 s.
	Mark time.Duration
	// Silence is after how long without word from Redis a process is no longer
	// sure of what it knows; 0 means 3 s.
	Silence time.Duration
	// Claim bounds a round trip that a request waits for; 0 means 250 ms.
	Claim time.Duration
	// Confirm bounds how long Invalidate waits for other replicas; 0 means 1 s.
	Confirm time.Duration
	// MaxStamps bounds the stamps in Redis; 0 means DefaultMaxStamps.
	MaxStamps int
	// Now is the local clock; nil means time.Now.
	Now func() time.Time

	replicationLua string // a test's own idea of the replication history
}

// Fleet is this process's membership in the fleet. It is safe for concurrent use.
// Run it; until then nothing is caught up.
type Fleet struct {
	opts    Options
	store   *redis.Store
	stamps  *Stamps
	started time.Time

	acquire, renew, settle       *redis.Script
	beat, stamp, replicas, leave *redis.Script
	waiters                      waiters
	follower                     follower
	pending                      pending
	counts                       counts
}

// New returns the membership of this process.
func New(o Options) (*Fleet, error) {
	if o.Store == nil || o.Stamps == nil || o.Logger == nil {
		return nil, errors.New("fleet: Store, Stamps and Logger are required")
	}
	if o.Replica == "" || strings.ContainsAny(o.Replica, "/ ") {
		return nil, fmt.Errorf("fleet: replica name %q: want one without / and spaces", o.Replica)
	}
	o.LeaseLife = min(max(or(o.LeaseLife, DefaultLeaseLife), minLeaseLife), maxLeaseLife)
	o.FirstByte = or(o.FirstByte, DefaultFirstByte)
	o.Mark = min(or(o.Mark, DefaultMark), time.Minute)
	o.Silence = or(o.Silence, DefaultSilence)
	o.Confirm = or(o.Confirm, DefaultConfirm)
	o.Claim = or(o.Claim, DefaultClaim)
	o.MaxStamps = or(o.MaxStamps, DefaultMaxStamps)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.replicationLua == "" {
		o.replicationLua = source("replication")
	}
	f := &Fleet{opts: o, store: o.Store, stamps: o.Stamps, started: o.Now()}
	for name, script := range map[string]**redis.Script{"acquire": &f.acquire, "renew": &f.renew, "settle": &f.settle} {
		*script = o.Store.NewScript(name, source(name))
	}
	common := o.replicationLua + source("stamps")
	for name, script := range map[string]**redis.Script{
		"beat": &f.beat, "stamp": &f.stamp, "replicas": &f.replicas, "leave": &f.leave,
	} {
		*script = o.Store.NewScript(name, common+source(name))
	}
	return f, nil
}

func or[T comparable](v, byDefault T) T {
	var zero T
	if v == zero {
		return byDefault
	}
	return v
}

func source(name string) string {
	b, err := scripts.ReadFile("scripts/" + name + ".lua")
	if err != nil {
		panic(err) // it is in the binary
	}
	return string(b)
}

// Run follows the invalidations and the wake-ups of the fleet until ctx ends, and
// then says goodbye. It uses three goroutines, whatever happens.
func (f *Fleet) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { f.follow(ctx) })
	wg.Go(func() { f.listen(ctx) })
	wg.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	defer cancel()
	if _, err := f.store.Run(ctx, f.leave, f.stampKeys(), f.opts.Replica); err != nil {
		f.opts.Logger.Debug("The fleet was not told that this replica ends", "error", err)
	}
}

// goodbye bounds how long the end of Run may take.
const goodbye = 250 * time.Millisecond

// Shares reports whether answers under a policy may go into the shared store:
// not with storage.sharing Replica.
func Shares(p *cachepolicy.Policy) bool { return !p.Storage.ReplicaOnly }

// Coalesces reports whether requests under a policy are coalesced across the
// fleet: if its answers may be shared, and coalescing.scope is Fleet.
func Coalesces(p *cachepolicy.Policy) bool {
	return Shares(p) && p.Coalescing.Scope == cachepolicy.ScopeFleet
}

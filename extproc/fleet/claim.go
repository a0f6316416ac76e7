package fleet

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/store/redis"
)

// Claim says what a process wants to fetch.
type Claim struct {
	Key *cachepolicy.Key
	// Vary is what the process knows of the resource's Vary, and Header the request's
	// fields; together they select the variant.
	Vary   httpcache.Vary
	Header httpcache.Fields
	// Known is what the process has of the variant, or nil: only what is newer is
	// worth returning.
	Known *store.Entry
	// Policy is the one that the request is under, Namespace that in which invalidations
	// cover the answer; empty: the policy's.
	Policy    *cachepolicy.Policy
	Namespace string
	// URI is the resource's, as entries have it: nobody waits for a fetch that an
	// invalidation of it has made useless.
	URI string
}

// State is what became of a claim, or of waiting for one.
type State uint8

// The states of [Claimed] and [Waited].
const (
	// Unavailable: Redis did not answer in time, or not to the point; the process
	// goes on by itself.
	Unavailable State = iota
	// Granted: the lease is the caller's, who fetches.
	Granted
	// Found: an answer is there.
	Found
	// Held: another fetches; Wait. Also the answer of Wait when its context ended.
	Held
	// VaryChanged: the resource varies by other fields than the claim says; claim
	// again with those.
	VaryChanged
	// Apart: the last answer could not be shared; everybody fetches alone.
	Apart
	// Failed (Wait only): the fetch failed.
	Failed
	// Free (Wait only): nobody fetches any more; claim again.
	Free
	states
)

// String returns the name of s in metrics.
func (s State) String() string {
	return [...]string{"unavailable", "granted", "found", "held", "vary-changed", "apart", "failed", "free"}[s%states]
}

// ErrAway says that Redis is away, or that this process has not caught up.
var ErrAway = errors.New("this replica is not in touch with the fleet")

// Claimed is the answer to a claim.
type Claimed struct {
	State State
	Lease *Lease         // Granted
	Entry *store.Entry   // Found
	Vary  httpcache.Vary // VaryChanged
	By    string         // Held: the replica that fetches
	Token uint64         // Held: of its lease
	Left  time.Duration  // Held: until that ends unless it is renewed
	Err   error          // Unavailable
}

// bodyLimit bounds how long it takes to bring the body of what a claim found.
const bodyLimit = time.Second

// Acquire claims the variant: it returns what became of it within Options.Claim,
// or, if it has to bring a body of more than 64 KiB, within a second more.
func (f *Fleet) Acquire(ctx context.Context, c Claim) Claimed {
	owner := f.opts.Replica + "/" + rand.Text()
	got := f.claim(ctx, &c, owner, 0)
	f.counts.claims[got.State].Add(1)
	return got
}

// claim runs the script until its answer is of use. A stored answer may turn out
// not to be believed, or to be invalid; then only a newer one counts.
func (f *Fleet) claim(ctx context.Context, c *Claim, owner string, waited uint64) Claimed {
	above := uint64(0)
	if c.Known != nil {
		above = c.Known.Shared.Token
	}
	for range maxAsks {
		epoch, ok := f.Reading()
		if !ok {
			return Claimed{State: Unavailable, Err: ErrAway}
		}
		got, record := f.ask(ctx, c, owner, above, waited)
		if got.State != Found {
			return got
		}
		e, err := f.bring(ctx, c, record, epoch)
		switch {
		case err == nil:
			got.Entry = e
			return got
		case !errors.Is(err, redis.ErrRefused):
			return Claimed{State: Unavailable, Err: err}
		}
		above = record.Token()
	}
	return Claimed{State: Unavailable, Err: redis.ErrContended}
}

// maxAsks bounds how many answers of no use one claim looks at.
const maxAsks = 8

// ask runs the script once.
func (f *Fleet) ask(ctx context.Context, c *Claim, owner string, above, waited uint64) (Claimed, *redis.Found) {
	ctx, cancel := context.WithTimeout(ctx, f.opts.Claim)
	defer cancel()
	name := redis.NameOf(c.Key)
	variant := redis.VariantName(c.Vary.Names, c.Vary.Select(c.Header))
	sent := f.opts.Now()
	maxHead, maxChunk := redis.ReplyBounds()
	r, err := f.store.Run(ctx, f.acquire, []string{name.Primary(), name.Lease(variant)},
		variant, redis.VaryNames(c.Vary.Names), above, owner, f.opts.LeaseLife.Microseconds(), maxHead, maxChunk, waited,
		f.stamps.Position()>>localBits, f.stamps.Refuses(c.covered())>>localBits)
	if err != nil {
		return Claimed{State: Unavailable, Err: err}, nil
	}
	switch r.Text(0) {
	case "vary":
		return Claimed{State: VaryChanged, Vary: httpcache.Vary{Names: redis.ParseVaryNames(r.Text(1))}}, nil
	case "found":
		return Claimed{State: Found}, redis.NewFound(r, 1)
	case "apart":
		return Claimed{State: Apart}, nil
	case "held":
		by, _, _ := strings.Cut(r.Text(2), "/")
		return Claimed{State: Held, Token: r.Uint(1), By: by, Left: time.Duration(r.Uint(3)) * time.Microsecond}, nil
	case "free":
		if waited > 0 && r.Uint(1) >= waited {
			return Claimed{State: Failed}, nil
		}
		return Claimed{State: Free}, nil
	case "granted":
		return Claimed{State: Granted, Lease: f.newLease(c, variant, owner, r.Uint(1), r.Clock, sent)}, nil
	}
	return Claimed{State: Unavailable, Err: redis.ErrReply}, nil
}

// bring makes an entry of what the script found, if that is of use.
func (f *Fleet) bring(ctx context.Context, c *Claim, found *redis.Found, epoch uint64) (*store.Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, bodyLimit)
	defer cancel()
	return f.store.Bring(ctx, c.Key, found, func(e *store.Entry) bool { return f.Read(epoch, e) && f.useful(c, e) })
}

// useful reports whether a stored answer ends the need to fetch: it is for these
// fields, newer than what the process has, and no invalidation covers it.
func (f *Fleet) useful(c *Claim, e *store.Entry) bool {
	if k := c.Known; k != nil && k.Shared.Token == 0 && !e.ResponseTime.After(k.ResponseTime) {
		return false
	}
	return httpcache.SameVariant(e.Vary.Names, e.VaryValues, c.Header) &&
		f.stamps.Check(CoveredBy(e, c.namespace())) == Valid
}

// covered is what invalidations can name the resource of a claim by, before there
// is an answer.
func (c *Claim) covered() Covered {
	return Covered{URI: c.URI, Host: HostOf(c.URI), Policy: c.Policy.String(), Namespace: c.namespace()}
}

func (c *Claim) namespace() string { return cmp.Or(c.Namespace, c.Policy.Namespace) }

// HostOf returns the authority of a URI as entries have it.
func HostOf(uri string) string {
	_, rest, _ := strings.Cut(uri, "://")
	host, _, _ := strings.Cut(rest, "/")
	return host
}

// CoveredBy returns what invalidations can name an entry by, that is stored under
// a policy of the namespace.
func CoveredBy(e *store.Entry, namespace string) Covered {
	return Covered{
		Birth: e.Birth, URI: e.URI, Host: HostOf(e.URI), Policy: e.Policy, Namespace: namespace, Tags: e.Tags,
	}
}

package extproc

import (
	"sync/atomic"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/refill"
	"github.com/weirproxy/weir/extproc/store"
)

// job describes a fetch so that others than its request can make it: a detached
// refill, or who takes a flight over. It is read-only, but for what told points
// to, and outlives the request.
type job struct {
	binding *cachepolicy.Binding
	key     cachepolicy.Key
	req     httpcache.Request
	rules   httpcache.Rules
	vary    httpcache.Vary
	// stored is what the store had when the job was made, or nil.
	stored *store.Entry
	// alone: the fetch is not claimed in the fleet, because it goes beside one that is.
	alone bool
	// told is what the fetch tells the request that started it.
	told *told
}

// told is what a detached fetch tells the request that started it, besides the
// news of the flight and before it. Safe for concurrent use.
type told struct {
	validated atomic.Bool // the origin answered 304
}

func (m *machine) job() *job {
	return &job{
		binding: m.binding, key: m.key, req: m.req, rules: m.rules, vary: m.vary, stored: m.stored, told: new(told),
	}
}

// detached is the job as nobody's request: without credentials and what else is
// its client's. The answer belongs to the variant that these fields select.
func (j *job) detached() *job {
	out := *j
	out.req.Header = refill.Sanitize(j.req.Header, j.binding.Policy.Key.Cookies)
	out.rules = requestRules(j.binding.Policy, &out.req)
	return &out
}

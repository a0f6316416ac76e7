package extproc

import (
	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/refill"
	"github.com/weirproxy/weir/extproc/store"
)

// job describes a fetch so that others than its request can make it: a detached
// refill, or who takes a flight over. It is read-only and outlives the request.
type job struct {
	binding *cachepolicy.Binding
	key     cachepolicy.Key
	req     httpcache.Request
	rules   httpcache.Rules
	vary    httpcache.Vary
	// stored is what the store had when the job was made, or nil.
	stored *store.Entry
}

func (m *machine) job() *job {
	return &job{binding: m.binding, key: m.key, req: m.req, rules: m.rules, vary: m.vary, stored: m.stored}
}

// detached is the job as nobody's request: without credentials and what else is
// its client's. The answer belongs to the variant that these fields select.
func (j *job) detached() *job {
	out := *j
	out.req.Header = refill.Sanitize(j.req.Header, j.binding.Policy.Key.Cookies)
	out.rules = requestRules(j.binding.Policy, &out.req)
	return &out
}

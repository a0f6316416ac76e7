package extproc

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/fleet"
	"github.com/weirproxy/weir/extproc/httpcache"
)

// ResourceOf returns the URI by which the answer to a request is known under a
// policy's key rules: the target URI (RFC 9110 §7.1) without the query parameters
// that are in no key. Entries carry it and invalidations name it, so that a URL
// covers what was filled by any other that the rules take for the same.
func ResourceOf(rules *cachepolicy.KeyRules, req *httpcache.Request) string {
	t := httpcache.TargetOf(req)
	t.Path = rules.Query.Target(t.Path)
	return t.String()
}

// maxRetired bounds the query rules that are remembered after the last policy
// that had them is gone.
const maxRetired = 256

// resources knows by which query rules entries may have been stored: those of the
// policies in use, and, since a policy that was taken away or changed may come
// back to what is still stored, those of the policies before. The zero value is
// ready. Safe for concurrent use.
type resources struct {
	learned  atomic.Pointer[cachepolicy.Set] // the set that inUse is of
	learning sync.Mutex

	mu      sync.RWMutex
	inUse   map[queryRulesID]*cachepolicy.QueryRules
	retired []retiredRules // oldest first
}

// queryRulesID tells query rules apart: a namespace and QueryRules.String.
type queryRulesID struct{ namespace, rules string }

type retiredRules struct {
	id    queryRulesID
	rules *cachepolicy.QueryRules
}

// learn takes note of a set before anything is stored or read by it. With other
// rules than before, forget is called for the namespace of rules that are over the
// bound: nothing stored by them may be served any more; and then changed.
func (r *resources) learn(set *cachepolicy.Set, forget func(namespace string), changed func()) {
	old := r.learned.Load()
	if set == nil || old == set || sameQueries(old, set) && r.learned.CompareAndSwap(old, set) {
		return
	}
	r.learning.Lock()
	defer r.learning.Unlock()
	forgotten, different := r.replace(set)
	for _, namespace := range forgotten {
		forget(namespace)
	}
	if different {
		changed()
	}
	r.learned.Store(set)
}

// sameQueries reports whether nothing is to be learned of a set after another: most
// changes of a feed leave the rules of queries as they were.
func sameQueries(a, b *cachepolicy.Set) bool {
	qa, qb := a.Queries(), b.Queries()
	return len(qa) > 0 && len(qa) == len(qb) && &qa[0] == &qb[0]
}

// replace puts the rules of a set in use. It returns the namespaces of those that
// are remembered no longer, and whether there are others than before.
func (r *resources) replace(set *cachepolicy.Set) (forgotten []string, different bool) {
	inUse := make(map[queryRulesID]*cachepolicy.QueryRules)
	for _, q := range set.Queries() {
		inUse[queryRulesID{q.Namespace, q.Rules.String()}] = q.Rules
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range inUse {
		different = different || r.inUse[id] == nil
	}
	for id, q := range r.inUse {
		r.retired = append(r.retired, retiredRules{id, q})
	}
	r.retired = slices.DeleteFunc(r.retired, func(old retiredRules) bool { return inUse[old.id] != nil })
	for ; len(r.retired) > maxRetired; r.retired = r.retired[1:] {
		forgotten = append(forgotten, r.retired[0].id.namespace)
	}
	r.inUse = inUse
	return forgotten, different
}

// forms returns each form in which a policy of the namespace, or, if that is empty,
// of any, may know a URI.
func (r *resources) forms(namespace, uri string) []string {
	_, rest, ok := strings.Cut(uri, "://")
	slash := strings.IndexByte(rest, '/')
	if !ok || slash < 0 {
		return nil // a digest, or such as OPTIONS * has
	}
	path := rest[slash:]
	origin := uri[:len(uri)-len(path)]
	forms := make(map[string]bool)
	r.mu.RLock()
	defer r.mu.RUnlock()
	note := func(id queryRulesID, q *cachepolicy.QueryRules) {
		if namespace == "" || namespace == id.namespace {
			forms[origin+q.Target(path)] = true
		}
	}
	for id, q := range r.inUse {
		note(id, q)
	}
	for _, old := range r.retired {
		note(old.id, old.rules)
	}
	return slices.Sorted(maps.Keys(forms))
}

// policies returns the set in use, which what is stored from now on may be by.
func (s *Service) policies() *cachepolicy.Set {
	set := s.opts.Policies()
	s.resources.learn(set, func(namespace string) {
		s.opts.Stamps.Add(fleet.ByNamespace, namespace, namespace, fleet.Hard, time.Now())
	}, func() { s.opts.Stamps.Forms(s.resources.forms) })
	return set
}

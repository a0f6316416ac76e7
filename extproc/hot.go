package extproc

import (
	"net/http"
	"slices"
	"time"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/popularity"
	"github.com/weirproxy/weir/extproc/store"
)

// Popularity returns what is known of how often keys are read.
func (s *Service) Popularity() *popularity.Sketch { return s.opts.Popularity }

// touch counts a client's request for its key, all variants alike.
func (s *Service) touch(m *machine, vary httpcache.Vary, now time.Time) {
	if s.opts.Popularity.Touch(&m.key.Hash, now) {
		s.opts.Popularity.Describe(&m.key.Hash, m.description(vary), now)
	}
}

// rate is how often a key is read, per second.
func (s *Service) rate(key *cachepolicy.Key, now time.Time) float64 {
	return s.opts.Popularity.Rate(&key.Hash, now)
}

// beta is the weight of the early-refresh draw for a stored answer. In mode Auto
// it follows the rate at which the key is read; it is only made where it can
// matter, in the last part of a lifetime.
func (s *Service) beta(p *cachepolicy.Policy, key *cachepolicy.Key, e *store.Entry, now time.Time) float64 {
	switch p.XFetch.Mode {
	case cachepolicy.XFetchOff:
		return 0
	case cachepolicy.XFetchAuto:
		left := e.Lifetime - e.Age(now)
		if left <= 0 || left > e.Lifetime/100*time.Duration(p.XFetch.MaxLeadPercent) {
			return 0
		}
		return cachepolicy.AutoBeta(s.rate(key, now), e.Cost, e.Lifetime, p.XFetch.MaxLeadPercent)
	default:
		return p.XFetch.Beta
	}
}

// description says what the request's key stands for: enough to fetch it again,
// and nothing that is its client's.
func (m *machine) description(vary httpcache.Vary) popularity.Description {
	d := popularity.Description{
		URI:    m.req.Scheme + "://" + m.req.Authority + m.req.Path,
		Policy: m.policy.String(), Route: m.binding.Route,
	}
	for _, name := range slices.Concat(m.policy.Key.Headers, vary.Names) {
		if name == "cookie" || name == "authorization" || d.Header.Has(name) {
			continue
		}
		if value, ok := m.req.Header.Joined(name); ok {
			d.Header = append(d.Header, httpcache.Field{Name: name, Value: value})
		}
	}
	if len(m.policy.Key.Cookies) == 0 {
		return d
	}
	line, _ := m.req.Header.Joined("cookie")
	cookies, _ := http.ParseCookie(line) // of a line that is none no names are known
	for _, c := range cookies {
		if slices.Contains(m.policy.Key.Cookies, c.Name) && !slices.Contains(d.Cookies, c.Name) {
			d.Cookies = append(d.Cookies, c.Name)
		}
	}
	return d
}

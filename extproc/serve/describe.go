package serve

import (
	"time"

	"github.com/weirproxy/weir/extproc"
	"github.com/weirproxy/weir/extproc/admin"
	"github.com/weirproxy/weir/extproc/fleet"
	"github.com/weirproxy/weir/extproc/store"
)

// listed reports whether the entry is asked for.
func listed(e *store.Entry, r *admin.EntriesRequest) bool {
	return (r.Policy == "" || e.Policy == r.Policy) && (r.Host == "" || fleet.HostOf(e.URI) == r.Host)
}

// describe shows a stored entry at this moment.
func describe(e *store.Entry, now time.Time) admin.Entry {
	age, windows := e.Age(now), max(e.WhileRevalidate, e.IfError)
	d := admin.Entry{
		URI: e.URI, Policy: e.Policy, Status: e.Status, State: "kept", Places: extproc.Places(e),
		AgeSeconds: int64(age.Seconds()), LifetimeSeconds: int64(e.Lifetime.Seconds()),
		StaleSeconds: int64(windows.Seconds()), BodyBytes: e.Body.Len(), HeldBytes: e.Size(),
		Negative: e.Negative, Tags: e.Tags, ExpiresAt: e.ExpiresAt(),
	}
	switch {
	case e.ValidateAlways:
	case age < e.Lifetime:
		d.State = "fresh"
	case age < e.Lifetime+windows:
		d.State = "stale"
	}
	for i, name := range e.Vary.Names {
		if d.Vary == nil {
			d.Vary = map[string]string{}
		}
		d.Vary[name] = e.VaryValues[i]
	}
	return d
}

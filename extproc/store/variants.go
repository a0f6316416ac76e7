package store

import (
	"time"

	"github.com/weirproxy/weir/extproc/httpcache"
)

// Look answers a Get from a resource's variants, newest first.
func Look(variants []*Entry, req httpcache.Fields, now time.Time) Result {
	if e := Select(variants, req, now); e != nil {
		return Result{Entry: e, Vary: e.Vary, Known: true}
	}
	for _, e := range variants {
		if e.Useful(now) {
			return Result{Vary: e.Vary, Known: true}
		}
	}
	return Result{}
}

// Select returns which of a resource's variants, newest first, answers a request
// with fields req, or nil: the most recent one whose nominated fields match.
//
// Some resources leave Vary out of their default response, which then matches
// every request. Such an entry gives way to one with Vary that also matches
// (RFC 9111 §4.1), while that one is fresh and its fetch did not begin before an
// invalidation that the default response has seen: past that, the newest counts,
// lest an answer that is of no use hides the one that replaced it.
func Select(variants []*Entry, req httpcache.Fields, now time.Time) *Entry {
	var fallback *Entry
	for _, e := range variants {
		switch {
		case e.Vary.Any || !e.Useful(now) || !httpcache.SameVariant(e.Vary.Names, e.VaryValues, req):
			continue
		case fallback == nil && len(e.Vary.Names) > 0:
			return e
		case fallback == nil:
			fallback = e
		case len(e.Vary.Names) > 0 && e.Age(now) < e.Lifetime && e.Birth >= fallback.Birth:
			return e
		}
	}
	return fallback
}

// Change is what storing an entry does to the variants of its resource.
type Change struct {
	Kept     []*Entry // newest first
	Replaced []*Entry // of the same variant as the new entry
	Expired  []*Entry // of no more use
	Capped   []*Entry // the oldest, over the cap
}

// Insert returns the variants of a resource after e was stored, without changing
// the list it is given. An entry whose fetch began before an invalidation that
// the stored one's fetch has seen does not replace that: it is left out.
func Insert(variants []*Entry, e *Entry, maxVariants int, now time.Time) Change {
	maxVariants = max(maxVariants, 1)
	c := Change{Kept: make([]*Entry, 0, min(len(variants)+1, maxVariants))}
	if e.Useful(now) && !outlived(variants, e, now) {
		c.Kept = append(c.Kept, e)
	}
	for _, old := range variants {
		switch {
		case old.SameVariant(e) && old.Birth <= e.Birth:
			c.Replaced = append(c.Replaced, old)
		case !old.Useful(now):
			c.Expired = append(c.Expired, old)
		case len(c.Kept) >= maxVariants:
			c.Capped = append(c.Capped, old)
		default:
			c.Kept = append(c.Kept, old)
		}
	}
	return c
}

func outlived(variants []*Entry, e *Entry, now time.Time) bool {
	for _, old := range variants {
		if old.Birth > e.Birth && old.SameVariant(e) && old.Useful(now) {
			return true
		}
	}
	return false
}

package httpcache

import (
	"slices"
	"strings"
	"time"
)

// maxDelta stands for infinity: the value for a delta-seconds too large to count
// (RFC 9111 §1.2.2).
const maxDelta = (1 << 31) * time.Second

// Delta is the argument of a directive that takes delta-seconds.
type Delta struct {
	// Set says that the directive is present.
	Set bool
	// Valid says that its argument is a non-negative integer. What is set and
	// not valid counts towards stale (RFC 9111 §4.2.1).
	Valid bool
	// Value is between 0 and 2³¹ s; 0 if not valid.
	Value time.Duration
}

// Directives are the cache directives of one message. The same type serves
// requests (RFC 9111 §5.2.1) and responses (§5.2.2, RFC 5861, RFC 9213).
// Unknown directives leave no trace (§5.2.3).
type Directives struct {
	// Present says that the message has a field of cache directives at all.
	Present bool
	// Targeted says that the directives are those of CDN-Cache-Control, so that
	// Cache-Control and Expires do not count (RFC 9213 §2.2).
	Targeted bool

	NoStore         bool
	NoCache         bool // the unqualified form
	Private         bool // the unqualified form
	Public          bool
	MustRevalidate  bool
	ProxyRevalidate bool
	MustUnderstand  bool
	OnlyIfCached    bool

	// NoCacheFields and PrivateFields are the fields that the qualified forms
	// no-cache="…" and private="…" list, in lower case.
	NoCacheFields, PrivateFields []string

	MaxAge, SMaxAge                    Delta
	StaleWhileRevalidate, StaleIfError Delta // RFC 5861
	MinFresh                           Delta
	MaxStale                           Delta // without an argument: any age
}

// ParseDirectives reads all lines of Cache-Control (RFC 9111 §5.2).
//
// Names are compared without case and arguments may be tokens or quoted strings.
// Of a directive that is given twice the first counts (§4.2.1), but a
// prohibition counts wherever it stands. A member that does not parse loses what
// it permits and keeps what it forbids: "private; max-age=60" is private, and
// "public; max-age=60" is nothing.
func ParseDirectives(f Fields) Directives {
	var d Directives
	for i := range f {
		if f[i].Name != "cache-control" {
			continue
		}
		d.Present = true
		for rest := f[i].Value; rest != ""; {
			var m member
			m, rest = nextMember(rest)
			d.apply(&m)
		}
	}
	return d
}

// apply takes one member of the list into account.
func (d *Directives) apply(m *member) {
	if m.raw == "" {
		return
	}
	if delta := d.delta(m.name); delta != nil {
		delta.set(m)
	}
	if !m.ok {
		d.keepProhibitions(m.raw)
		return
	}
	d.applyFlag(m)
}

// applyFlag handles the directives that take no argument, or a list of fields.
func (d *Directives) applyFlag(m *member) {
	switch {
	case strings.EqualFold(m.name, "no-store"):
		d.NoStore = true
	case strings.EqualFold(m.name, "no-cache"):
		d.NoCacheFields, d.NoCache = qualify(m, d.NoCacheFields, d.NoCache)
	case strings.EqualFold(m.name, "private"):
		d.PrivateFields, d.Private = qualify(m, d.PrivateFields, d.Private)
	case strings.EqualFold(m.name, "public"):
		d.Public = true
	case strings.EqualFold(m.name, "must-revalidate"):
		d.MustRevalidate = true
	case strings.EqualFold(m.name, "proxy-revalidate"):
		d.ProxyRevalidate = true
	case strings.EqualFold(m.name, "must-understand"):
		d.MustUnderstand = true
	case strings.EqualFold(m.name, "only-if-cached"):
		d.OnlyIfCached = true
	}
}

// delta returns where the argument of the named directive goes, or nil.
func (d *Directives) delta(name string) *Delta {
	switch {
	case strings.EqualFold(name, "max-age"):
		return &d.MaxAge
	case strings.EqualFold(name, "s-maxage"):
		return &d.SMaxAge
	case strings.EqualFold(name, "stale-while-revalidate"):
		return &d.StaleWhileRevalidate
	case strings.EqualFold(name, "stale-if-error"):
		return &d.StaleIfError
	case strings.EqualFold(name, "min-fresh"):
		return &d.MinFresh
	case strings.EqualFold(name, "max-stale"):
		return &d.MaxStale
	}
	return nil
}

// set takes the first occurrence (RFC 9111 §4.2.1).
func (v *Delta) set(m *member) {
	if v.Set {
		return
	}
	v.Set = true
	if m.ok && !m.hasArg && strings.EqualFold(m.name, "max-stale") {
		v.Valid, v.Value = true, maxDelta // RFC 9111 §5.2.1.2
		return
	}
	if m.ok {
		v.Value, v.Valid = parseDelta(m.arg)
	}
}

// parseDelta parses delta-seconds (RFC 9111 §1.2.2): digits only, never an
// overflow.
func parseDelta(s string) (time.Duration, bool) {
	if s == "" {
		return 0, false
	}
	var n time.Duration
	for i := range len(s) {
		c := s[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		n = min(n*10+time.Duration(c-'0'), maxDelta/time.Second)
	}
	return n * time.Second, true
}

// keepProhibitions finds the words that forbid something in a member that does
// not parse.
func (d *Directives) keepProhibitions(raw string) {
	for raw != "" {
		end := 0
		for end < len(raw) && isTokenByte(raw[end]) {
			end++
		}
		switch word := raw[:end]; {
		case strings.EqualFold(word, "no-store"):
			d.NoStore = true
		case strings.EqualFold(word, "no-cache"):
			d.NoCache = true
		case strings.EqualFold(word, "private"):
			d.Private = true
		case strings.EqualFold(word, "must-revalidate"):
			d.MustRevalidate = true
		case strings.EqualFold(word, "proxy-revalidate"):
			d.ProxyRevalidate = true
		}
		raw = raw[min(end+1, len(raw)):]
	}
}

// qualify adds the fields that a qualified form lists. A list that is empty, or
// names what no field can be called, or a field without which the stored
// response would be another one, makes it the unqualified form.
func qualify(m *member, fields []string, unqualified bool) ([]string, bool) {
	if !m.hasArg {
		return fields, true
	}
	names := fieldNames(m.arg)
	if names == nil || slices.ContainsFunc(names, indispensable) {
		return fields, true
	}
	return append(fields, names...), unqualified
}

// indispensable reports whether a stored response without the field would mean
// something else.
func indispensable(name string) bool {
	switch name {
	case "cache-control", "cdn-cache-control", "content-encoding", "content-length", "content-type", "vary":
		return true
	}
	return false
}

package httpcache

import (
	"time"

	"github.com/dunglas/httpsfv"
)

// targetedField is the one field of the target list (RFC 9213 §2.2, §3).
const targetedField = "cdn-cache-control"

// ResponseDirectives returns the directives that decide over a response: those
// of CDN-Cache-Control if that field is present, valid and not empty (then
// Targeted is set), else those of Cache-Control (RFC 9213 §2.2).
//
// A field that is no dictionary, or gives a directive of RFC 9111 a value of a
// type that it cannot have, is invalid as a whole and ignored (RFC 9213 §2.1). A
// negative lifetime has the right type; it counts as stale, as in Cache-Control.
func ResponseDirectives(f Fields) Directives {
	if value, ok := f.Joined(targetedField); ok {
		if d, ok := parseTargeted(value); ok {
			return d
		}
	}
	return ParseDirectives(f)
}

func parseTargeted(value string) (Directives, bool) {
	dict, err := httpsfv.UnmarshalDictionary([]string{value})
	if err != nil || len(dict.Names()) == 0 {
		return Directives{}, false
	}
	d := Directives{Present: true, Targeted: true}
	for _, name := range dict.Names() {
		v, _ := dict.Get(name)
		if !d.applyTargeted(name, v) {
			return Directives{}, false
		}
	}
	return d, true
}

// applyTargeted takes one member into account and reports whether its value has
// a type that the directive can have.
func (d *Directives) applyTargeted(name string, v httpsfv.Member) bool {
	item, _ := v.(httpsfv.Item) // an inner list has no Value, so no type fits
	if delta := d.delta(name); delta != nil {
		seconds, ok := item.Value.(int64)
		if !ok {
			return false
		}
		*delta = Delta{Set: true}
		if seconds >= 0 {
			delta.Valid = true
			delta.Value = min(time.Duration(seconds), maxDelta/time.Second) * time.Second
		}
		return true
	}
	m := member{raw: name, name: name, ok: true}
	switch name {
	case "no-cache", "private":
		switch value := item.Value.(type) {
		case string:
			m.arg, m.hasArg = value, true
		case httpsfv.Token:
			m.arg, m.hasArg = string(value), true
		case bool:
			if !value {
				return false
			}
		default:
			return false
		}
	case "no-store", "public", "must-revalidate", "proxy-revalidate", "must-understand":
		if value, ok := item.Value.(bool); !ok || !value {
			return false
		}
	default:
		return true // unknown: ignored, whatever its type
	}
	d.applyFlag(&m)
	return true
}

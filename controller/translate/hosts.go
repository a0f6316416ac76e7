package translate

import (
	"slices"
	"strings"
)

// intersect returns the host that a route's hostname and a listener's have in common:
// the more specific of the two. An empty one stands for every host, and "*." for one or
// more labels.
func intersect(listener, route string) (string, bool) {
	switch {
	case listener == "" || listener == route:
		return route, true
	case route == "":
		return listener, true
	case covers(listener, route):
		return route, true
	case covers(route, listener):
		return listener, true
	}
	return "", false
}

// covers reports whether every host of name is one of pattern, a wildcard.
func covers(pattern, name string) bool {
	suffix, wild := strings.CutPrefix(pattern, "*")
	if !wild {
		return false
	}
	name = strings.TrimPrefix(name, "*")
	return len(name) > len(suffix) && strings.HasSuffix(name, suffix)
}

// commonHosts returns what the hostnames of a route have in common with a listener's:
// none for every host. False: nothing.
func commonHosts(listener string, route []string) ([]string, bool) {
	if len(route) == 0 {
		if listener == "" {
			return nil, true
		}
		return []string{listener}, true
	}
	if listener == "" {
		return route, true
	}
	var out []string
	for _, name := range route {
		if host, ok := intersect(listener, name); ok && !slices.Contains(out, host) {
			out = append(out, host)
		}
	}
	return out, len(out) > 0
}

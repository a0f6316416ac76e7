package cachepolicy

import (
	"strings"
	"time"
)

// Binding attaches a policy to what Envoy calls a route.
type Binding struct {
	Policy *Policy
	// Scope is the first part of every cache key made under this binding. Two
	// routes with different scopes share no entry.
	Scope string
	// Route is the name of the route in Envoy's configuration (xds.route_name);
	// empty if only the policy's name leads here. Under a controller it is the scope,
	// which Find knows too.
	Route string
	// Namespace is that of the route, whose tenant's answers are stored under this
	// binding, wherever its policy is from; empty: the policy's.
	Namespace string
	// Entrances are where detached fetches may come back into Envoy. Under a
	// controller none means that none is possible.
	Entrances []*Entrance
	// Fed: the binding is a controller's, which says by what entrances detached
	// fetches come in.
	Fed bool
	// MessageTimeout and MaxMessageTimeout are what the ext_proc filter on the route is
	// configured with; both 0: what the process's flags say.
	MessageTimeout, MaxMessageTimeout time.Duration
}

// Tenant returns the namespace in which invalidations cover what is stored under the
// binding.
func (b *Binding) Tenant() string {
	if b.Namespace != "" {
		return b.Namespace
	}
	return b.Policy.Namespace
}

// Tenant returns the namespace in which invalidations cover what is stored under the
// key: the first part of its scope.
func (k *Key) Tenant() string {
	scope, ok := k.scope()
	if !ok {
		return ""
	}
	namespace, _, _ := strings.Cut(scope, "/")
	return namespace
}

// Entrance is a place where detached fetches come back into Envoy: a listener. It is
// immutable; a changed one is another.
type Entrance struct {
	Name    string   // unique
	Address string   // host:port
	Scheme  string   // http | https: of the requests that come in here
	Hosts   []string // that the listener serves, "*.example" is a suffix; none: every host
	CA      string   // PEM; empty with https: the system's
}

// Serves reports whether requests with this scheme and authority may come in here.
func (e *Entrance) Serves(scheme, authority string) bool {
	if scheme != e.Scheme {
		return false
	}
	host := hostOf(authority)
	for _, pattern := range e.Hosts {
		if matchesHost(pattern, host) {
			return true
		}
	}
	return len(e.Hosts) == 0
}

// matchesHost reports whether a host is a pattern's: the same, or under the suffix
// of one that begins with "*.".
func matchesHost(pattern, host string) bool {
	if suffix, ok := strings.CutPrefix(pattern, "*"); ok {
		return strings.HasSuffix(host, suffix) && len(host) > len(suffix)
	}
	return pattern == host
}

// hostOf returns the host of an authority in lower case, without its port.
func hostOf(authority string) string {
	if i := strings.LastIndexByte(authority, ':'); i >= 0 && strings.IndexByte(authority[i:], ']') < 0 {
		authority = authority[:i]
	}
	return asciiLower(authority)
}

// asciiLower turns A-Z to lower case, and no other letters; it allocates only where
// there are some.
func asciiLower(s string) string {
	for i := range len(s) {
		if lower(s[i]) != s[i] {
			b := []byte(s)
			for ; i < len(b); i++ {
				b[i] = lower(b[i])
			}
			return string(b)
		}
	}
	return s
}

package cachepolicy

import (
	"strconv"
	"time"

	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
)

// NegativeTTL is the compiled negativeTTL list. The maps are read-only.
type NegativeTTL struct {
	Exact          map[int]time.Duration // by status, 400 to 599
	Class          map[int]time.Duration // by first digit, 4 or 5
	Unreachable    time.Duration         // meaningful if HasUnreachable
	HasUnreachable bool
}

// statusUnreachable names the answers Envoy makes itself when it has no origin.
const statusUnreachable = "Unreachable"

// For returns the lifetime of an error answer and whether the policy names one.
// An exact status beats its class. An answer that Envoy made itself falls under
// Unreachable alone: the origin did not say it, so the origin's statuses say
// nothing about it.
func (n *NegativeTTL) For(status int, unreachable bool) (time.Duration, bool) {
	if unreachable {
		return n.Unreachable, n.HasUnreachable
	}
	if ttl, ok := n.Exact[status]; ok {
		return ttl, true
	}
	ttl, ok := n.Class[status/100]
	return ttl, ok
}

func compileNegativeTTL(list []v1alpha1.NegativeTTL) NegativeTTL {
	var n NegativeTTL
	for i := range list {
		ttl := duration(list[i].TTL, 0)
		switch s := list[i].Status; s {
		case statusUnreachable:
			n.Unreachable, n.HasUnreachable = ttl, true
		case "4xx", "5xx":
			put(&n.Class, int(s[0]-'0'), ttl)
		default:
			status, _ := strconv.Atoi(s) // Validate saw it
			put(&n.Exact, status, ttl)
		}
	}
	return n
}

func put(m *map[int]time.Duration, k int, v time.Duration) {
	if *m == nil {
		*m = make(map[int]time.Duration)
	}
	(*m)[k] = v
}

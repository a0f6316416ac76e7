package e2e_test

import (
	"strings"
	"testing"

	"github.com/weirproxy/weir/e2e/harness"
)

// outcomeOf reads from weir's member of Cache-Status under which outcome a request must have been counted; "" where
// weir put none, which stands for all outcomes that are silent.
func outcomeOf(l harness.AccessLogEntry) string {
	i := strings.LastIndex(l.CacheStatus, "weir")
	if i < 0 {
		return ""
	}
	param := make(map[string]string)
	for _, p := range strings.Split(l.CacheStatus[i:], "; ")[1:] {
		name, value, _ := strings.Cut(p, "=")
		param[name] = value
	}
	if _, ok := param["hit"]; ok {
		return hitOutcome(param)
	}
	_, stored := param["stored"]
	_, collapsed := param["collapsed"]
	answered := param["fwd-status"] != ""
	switch {
	case strings.HasPrefix(l.Details, "weir_unavailable"):
		return "unavailable"
	case strings.HasPrefix(l.Details, "weir_only_if_cached"):
		return "only_if_cached"
	case param["detail"] == "stale-if-error":
		return "stale_if_error"
	case param["fwd"] == "method":
		return "bypass_method"
	case param["fwd-status"] == "304" && l.Details == "via_upstream" && l.Code != 304 || stored && param["fwd-status"] == "304":
		return "revalidated"
	case stored:
		return "miss"
	case collapsed && !answered:
		return "coalesced"
	default:
		return "miss_uncacheable"
	}
}

func hitOutcome(param map[string]string) string {
	switch param["detail"] {
	case "negative":
		return "hit_negative"
	case "stale-if-error":
		return "stale_if_error"
	case "stale-slow-origin":
		return "stale_slow"
	case "origin-limits":
		return "stale_overflow"
	}
	if strings.HasPrefix(param["ttl"], "-") {
		return "hit_stale"
	}
	return "hit"
}

// silent reports whether requests that end so carry no Cache-Status of weir's: it had no part in the answer.
func silent(outcome string) bool {
	switch outcome {
	case "bypass_request", "bypass_policy", "bypass_mode", "shadow", "local_reply", "error", "canceled":
		return true
	default:
		return false
	}
}

func TestOutcomeOf(t *testing.T) {
	t.Parallel()
	tests := []struct{ cacheStatus, details, want string }{
		{"", "via_upstream", ""},
		{"other; hit", "via_upstream", ""},
		{"weir; hit; ttl=5", "weir_hit", "hit"},
		{"weir; hit; ttl=-5", "weir_hit", "hit_stale"},
		{"weir; hit; ttl=-5; detail=stale-if-error", "weir_hit", "stale_if_error"},
		{"other; hit, weir; fwd=uri-miss; fwd-status=200; stored", "via_upstream", "miss"},
		{"weir; fwd=uri-miss; fwd-status=200; detail=private", "via_upstream", "miss_uncacheable"},
		{"weir; fwd=uri-miss; collapsed", "ext_proc_local_response", "coalesced"},
		{"weir; fwd=stale; fwd-status=304; stored", "via_upstream", "revalidated"},
		{"weir; fwd=method; fwd-status=200", "via_upstream", "bypass_method"},
		{"weir; fwd=uri-miss; collapsed", "weir_unavailable", "unavailable"},
	}
	for _, tt := range tests {
		got := outcomeOf(harness.AccessLogEntry{CacheStatus: tt.cacheStatus, Details: tt.details, Code: 200})
		if got != tt.want {
			t.Errorf("%q: %q, want %q", tt.cacheStatus, got, tt.want)
		}
	}
}

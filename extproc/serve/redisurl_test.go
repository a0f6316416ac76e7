package serve

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// TestRedisURLShowsNoPassword, not even where what was given is no URL.
func TestRedisURLShowsNoPassword(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"":                            "",
		"redis://redis:6379/1":        "redis://redis:6379/1",
		"redis://weir@redis/1":        "redis://weir@redis/1",
		"redis://weir:pa55@redis/1":   "redis://weir:xxxxx@redis/1",
		"rediss://:pa55@redis":        "rediss://:xxxxx@redis",
		"redis://weir:pa55@x@redis/1": "redis://weir:xxxxx@redis/1",
		"redis://weir:pa55/x@redis/1": "redis://weir:xxxxx@redis/1",
		"redis://weir:pa55?x@redis":   "redis://weir:xxxxx@redis",
		"weir:pa55@redis":             "weir:xxxxx@redis",
		"redis+sentinel://u:pa55@a:1,b:2/mymaster?sentinel-auth": "redis+sentinel://u:xxxxx@a:1,b:2/mymaster?sentinel-auth",
	}
	for raw, want := range tests {
		u := RedisURL(raw)
		if got := u.String(); got != want {
			t.Errorf("%q is shown as %q, want %q", raw, got, want)
		}
	}
}

// TestNoPasswordIsLogged: the effective configuration is, and what is wrong with it.
func TestNoPasswordIsLogged(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"redis://weir:pa55word@redis:6379/x", "http://weir:pa55word@redis", "pa55word@@://"} {
		var log bytes.Buffer
		err := start(t.Context(), "v1", []string{"--policy-dir=" + t.TempDir(), "--redis-url=" + raw}, io.Discard, &log, nil)
		if err == nil {
			t.Fatalf("%s: no error", raw)
		}
		if strings.Contains(err.Error(), "pa55word") || strings.Contains(log.String(), ":pa55word") {
			t.Errorf("%s: the password is shown: %v\n%s", raw, err, log.String())
		}
	}
}

package cachepolicy_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/weirproxy/weir/cachepolicy"
)

// FuzzParseDuration holds the parser to the pattern of GEP-2257, which the
// schema uses.
func FuzzParseDuration(f *testing.F) {
	for _, s := range []string{"", "0s", "250ms", "1m30s", "99999h99999h99999h99999h",
		"1.5s", "-1s", "1h1h1h1h1h", "1µs"} {
		f.Add(s)
	}
	pattern := regexp.MustCompile(`^([0-9]{1,5}(h|m|s|ms)){1,4}$`)
	f.Fuzz(func(t *testing.T, s string) {
		got, err := cachepolicy.ParseDuration(s)
		if (err == nil) != pattern.MatchString(s) {
			t.Fatalf("ParseDuration(%q) = %v, %v; the pattern says otherwise", s, got, err)
		}
		if err != nil {
			return
		}
		if want, err := time.ParseDuration(s); err != nil || got != want || got < 0 {
			t.Fatalf("ParseDuration(%q) = %v, want %v, %v", s, got, want, err)
		}
	})
}

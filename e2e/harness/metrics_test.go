package harness

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMetrics(t *testing.T) {
	t.Parallel()
	before, err := parseMetrics("# HELP a b\na{x=\"1 2\"} 1\na{x=\"3\"} 5\nab 7\n")
	if err != nil {
		t.Fatal(err)
	}
	after, err := parseMetrics("a{x=\"1 2\"} 4\na{x=\"3\"} 5\nab 9.5e+00\n\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := after.Sum("a"); got != 9 {
		t.Errorf("Sum = %v, want 9", got)
	}
	if diff := cmp.Diff(Metrics{`a{x="1 2"}`: 3}, after.Since(before, "a")); diff != "" {
		t.Errorf("Since (-want +got):\n%s", diff)
	}
	for _, bad := range []string{"lonely\n", "a one\n"} {
		if _, err := parseMetrics(bad); err == nil {
			t.Errorf("parseMetrics(%q) took it", bad)
		}
	}
}

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRow(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	term := &terminal{w: &out}
	term.begin(1, "a first request: a miss")
	term.row(1, "a first request: a miss", outcome{
		requests: 1, fetches: 1, latencies: []time.Duration{301 * time.Millisecond},
		statuses: map[int]int{200: 1}, cache: map[string]int{"uri-miss": 1}, bodies: 1,
	}, []check{{"it held", true}})
	term.row(12, "with weir", outcome{
		requests: 250, errors: 2, fetches: 3,
		latencies: []time.Duration{900 * time.Microsecond, 2 * time.Second},
		statuses:  map[int]int{200: 247, 503: 1}, cache: map[string]int{"none": 248},
	}, []check{{"it held", true}, {"it broke", false}})
	want := `   1 a first request: a miss             1       1   301 ms   301 ms   301 ms ✓ 200 ×1   uri-miss ×1
  12 with weir                         250       3  2000 ms  2000 ms  2000 ms ✗ 200 ×247  503 ×1  broken ×2
     did not hold: it broke
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

func TestPaint(t *testing.T) {
	t.Parallel()
	if got := (&terminal{}).paint(red, "x"); got != "x" {
		t.Errorf("not a terminal: %q", got)
	}
	if got := (&terminal{styled: true}).paint(red, "x"); got != "\x1b[31mx\x1b[0m" {
		t.Errorf("a terminal: %q", got)
	}
}

// TestScenesHoldTheirNumbers fails a scene whose checks take any outcome.
func TestScenesHoldTheirNumbers(t *testing.T) {
	t.Parallel()
	for _, sc := range scenes() {
		held := true
		for _, c := range sc.checks(outcome{requests: 7, errors: 7, fetches: 100}) {
			held = held && c.held
		}
		if held {
			t.Errorf("%q takes an outcome in which nothing worked", sc.title)
		}
	}
}

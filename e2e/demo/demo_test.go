package main

import (
	"strings"
	"testing"
)

// TestDemo plays the show as make demo ONCE=1 does.
func TestDemo(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := run(t.Context(), &terminal{w: &out}, true)
	if err != nil || !strings.Contains(out.String(), "numbers held.") {
		t.Errorf("error: %v; output:\n%s", err, out.String())
	}
}

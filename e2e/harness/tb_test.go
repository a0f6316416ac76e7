package harness_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirproxy/weir/e2e/harness"
)

func TestRun(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	var steps []string
	var dir string
	err := harness.Run(t.Context(), &log, func(tb harness.TB) {
		dir = tb.TempDir()
		tb.Cleanup(func() { steps = append(steps, "first", errText(tb.Context().Err())) })
		tb.Cleanup(func() { steps = append(steps, "second") })
		tb.Logf("at work: %d", 1)
		if tb.Failed() {
			tb.Fatalf("failed before it failed")
		}
		tb.Fatalf("no good: %d", 2)
		steps = append(steps, "went on after Fatalf")
	})
	if err == nil || err.Error() != "no good: 2" {
		t.Errorf("error: %v", err)
	}
	if diff := cmp.Diff([]string{"second", "first", context.Canceled.Error()}, steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if log.String() != "at work: 1\n" {
		t.Errorf("log: %q", log.String())
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("work folder is still there: %v", err)
	}
}

func errText(err error) string {
	if err == nil {
		return "nil"
	}
	return err.Error()
}

func TestEventuallyFails(t *testing.T) {
	t.Parallel()
	looks := 0
	err := harness.Run(t.Context(), os.Stderr, func(tb harness.TB) {
		harness.Eventually(tb, time.Millisecond, "pigs fly", func() bool { looks++; return false })
	})
	if err == nil || !strings.Contains(err.Error(), "pigs fly") || looks == 0 {
		t.Errorf("error %v after %d looks", err, looks)
	}
}

// TestMissingTool must not run beside tests that look for tools: it moves the folder they are in.
func TestMissingTool(t *testing.T) {
	t.Setenv("WEIR_TOOLS_DIR", t.TempDir())
	err := harness.Run(t.Context(), os.Stderr, func(tb harness.TB) { harness.EnvoyBinary(tb) })
	if err == nil || !strings.Contains(err.Error(), "run make tools") {
		t.Errorf("error: %v, want the command that helps", err)
	}
}

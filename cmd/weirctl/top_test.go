package main

import (
	"bytes"
	"context"
	"net/url"
	"strings"
	"testing"
	"time"
)

// stopper is a terminal that somebody leaves after so many screens.
type stopper struct {
	bytes.Buffer
	left int
	stop context.CancelFunc
}

func (s *stopper) Write(p []byte) (int, error) {
	if s.left--; s.left == 0 {
		s.stop()
	}
	return s.Buffer.Write(p)
}

// TestWatchTop: each screen is drawn over the last, in one write; Ctrl-C is no
// error; what clients wrote does not steer the terminal.
func TestWatchTop(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	screen := &stopper{left: 3, stop: cancel}
	c := &cli{out: screen, adminAddress: adminAPI(t, &fake{}), timeout: 10 * time.Second}
	a, err := c.client()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.watchTop(ctx, a, url.Values{"limit": {"3"}}, time.Nanosecond); err != nil {
		t.Fatal(err)
	}
	screens := strings.Split(screen.String(), cursorHome)
	if len(screens) != 3 || screens[0] != eraseAll {
		t.Fatalf("%d screens: %q", len(screens)-1, screen.String())
	}
	for _, s := range screens[1:] {
		if !strings.Contains(s, "https://shop.example/p?id=7") || !strings.HasSuffix(s, eraseBelow) ||
			strings.Contains(s, eraseAll) || strings.Count(s, "\n") != strings.Count(s, eraseRight+"\n") {
			t.Errorf("screen %q", s)
		}
	}
}

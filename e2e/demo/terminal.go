package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"
)

// terminal prints the show: aligned text, with colours only where a terminal shows it.
type terminal struct {
	w      io.Writer
	styled bool
}

func newTerminal(f *os.File) *terminal {
	info, err := f.Stat()
	isTerminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	return &terminal{w: f, styled: isTerminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// style is an ANSI "select graphic rendition" sequence.
type style string

const (
	bold  style = "\x1b[1m"
	dim   style = "\x1b[2m"
	red   style = "\x1b[31m"
	green style = "\x1b[32m"
	cyan  style = "\x1b[36m"
)

func (t *terminal) paint(s style, text string) string {
	if !t.styled {
		return text
	}
	return string(s) + text + "\x1b[0m"
}

func (t *terminal) println(parts ...string) { fmt.Fprintln(t.w, strings.Join(parts, "")) }

func (t *terminal) title(s *stage) {
	edge, origin := s.envoy.Address(), s.origin.Address()
	gap := strings.Repeat(" ", utf8.RuneCountInString("  clients  ──▶  "))
	t.println()
	t.println("  ", t.paint(bold, "weir"), ": one fetch, however many ask")
	t.println()
	t.println("  clients  ──▶  ", t.paint(cyan, "Envoy"), " ", edge, "  ──▶  ", t.paint(cyan, "origin"), " ", origin,
		fmt.Sprintf(" (%v a page)", cost))
	t.println(gap, "  │ ext_proc")
	t.println(gap, "  ▼")
	t.println(gap, t.paint(cyan, "weir"), "  ", s.weir.GRPCAddress)
	t.println()
	t.println(t.paint(dim, fmt.Sprintf("     %-28s %8s %7s %8s %8s %8s   %s",
		"", "requests", "origin", "p50", "p99", "max", "what clients got")))
}

func (t *terminal) act(text string) {
	t.println()
	t.println("  ", t.paint(bold, text))
}

// begin shows what is going on, where the line can be written over.
func (t *terminal) begin(n int, title string) {
	if t.styled {
		fmt.Fprintf(t.w, "  %2d %-28s %s", n, title, t.paint(dim, "…"))
	}
}

// row prints a scene's line, and below it each number that did not hold.
func (t *terminal) row(n int, title string, o outcome, checks []check) {
	if t.styled {
		fmt.Fprint(t.w, "\r\x1b[K")
	}
	mark := t.paint(green, "✓")
	for _, c := range checks {
		if !c.held {
			mark = t.paint(red, "✗")
		}
	}
	t.println(fmt.Sprintf("  %2d %-28s %8d ", n, title, o.requests), t.paint(bold, fmt.Sprintf("%7d", o.fetches)),
		fmt.Sprintf(" %8s %8s %8s %s %s", millis(o.p(50)), millis(o.p(99)), millis(o.max()), mark, got(o)))
	for _, c := range checks {
		if !c.held {
			t.println("     ", t.paint(red, "did not hold: "+c.what))
		}
	}
}

// got is what clients got: statuses, and what Cache-Status said where weir was asked.
func got(o outcome) string {
	text := tally(o.statuses)
	if o.errors > 0 {
		text += fmt.Sprintf("  broken ×%d", o.errors)
	}
	if o.cache["none"] < o.requests-o.errors {
		text += "   " + tally(o.cache)
	}
	return text
}

// millis writes a time in milliseconds, with a decimal where it is short.
func millis(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	if ms < 10 {
		return fmt.Sprintf("%.1f ms", ms)
	}
	return fmt.Sprintf("%.0f ms", ms)
}

func (t *terminal) verdict(total, failed int) {
	t.println()
	if failed == 0 {
		t.println("  ", t.paint(green, fmt.Sprintf("All %d numbers held.", total)))
	} else {
		t.println("  ", t.paint(red, fmt.Sprintf("%d of %d numbers did not hold.", failed, total)))
	}
	t.println()
}

// invite says what to try.
func (t *terminal) invite(s *stage) {
	origin := "http://" + s.origin.Address()
	lines := [][2]string{
		{"curl -i " + s.envoy.URL("/catalog/7"), "twice: miss, hit; look at Cache-Status and Age"},
		{"curl -i " + s.envoy.URL("/direct/catalog/7"), "the same without weir"},
		{"curl -i " + s.envoy.URL("/report"), "lives for a second"},
		{"curl " + origin + "/control/slow", "then /report again; also failing, fast"},
		{"curl 'http://" + s.weir.AdminAddress + "/v1/explain?route=catalog&url=" + s.envoy.URL("/catalog/7") + "'", "why"},
		{"curl http://" + s.weir.AdminAddress + "/v1/status", "what weir holds"},
		{"curl http://" + s.weir.MetricsAddress + "/metrics", "Prometheus"},
		{"curl http://" + s.envoy.AdminAddress() + "/stats?filter=ext_proc", "Envoy's side"},
	}
	t.println("  ", t.paint(bold, "Everything is still running. Try:"))
	for _, l := range lines {
		t.println("    ", t.paint(cyan, l[0]))
		t.println("        ", t.paint(dim, l[1]))
	}
	t.println()
	t.println("  Policies are files in ", s.weir.PolicyDir, "; edit one and it is in force.")
	t.println("  Ctrl-C ends it.")
}

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// progress shows how far something is: a bar on a terminal, else a line every ten
// percent.
type progress struct {
	w     io.Writer
	total int
	bar   bool
	shown int // tenths, or -1
}

func newProgress(w io.Writer, total int) *progress {
	return &progress{w: w, total: total, bar: isTerminal(w), shown: -1}
}

// isTerminal reports whether somebody looks at w.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (p *progress) show(done int) {
	const width = 40
	share := 1.0
	if p.total > 0 {
		share = float64(done) / float64(p.total)
	}
	if p.bar {
		full := int(width * share)
		fmt.Fprintf(p.w, "\r[%s%s] %3.0f %% %d/%d", strings.Repeat("█", full), strings.Repeat("░", width-full),
			100*share, done, p.total)
		return
	}
	if tenths := int(10 * share); tenths > p.shown {
		p.shown = tenths
		fmt.Fprintf(p.w, "%3d %%  %d of %d\n", 10*tenths, done, p.total)
	}
}

// end leaves the line of the bar.
func (p *progress) end() {
	if p.bar {
		fmt.Fprintln(p.w)
	}
}

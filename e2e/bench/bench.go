package bench

import (
	"fmt"
	"time"

	"github.com/weirproxy/weir/e2e/harness"
)

// Sample is what one request cost, CPU in µs.
type Sample struct {
	Case   string  `json:"case"` // hit, pass, …
	Bytes  int     `json:"bytes"`
	What   string  `json:"what"` // whom it was measured with
	Envoy  float64 `json:"envoyMicros"`
	Server float64 `json:"serverMicros"`
}

// Report is all that a run measured.
type Report struct {
	Date    time.Time `json:"date"`
	Rows    []Row     `json:"rows"`
	Samples []Sample  `json:"samples"`
}

// bench is a run.
type bench struct {
	scale    Scale
	programs programs
	report   Report
}

// Run measures and returns what it found.
func Run(tb harness.TB, s Scale, now time.Time) Report {
	tb.Helper()
	b := newBench(tb, s)
	b.report.Date = now
	b.goalRows(tb)
	if s.Groups == 0 {
		return b.report
	}
	c := b.startCrowds(tb)
	b.stampedeRows(tb, c)
	b.delayRows(tb, c)
	b.heldRows(tb)
	b.lookupRows(tb)
	b.feedRows(tb)
	return b.report
}

func (b *bench) add(r Row) { b.report.Rows = append(b.report.Rows, r) }

// note keeps what each subject cost.
func (b *bench) note(name string, size int, m measurement) {
	for _, who := range m.names {
		c := m.median(who)
		b.report.Samples = append(b.report.Samples, Sample{
			Case: name, Bytes: size, What: who, Envoy: micros(c.envoy), Server: micros(c.server),
		})
		fmt.Fprintf(os.Stderr, "%s %s envoy %.1f server %.1f\n", name, who, micros(c.envoy), micros(c.server))
	}
}

func newBench(tb harness.TB, s Scale) *bench {
	tb.Helper()
	return &bench{scale: s, programs: programs{dir: tb.TempDir(), built: map[string]bool{}}}
}

package bench

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/weirproxy/weir/e2e/harness"
)

// bench is a run.
type bench struct {
	scale    Scale
	programs programs
	report   Report
}

func newBench(tb harness.TB, s Scale) *bench {
	tb.Helper()
	return &bench{scale: s, programs: programs{dir: tb.TempDir(), built: map[string]bool{}}}
}

// part is something that is measured by itself, with processes of its own.
type part struct {
	name    string
	measure func(b *bench, tb harness.TB)
}

// parts are all parts, in the order of the report.
func parts() []part {
	return []part{
		{"hits", (*bench).goalRows},
		{"stampedes", (*bench).stampedeRows},
		{"caches", (*bench).compareRows},
		{"limits", (*bench).limitRows},
		{"held", (*bench).heldRows},
		{"lookups", (*bench).lookupRows},
		{"feed", (*bench).feedRows},
	}
}

// PartNames lists the parts that Run knows.
func PartNames() string {
	var names []string
	for _, p := range parts() {
		names = append(names, p.name)
	}
	return strings.Join(names, ",")
}

// Run measures the parts named, separated by commas, or all, and returns what it found. Each part's processes end
// before the next begins.
func Run(tb harness.TB, s Scale, only string, now time.Time) Report {
	tb.Helper()
	b := newBench(tb, s)
	b.report.Date, b.report.Machine = now, machine()
	for _, p := range parts() {
		if only != "" && !strings.Contains(","+only+",", ","+p.name+",") {
			continue
		}
		start := time.Now()
		if err := harness.Run(tb.Context(), os.Stderr, func(tb harness.TB) { p.measure(b, tb) }); err != nil {
			tb.Fatalf("%s: %v", p.name, err)
		}
		tb.Logf("%s: measured in %v", p.name, time.Since(start).Round(time.Second))
	}
	return b.report
}

func (b *bench) add(r Row) { b.report.Rows = append(b.report.Rows, r) }

// note keeps what each subject cost.
func (b *bench) note(about sample, m measurement) {
	for _, who := range m.names {
		c := m.median(who)
		if about.transport = "tcp"; who == laneUnix {
			about.transport = "unix"
		}
		b.report.Samples = append(b.report.Samples, Sample{
			Case: about.of, Bytes: about.bytes, Protocol: about.protocol, Transport: about.transport,
			What: who, Envoy: micros(c.envoy), Server: micros(c.server),
		})
	}
}

// sample says what a measurement was of.
type sample struct {
	of                  string
	bytes               int
	protocol, transport string
}

// machine says what this runs on, and how busy it is.
func machine() string {
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		load = []byte("unknown")
	}
	average, _, _ := strings.Cut(string(load), " ")
	return fmt.Sprintf("%d cores, %s, load average at the start %s", runtime.NumCPU(), runtime.Version(), average)
}

package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/weirproxy/weir/e2e/bench/held"
	"github.com/weirproxy/weir/e2e/harness"
)

// heldRows measures what entries occupy, each count in a process of its own, and what a look-up takes among them.
func (b *bench) heldRows(tb harness.TB) {
	tb.Helper()
	few := b.held(tb, 10, 1<<10)
	small := b.held(tb, b.scale.Small, 1<<10)
	b.heldRow("held_bytes_ratio_1m_1k", small)
	b.add(Judged(Row{
		Name: "get_1m_vs_10_entries", Unit: "ns", Value: small.GetNanos, Baseline: few.GetNanos,
		Ratio: small.GetNanos / few.GetNanos, What: fmt.Sprintf("look-up of 16 k keys among %d entries ÷ of 10 among 10: "+
			"the difference is what the processor's caches do not hold", small.Entries),
	}))
	n := b.scale.Large
	if room := int(available(tb) * 3 / 5 >> 20); n > room {
		tb.Logf("memory for %d of %d entries of 1 MiB", room, n)
		n = room
	}
	b.heldRow("held_bytes_ratio_10k_1m", b.held(tb, n, 1<<20))
}

func (b *bench) heldRow(name string, r held.Result) {
	row := Judged(Row{
		Name: name, Unit: "bytes", Value: float64(r.Heap), Baseline: float64(r.Payload),
		Ratio: float64(r.Heap) / float64(r.Payload),
	})
	row.What += fmt.Sprintf(" (measured with %d entries; resident ÷ payload %.2f, held ÷ accounted %.2f)",
		r.Entries, float64(r.Resident)/float64(r.Payload), float64(r.Heap)/float64(r.Accounted))
	b.add(row)
}

func (b *bench) held(tb harness.TB, entries, size int) held.Result {
	tb.Helper()
	out, err := exec.CommandContext(tb.Context(), b.programs.path(tb, "held"), strconv.Itoa(entries),
		strconv.Itoa(size)).Output()
	var r held.Result
	if err == nil {
		err = json.Unmarshal(out, &r)
	}
	if err != nil {
		tb.Fatalf("measure what %d entries of %d bytes occupy: %v", entries, size, err)
	}
	return r
}

// available is the memory that the kernel could give to a process now.
func available(tb harness.TB) int64 {
	tb.Helper()
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		tb.Fatalf("read how much memory there is: %v", err)
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "MemAvailable:"); ok {
			kib, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kib << 10
		}
	}
	tb.Fatalf("read how much memory there is: no MemAvailable")
	return 0
}

package bench

import (
	"fmt"
	"net"
	"regexp"
	"strconv"
	"time"

	"github.com/weirproxy/weir/e2e/harness"
)

const (
	scanLimit = 128 << 20 // --memory-limit of the weir that is scanned
	scanGo    = 256 << 20 // its GOMEMLIMIT
	// stalledSize is more than the kernel's buffers of a connection take.
	stalledSize = 8 << 20
)

// limitRows measures memory where it is short: under a scan of one-time keys, and with clients that stop reading.
func (b *bench) limitRows(tb harness.TB) {
	tb.Helper()
	origin := harness.StartOrigin(tb)
	for path, size := range map[string]int{"/scan/": 1 << 20, "/stalled": stalledSize} {
		origin.Handle(path, harness.Always(harness.Reply{Header: cacheable(), Size: size}))
	}
	w, server := startWeir(tb, harness.WeirOptions{
		Args: []string{"--memory-limit=" + strconv.Itoa(scanLimit)},
		Env:  []string{"GOMEMLIMIT=" + strconv.Itoa(scanGo), "GODEBUG=gctrace=1"},
	})
	nginx := startNginx(tb, origin.Address())
	// An Envoy for each: memory that was freed is used again, and would not show.
	stage := func(lane Lane, c Cluster) *Stage {
		return startStage(tb, []Lane{lane}, []Cluster{{Name: "origin", Addresses: []string{origin.Address()}}, c})
	}
	b.stall(tb, stage(Lane{Name: laneNginx, Upstream: laneNginx}, nginx.http1Cluster(laneNginx)), laneNginx, w)
	s := stage(Lane{Name: laneWeir, Filter: laneWeir, Upstream: "origin"}, server.cluster(laneWeir))
	b.stall(tb, s, laneWeir, w)
	b.scan(tb, s, w)
}

// scan asks once for each of many keys.
func (b *bench) scan(tb harness.TB, s *Stage, w *harness.Weir) {
	tb.Helper()
	load{url: s.url(laneWeir, "/scan"), requests: b.scale.Scanned, clients: 1, sent: new(int)}.run(tb)
	b.add(Judged(Row{
		Name: "scan_resident_bytes", Unit: "bytes", Value: float64(w.ResidentBytes()), Baseline: scanGo,
		Ratio: float64(w.ResidentBytes()) / scanGo,
		What: fmt.Sprintf("resident memory of weir after %d one-time answers of 1 MiB, with --memory-limit=128Mi ÷ "+
			"GOMEMLIMIT", b.scale.Scanned),
	}))
	if share, ok := gcShare(w.Output()); ok {
		b.add(Judged(Row{
			Name: "gc_cpu_percent_scan", Unit: "%", Value: share,
			What: "the collector's share of weir's CPU in that scan, as the runtime tells it",
		}))
	}
}

// gcLine is a line of GODEBUG=gctrace=1: the percentage is the collector's since the start.
var gcLine = regexp.MustCompile(`gc \d+ @[0-9.]+s (\d+)%`)

func gcShare(output string) (percent float64, ok bool) {
	all := gcLine.FindAllStringSubmatch(output, -1)
	if len(all) == 0 {
		return 0, false
	}
	percent, err := strconv.ParseFloat(all[len(all)-1][1], 64)
	return percent, err == nil
}

// stall lets clients ask for a hit of 8 MiB and read nothing of it.
func (b *bench) stall(tb harness.TB, s *Stage, lane string, w *harness.Weir) {
	tb.Helper()
	address := fmt.Sprintf("127.0.0.1:%d", s.lanes[lane])
	expect(tb, s.url(lane, "/stalled"), stalledSize)
	envoy, weir := s.envoy.ResidentBytes(), w.ResidentBytes()
	for range b.scale.Stalled {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			tb.Fatalf("connect: %v", err)
		}
		defer func() { _ = conn.Close() }()
		_ = conn.(*net.TCPConn).SetReadBuffer(64 << 10) // a hint: the system rounds it
		if _, err := conn.Write([]byte("GET /stalled HTTP/1.1\r\nHost: " + address + "\r\n\r\n")); err != nil {
			tb.Fatalf("ask: %v", err)
		}
	}
	b.settled(tb, s)
	perClient := func(before, after uint64) float64 {
		return (float64(after) - float64(before)) / float64(b.scale.Stalled) / stalledSize
	}
	b.add(Judged(Row{
		Name: "stalled_envoy_objects_" + lane, Unit: "objects", Value: perClient(envoy, s.envoy.ResidentBytes()),
		What: fmt.Sprintf("memory that Envoy holds for each of %d clients that asked for 8 MiB and read nothing, "+
			"from %s, in objects", b.scale.Stalled, lane),
	}))
	if lane == laneWeir {
		b.add(Judged(Row{
			Name: "stalled_weir_objects", Unit: "objects", Value: perClient(weir, w.ResidentBytes()),
			What: "the same, that weir holds",
		}))
	}
}

// settled waits until Envoy's memory has stopped growing.
func (b *bench) settled(tb harness.TB, s *Stage) {
	tb.Helper()
	const still = 20 // looks
	last, same := s.envoy.ResidentBytes(), 0
	harness.Eventually(tb, time.Minute, "Envoy's memory stays as it is", func() bool {
		time.Sleep(200 * time.Millisecond)
		now := s.envoy.ResidentBytes()
		if now > last+last/200 {
			last, same = now, 0
			return false
		}
		same++
		return same >= still
	})
}

package serve

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

const (
	// maxGarbage is how much garbage may gather at least before a collection, where there is room: with a small cache the
	// runtime's own rule (as much as is live) collects hundreds of times a second under load, for a tenth of a hit's CPU.
	maxGarbage = 64 << 20
	// garbageShare is the part of the memory there is that maxGarbage may take.
	garbageShare = 16
	// defaultGCPercent is the runtime's own GOGC, and the least that is set here.
	defaultGCPercent = 100
	// maxGCPercent bounds what is set; 4 MiB of live heap, below which the runtime does not look, with maxGarbage.
	maxGCPercent = 1600
	// liveHeap is the heap that the last collection found in use, in bytes.
	liveHeap = "/gc/heap/live:bytes"
)

// gcPace keeps collections apart while the heap is small: after each it sets GOGC so that at least floor bytes may be
// allocated before the next. With a large heap it is the runtime's default; GOMEMLIMIT holds all the same.
type gcPace struct {
	floor   int64
	percent int // in force
	ended   atomic.Bool
}

// paceGC starts to pace the collector of this process, unless the environment says GOGC. stop sets the default again.
func paceGC(available int64) (stop func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	p := &gcPace{floor: min(maxGarbage, available/garbageShare), percent: defaultGCPercent}
	p.adjust()
	p.watch()
	return func() {
		p.ended.Store(true)
		debug.SetGCPercent(defaultGCPercent)
	}
}

// sentinel is garbage at once; it has a pointer, so that it shares its memory with nothing that lives.
type sentinel struct{ _ *sentinel }

// watch adjusts after the next collection, and after each that follows.
func (p *gcPace) watch() {
	runtime.AddCleanup(new(sentinel), func(p *gcPace) {
		if !p.ended.Load() {
			p.adjust()
			p.watch()
		}
	}, p)
}

// adjust sets GOGC for the heap that is live. A change stops the world for an instant, so small ones are not made.
func (p *gcPace) adjust() {
	sample := []metrics.Sample{{Name: liveHeap}}
	metrics.Read(sample)
	want := gcPercent(int64(sample[0].Value.Uint64()), p.floor)
	if want == p.percent || want > defaultGCPercent && want > p.percent*9/10 && want < p.percent*11/10 {
		return
	}
	p.percent = want
	debug.SetGCPercent(want)
}

// gcPercent returns GOGC for a live heap and the bytes that may be allocated at least before the next collection.
func gcPercent(live, floor int64) int {
	return int(min(max(floor*100/max(live, 1), defaultGCPercent), maxGCPercent))
}

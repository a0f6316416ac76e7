package serve

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestGCPercent(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	tests := map[string]struct {
		live, floor int64
		want        int
	}{
		"nothing measured yet":                 {0, 64 * mib, maxGCPercent},
		"below the runtime's own minimum":      {mib, 64 * mib, maxGCPercent},
		"small heap":                           {16 * mib, 64 * mib, 400},
		"as large as the floor":                {64 * mib, 64 * mib, 100},
		"large heap":                           {4 << 30, 64 * mib, 100},
		"little memory":                        {16 * mib, 8 * mib, 100},
		"a floor that no int32 of per cent is": {1, 1 << 40, maxGCPercent},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := gcPercent(tt.live, tt.floor); got != tt.want {
				t.Errorf("gcPercent(%d, %d) = %d, want %d", tt.live, tt.floor, got, tt.want)
			}
		})
	}
}

// TestPaceGC must not run beside others: GOGC is the process's.
func TestPaceGC(t *testing.T) {
	t.Setenv("GOGC", "")
	stop := paceGC(16 * maxGarbage)
	inForce := debug.SetGCPercent(defaultGCPercent)
	debug.SetGCPercent(inForce)
	if inForce <= defaultGCPercent {
		t.Errorf("GOGC is %d with a small heap, want more than the default", inForce)
	}
	stop()
	if got := debug.SetGCPercent(defaultGCPercent); got != defaultGCPercent {
		t.Errorf("GOGC is %d after the end, want the default", got)
	}

	t.Setenv("GOGC", "50")
	debug.SetGCPercent(50)
	paceGC(16 * maxGarbage)()
	if got := debug.SetGCPercent(defaultGCPercent); got != 50 {
		t.Errorf("GOGC is %d, want what the environment says", got)
	}
}

// TestPaceGCFollowsTheHeap: a collection that finds a large heap sets the default again.
func TestPaceGCFollowsTheHeap(t *testing.T) {
	p := &gcPace{floor: 1 << 20, percent: defaultGCPercent}
	defer debug.SetGCPercent(defaultGCPercent)
	large := make([]byte, 8<<20)
	runtime.GC()
	p.percent = maxGCPercent
	p.adjust()
	if p.percent != defaultGCPercent {
		t.Errorf("GOGC is %d with %d bytes live and a floor of 1 MiB", p.percent, len(large))
	}
	runtime.KeepAlive(large)
}

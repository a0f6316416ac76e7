package serve

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
)

const (
	// goMemoryPercent is the share of the cgroup's memory that the Go runtime is told to stay below (GOMEMLIMIT); the
	// rest is for what it does not count.
	goMemoryPercent = 90
	// crowdedPercent is the share of memory above which the store leaves the garbage collector little room.
	crowdedPercent = 75
)

// memoryPlan is what the process may use.
type memoryPlan struct {
	store  int64 // bytes the memory store may hold
	goSoft int64 // GOMEMLIMIT; 0: none
	// available is the memory there is: of the cgroup, else of the machine.
	available int64
}

// limitMemory settles --memory-limit, and tells the Go runtime to stay below
// the cgroup's limit unless GOMEMLIMIT says otherwise already.
func limitMemory(cfg *Config, log *slog.Logger) (memoryPlan, error) {
	available, limited, err := availableMemory(os.DirFS("/"))
	if err != nil {
		return memoryPlan{}, fmt.Errorf("--memory-limit: %w", err)
	}
	inForce := debug.SetMemoryLimit(-1)
	m, warn, err := settleMemory(&cfg.MemoryLimit, available, limited, inForce)
	if err != nil {
		return memoryPlan{}, err
	}
	m.available = available
	if m.goSoft > 0 && m.goSoft != inForce {
		debug.SetMemoryLimit(m.goSoft)
	}
	if warn {
		log.Warn("The memory limit leaves the garbage collector little room; expect more CPU",
			"memoryLimitBytes", m.store, "availableBytes", available)
	}
	log.Info("Memory", "availableBytes", available, "cgroupLimited", limited, "memoryLimitBytes", m.store,
		"goMemoryLimitBytes", m.goSoft)
	return m, nil
}

// settleMemory decides. available is the memory there is, limited whether a
// cgroup bounds it, inForce the Go runtime's limit (MaxInt64: none).
func settleMemory(l *MemoryLimit, available int64, limited bool, inForce int64,
) (m memoryPlan, crowded bool, err error) {
	switch {
	case inForce != math.MaxInt64:
		m.goSoft = inForce
		available = min(available, inForce)
	case limited:
		m.goSoft = available / 100 * goMemoryPercent
	}
	m.store = l.Of(available)
	if m.store <= 0 || m.store >= available {
		return m, false, errors.New("--memory-limit " + l.String() + ": must be below the memory there is, " +
			(&MemoryLimit{Bytes: available}).String())
	}
	return m, m.store > available/100*crowdedPercent, nil
}

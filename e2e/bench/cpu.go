package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/weirproxy/weir/e2e/harness"
)

// family returns the process and all that descend from it: nginx and Varnish work in children.
func family(pid int) []int {
	parents := map[int]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // fails on a malformed pattern only
	for _, file := range stats {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		child, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		parents[child], _ = strconv.Atoi(fields[1])
	}
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		for child, parent := range parents {
			if parent == all[i] {
				all = append(all, child)
			}
		}
	}
	return all
}

// cpuTimes returns the CPU time that each process's threads have had, to the nanosecond. The first must be there; of
// the others one may have ended, as nginx's cache loader does after a minute.
func cpuTimes(tb harness.TB, pids []int) map[int]time.Duration {
	tb.Helper()
	times := make(map[int]time.Duration, len(pids))
	for i, pid := range pids {
		t, err := processTime(pid)
		if err != nil && i == 0 {
			tb.Fatalf("read the CPU time of process %d: %v", pid, err)
		}
		if err == nil {
			times[pid] = t
		}
	}
	return times
}

// since adds up what the processes had since an earlier reading.
func since(before, after map[int]time.Duration) (sum time.Duration) {
	for pid, t := range after {
		sum += t - before[pid]
	}
	return sum
}

// processTime adds up the threads of a process. Threads that ended are missing; those of the processes measured here
// live as long as they do.
func processTime(pid int) (time.Duration, error) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(tasks) == 0 {
		return 0, errors.Join(err, errors.New("no schedstat: the process is gone, or the kernel keeps no accounts"))
	}
	var sum time.Duration
	for _, file := range tasks {
		text, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			continue // the thread has ended
		}
		if err != nil {
			return 0, err
		}
		ran, _, _ := strings.Cut(string(text), " ")
		ns, err := strconv.ParseInt(ran, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", file, err)
		}
		sum += time.Duration(ns)
	}
	return sum, nil
}

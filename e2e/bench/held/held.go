// Package held measures what entries occupy in weir's memory store. It is a process's work: its memory is all there is
// to see.
package held

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/e2e/harness"
	"github.com/weirproxy/weir/extproc"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/store/memory"
)

// Result is what entries occupy, in bytes.
type Result struct {
	Entries   int   `json:"entries"`
	Payload   int64 `json:"payload"`   // header sections as HTTP/1.1 writes them, and bodies
	Heap      int64 `json:"heap"`      // live heap more than before
	Accounted int64 `json:"accounted"` // what the store says
	Resident  int64 `json:"resident"`  // of the process
	// GetNanos is what a look-up takes among all entries, at random.
	GetNanos float64 `json:"getNanos"`
}

// Measure stores n answers with bodies of size bytes and the eight fields of an ordinary response, under a GOMEMLIMIT
// that leaves the collector some room beside them.
func Measure(ctx context.Context, n, size int) (Result, error) {
	debug.SetMemoryLimit(int64(n)*int64(size+1600)*9/8 + 64<<20)
	before := liveHeap()
	m := memory.New(memory.Options{Limit: 1 << 40})
	r := Result{Entries: n}
	now := time.Now()
	for i := range n {
		e := response(i, size, now)
		r.Payload += payload(e)
		if err := m.Put(ctx, extproc.Prepare(e), 16, now); err != nil {
			return Result{}, fmt.Errorf("store entry %d: %w", i, err)
		}
	}
	r.Heap = liveHeap() - before
	r.Accounted = m.Stats().Bytes
	var err error
	if r.Resident, err = resident(); err != nil {
		return Result{}, err
	}
	r.GetNanos, err = lookUp(ctx, m, n, now)
	return r, err
}

// lookUp asks for entries all over the store.
func lookUp(ctx context.Context, m *memory.Memory, n int, now time.Time) (nanos float64, err error) {
	const keys, rounds = 1 << 14, 16
	all := make([]cachepolicy.Key, min(keys, n))
	for i := range all {
		all[i] = key(target(i * (n / len(all))))
	}
	start, err := cpuTime()
	if err != nil {
		return 0, err
	}
	for range rounds {
		for i := range all {
			if r, err := m.Get(ctx, &all[i], nil, now); err != nil || r.Entry == nil {
				return 0, fmt.Errorf("entry %d is gone: %w", i, err)
			}
		}
	}
	end, err := cpuTime()
	return float64(end-start) / float64(rounds*len(all)), err
}

// cpuTime is what this process has had of the processors: the clock would count who else runs.
func cpuTime() (time.Duration, error) {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		return 0, fmt.Errorf("read the process's CPU time: %w", err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano()), nil
}

const host = "shop.example.com"

func target(i int) string { return fmt.Sprintf("/products/%08d?page=2", i) }

func key(target string) cachepolicy.Key {
	return cachepolicy.BuildKey(&cachepolicy.KeyRules{Hash: "8f14e45f"}, cachepolicy.KeyInput{
		Scope: "shop/catalog/rule-0", Scheme: "https", Authority: host, Path: target,
		Header: func(name string) (string, bool) { return host, name == "host" },
	})
}

func response(i, size int, now time.Time) *store.Entry {
	path := target(i)
	body := store.NewBody(int64(size))
	_ = body.Append(harness.GeneratedBody(size)) // fails only when it has ended
	body.End()
	return &store.Entry{
		Key: key(path), URI: "https://" + host + path, Status: 200, Policy: "shop/catalog",
		ResponseTime: now, Lifetime: time.Hour, Body: body,
		Header: httpcache.Fields{
			{Name: "content-type", Value: "application/json; charset=utf-8"},
			{Name: "content-length", Value: strconv.Itoa(size)},
			{Name: "cache-control", Value: "public, max-age=3600"},
			{Name: "date", Value: "Mon, 30 Nov 2026 12:00:00 GMT"},
			{Name: "etag", Value: strconv.Quote(path)},
			{Name: "last-modified", Value: "Sun, 29 Nov 2026 08:30:00 GMT"},
			{Name: "server", Value: "nginx"},
			{Name: "x-request-id", Value: fmt.Sprintf("0c9e5f3a-6b7d-4c1e-9a52-%012d", i)},
		},
	}
}

func payload(e *store.Entry) (n int64) {
	for _, f := range e.Header {
		n += int64(len(f.Name) + len(f.Value) + len(": \r\n"))
	}
	return n + e.Body.Len()
}

func liveHeap() int64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

// resident is the memory of this process that is in RAM.
func resident() (int64, error) {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, fmt.Errorf("read the process's memory: %w", err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(statm))[1], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read the process's memory: %w", err)
	}
	return pages * int64(os.Getpagesize()), nil
}

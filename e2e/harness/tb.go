package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"
)

// TB is what the harness needs of a testing.TB. Run provides one outside tests.
type TB interface {
	Helper()
	Logf(format string, args ...any)
	// Fatalf ends the calling goroutine, which must be the test's own.
	Fatalf(format string, args ...any)
	Failed() bool
	Cleanup(func())
	TempDir() string
	// Context ends just before the cleanups run.
	Context() context.Context
}

// Run calls f with a TB that is not a test's, then runs the cleanups, last first. It returns what Fatalf said, or why
// a folder could not be made or removed. Log lines go to w.
func Run(ctx context.Context, w io.Writer, f func(TB)) error {
	dir, err := os.MkdirTemp("", "weir-")
	if err != nil {
		return fmt.Errorf("make a work folder: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	run := &run{ctx: ctx, w: w, dir: dir}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(run)
	}()
	<-done
	cancel()
	run.cleanUp()
	if err := os.RemoveAll(dir); err != nil {
		run.fail(fmt.Errorf("remove the work folder: %w", err))
	}
	return run.err
}

// run is the TB of one call of Run.
type run struct {
	ctx context.Context // as testing.TB has it: it lives as long as the run
	w   io.Writer
	dir string

	mu       sync.Mutex
	err      error
	cleanups []func()
	dirs     int
}

func (r *run) Helper() {}

func (r *run) Logf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.w, format+"\n", args...)
}

func (r *run) Fatalf(format string, args ...any) {
	r.fail(fmt.Errorf(format, args...))
	runtime.Goexit()
}

func (r *run) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = errors.Join(r.err, err)
}

func (r *run) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err != nil
}

func (r *run) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

func (r *run) cleanUp() {
	for _, f := range slices.Backward(r.cleanups) {
		f()
	}
}

func (r *run) TempDir() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dirs++
	dir := fmt.Sprintf("%s/%d", r.dir, r.dirs)
	if err := os.Mkdir(dir, 0o755); err != nil {
		panic(fmt.Sprintf("make a folder in the work folder: %v", err))
	}
	return dir
}

func (r *run) Context() context.Context { return r.ctx }

// pollInterval is how often Eventually looks: short beside what a test waits for, long beside what a look costs.
const pollInterval = 10 * time.Millisecond

// Eventually waits until cond holds, and fails the test when it does not within the limit.
func Eventually(tb TB, limit time.Duration, what string, cond func() bool) {
	tb.Helper()
	deadline := time.Now().Add(limit)
	for !cond() {
		if time.Now().After(deadline) {
			tb.Fatalf("after %v: still not so: %s", limit, what)
		}
		select {
		case <-time.After(pollInterval):
		case <-tb.Context().Done():
			tb.Fatalf("test ended before: %s", what)
		}
	}
}

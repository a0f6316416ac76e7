package policydir

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/google/go-cmp/cmp"

	"github.com/weirproxy/weir/cachepolicy"
)

// logBuffer gathers log lines of several goroutines.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *logBuffer) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), text)
}

// jitters are the jitterPercents of the policies, which tell versions apart.
func jitters(set *cachepolicy.Set) map[string]int {
	out := map[string]int{}
	for b := range set.Bindings() {
		out[b.Policy.Name] = b.Policy.JitterPercent
	}
	return out
}

// watch follows a directory and returns the sets as they come.
func watch(t *testing.T, dir string, log *logBuffer) (*Watcher, <-chan *cachepolicy.Set) {
	t.Helper()
	sets := make(chan *cachepolicy.Set, 100)
	ctx, cancel := context.WithCancel(t.Context())
	w := Watch(ctx, dir, log.logger(), func(set *cachepolicy.Set) { sets <- set })
	t.Cleanup(func() {
		cancel()
		<-w.Done()
	})
	return w, sets
}

// next waits until a set with the jitters wanted comes.
func next(t *testing.T, sets <-chan *cachepolicy.Set, want map[string]int) {
	t.Helper()
	for set := range sets {
		if cmp.Equal(want, jitters(set)) {
			return
		}
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := write(t, dir, "a.yaml", policyFile("a", 1))
	var log logBuffer
	w, sets := watch(t, dir, &log)
	next(t, sets, map[string]int{"a": 1}) // before Watch returned
	write(t, dir, "a.yaml", policyFile("a", 2))
	next(t, sets, map[string]int{"a": 2})
	write(t, dir, "b.yaml", policyFile("b", 3))
	next(t, sets, map[string]int{"a": 2, "b": 3})
	other := write(t, dir, "tmp", policyFile("a", 4))
	if err := os.Rename(other, a); err != nil { // as editors write
		t.Fatal(err)
	}
	next(t, sets, map[string]int{"a": 4, "b": 3})
	if err := os.Remove(a); err != nil {
		t.Fatal(err)
	}
	next(t, sets, map[string]int{"b": 3})
	status := w.Status()
	if status.Generation < 5 || status.Policies != 1 || len(status.Errors) != 0 {
		t.Errorf("status %+v", status)
	}
}

func TestWatchConfigMapMount(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mount(t, dir, "..1", map[string]string{"a.yaml": policyFile("a", 1), "b.yaml": policyFile("b", 1)})
	_, sets := watch(t, dir, &logBuffer{})
	next(t, sets, map[string]int{"a": 1, "b": 1})
	mount(t, dir, "..2", map[string]string{"a.yaml": policyFile("a", 2), "b.yaml": policyFile("b", 2)})
	set := <-sets // the very next: never one file of each generation
	if diff := cmp.Diff(map[string]int{"a": 2, "b": 2}, jitters(set)); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
}

// TestWatchFirstLoadFails: nothing good yet is a state, not an end.
func TestWatchFirstLoadFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "a.yaml", "kind: Secret\n")
	var log logBuffer
	w, sets := watch(t, dir, &log)
	if status := w.Status(); w.Set() != nil || status.Generation != 0 || status.Failures != 1 || len(status.Errors) != 1 {
		t.Errorf("set %v, status %+v", w.Set(), status)
	}
	write(t, dir, "a.yaml", policyFile("a", 1))
	next(t, sets, map[string]int{"a": 1})
}

// loop runs the watch's loop in a bubble, with events of the test's own.
type loop struct {
	w      *Watcher
	dir    string
	log    *logBuffer
	events chan fsnotify.Event
	errs   chan error
	added  int // how often the notification was renewed

	mu     sync.Mutex
	served []map[string]int
}

func startLoop(t *testing.T, dir string) *loop {
	t.Helper()
	l := &loop{dir: dir, log: &logBuffer{}, events: make(chan fsnotify.Event), errs: make(chan error)}
	l.w = newWatcher(dir, l.log.logger(), func(set *cachepolicy.Set) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.served = append(l.served, jitters(set))
	})
	l.w.reload()
	go l.w.run(t.Context(), l.events, l.errs, func() { l.added++ })
	return l
}

func (l *loop) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (l *loop) expect(t *testing.T, when string, want ...map[string]int) {
	t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if diff := cmp.Diff(want, l.served); diff != "" {
		t.Errorf("%s, served (-want +got):\n%s", when, diff)
	}
}

func TestWatchSettles(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", policyFile("a", 1))
	synctest.Test(t, func(t *testing.T) {
		l := startLoop(t, dir)
		v1, v2, v3 := map[string]int{"a": 1}, map[string]int{"a": 2}, map[string]int{"a": 3}
		write(t, dir, "a.yaml", policyFile("a", 2))
		l.events <- fsnotify.Event{}
		l.wait(Settle - time.Millisecond)
		l.expect(t, "while it settles", v1)
		l.events <- fsnotify.Event{}
		l.wait(Settle - time.Millisecond)
		l.expect(t, "after another event", v1)
		l.wait(time.Millisecond)
		l.expect(t, "settled", v1, v2)

		write(t, dir, "a.yaml", policyFile("a", 3))
		for range MaxSettle / (Settle / 2) {
			l.expect(t, "never quiet, before the limit", v1, v2)
			l.events <- fsnotify.Event{}
			l.wait(Settle / 2)
		}
		l.expect(t, "never quiet, at the limit", v1, v2, v3)
	})
}

func TestWatchPolls(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", policyFile("a", 1))
	synctest.Test(t, func(t *testing.T) {
		l := startLoop(t, dir)
		write(t, dir, "a.yaml", policyFile("a", 2))
		l.wait(PollInterval - 1)
		l.expect(t, "before the poll", map[string]int{"a": 1})
		l.wait(1)
		l.expect(t, "after the poll", map[string]int{"a": 1}, map[string]int{"a": 2})
		l.wait(10 * PollInterval)
		l.expect(t, "nothing new", map[string]int{"a": 1}, map[string]int{"a": 2})
		if l.added != 11 {
			t.Errorf("the notification was renewed %d times, want 11: once a poll", l.added)
		}
		close(l.events) // notification ends, the poll goes on
		close(l.errs)
		write(t, dir, "a.yaml", policyFile("a", 3))
		l.wait(PollInterval)
		l.expect(t, "without notification", map[string]int{"a": 1}, map[string]int{"a": 2}, map[string]int{"a": 3})
	})
}

func TestWatchReadsAfterLostEvents(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", policyFile("a", 1))
	synctest.Test(t, func(t *testing.T) {
		l := startLoop(t, dir)
		write(t, dir, "a.yaml", policyFile("a", 2))
		l.errs <- errors.Join(fsnotify.ErrEventOverflow)
		l.wait(Settle)
		l.expect(t, "after an overflow", map[string]int{"a": 1}, map[string]int{"a": 2})
	})
}

func TestWatchKeepsLastGoodSet(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", policyFile("a", 1))
	write(t, dir, "b.yaml", policyFile("b", 1))
	bad := filepath.Join(dir, "b.yaml")
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		l := startLoop(t, dir)
		good := map[string]int{"a": 1, "b": 1}
		write(t, dir, "a.yaml", policyFile("a", 2)) // good, but in bad company
		write(t, dir, "b.yaml", policyFile("b", 101))
		l.wait(PollInterval)
		l.expect(t, "after a bad file", good)
		want := Status{Dir: dir, Generation: 1, Policies: 2, LoadedAt: start, ErrorsAt: start.Add(PollInterval), Failures: 1,
			Errors: []FileError{{File: bad, Line: 4, Path: "spec.jitterPercent", Reason: "101: must be between 0 and 100"}}}
		if diff := cmp.Diff(want, l.w.Status()); diff != "" {
			t.Errorf("status (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(good, jitters(l.w.Set())); diff != "" {
			t.Errorf("served (-want +got):\n%s", diff)
		}
		l.wait(5 * PollInterval)
		if got := l.w.Status().Failures; got != 1 {
			t.Errorf("the same content was refused %d times, want once", got)
		}
		if got := l.log.count(`msg="policy file refused" file=` + bad + ` line=4 field=spec.jitterPercent`); got != 1 {
			t.Errorf("the fault was logged %d times, want once", got)
		}
		write(t, dir, "b.yaml", policyFile("b", 3))
		l.wait(PollInterval)
		l.expect(t, "mended", good, map[string]int{"a": 2, "b": 3})
		want = Status{Dir: dir, Generation: 2, Policies: 2, LoadedAt: start.Add(7 * PollInterval), Failures: 1}
		if diff := cmp.Diff(want, l.w.Status()); diff != "" {
			t.Errorf("status (-want +got):\n%s", diff)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		l.wait(PollInterval)
		l.expect(t, "directory gone", good, map[string]int{"a": 2, "b": 3})
	})
}

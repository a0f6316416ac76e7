package policydir

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/weirproxy/weir/cachepolicy"
)

// Times of the watch.
const (
	// Settle is how long a directory must be quiet before it is read: a change is
	// often several.
	Settle = 100 * time.Millisecond
	// MaxSettle is how long a directory that is never quiet goes unread.
	MaxSettle = time.Second
	// PollInterval is how often the directory is read without any notification:
	// the net for what inotify does not see (network file systems, links whose
	// target changes, a directory that was replaced).
	PollInterval = 10 * time.Second
)

// Status is what a watch knows.
type Status struct {
	Dir string `json:"dir"`
	// Generation counts the sets served, from 1; 0: none was ever good.
	Generation uint64 `json:"generation"`
	// Policies is the number of policies served, and LoadedAt when they were read.
	Policies int       `json:"policies"`
	LoadedAt time.Time `json:"loadedAt,omitzero"`
	// Errors are the faults of what the directory holds now, ErrorsAt when they
	// were found; none if that is what is served.
	Errors   []FileError `json:"errors,omitempty"`
	ErrorsAt time.Time   `json:"errorsAt,omitzero"`
	// Failures counts the contents that were refused since the start.
	Failures uint64 `json:"failures"`
}

// Watcher follows a policy directory. Its methods are safe for concurrent use.
type Watcher struct {
	dir      string
	logger   *slog.Logger
	onChange func(*cachepolicy.Set)
	done     chan struct{}
	digest   [sha256.Size]byte // of the content read last

	mu     sync.Mutex
	set    *cachepolicy.Set
	status Status
}

// Watch reads the directory and follows it until ctx ends. The content is taken
// whole or not at all: while anything in it is at fault, the last good set
// stays, and log, status and counter say what is wrong. onChange is called with
// each good set, the first before Watch returns if it is good, and never twice
// at a time.
func Watch(ctx context.Context, dir string, logger *slog.Logger, onChange func(*cachepolicy.Set)) *Watcher {
	w := newWatcher(dir, logger, onChange)
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		logger.Warn("policy directory is polled only, changes take longer to be seen",
			"dir", dir, "interval", PollInterval, "error", err)
	}
	if notify == nil {
		w.reload()
		go w.run(ctx, nil, nil, func() {})
		return w
	}
	rewatch := func() { _ = notify.Add(dir) } // what it cannot watch, the poll sees
	rewatch()
	w.reload() // after the watch began: nothing is missed in between
	go func() {
		defer notify.Close() //nolint:errcheck // nothing is left to do about it
		w.run(ctx, notify.Events, notify.Errors, rewatch)
	}()
	return w
}

func newWatcher(dir string, logger *slog.Logger, onChange func(*cachepolicy.Set)) *Watcher {
	return &Watcher{dir: dir, logger: logger, onChange: onChange, done: make(chan struct{}), status: Status{Dir: dir}}
}

// Done is closed when the watch has ended.
func (w *Watcher) Done() <-chan struct{} { return w.done }

// Set returns the set served; nil if none was ever good.
func (w *Watcher) Set() *cachepolicy.Set {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.set
}

// Status returns what the watch knows.
func (w *Watcher) Status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	status := w.status
	status.Errors = slices.Clone(status.Errors)
	return status
}

// run reloads after changes and at each poll; rewatch renews the notification.
func (w *Watcher) run(ctx context.Context, events <-chan fsnotify.Event, errs <-chan error, rewatch func()) {
	defer close(w.done)
	poll := time.NewTicker(PollInterval)
	defer poll.Stop()
	var settle <-chan time.Time
	var deadline time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-events:
			if !ok {
				events = nil
				continue
			}
		case _, ok := <-errs: // an overflow: something changed that we were not told of
			if !ok {
				errs = nil
				continue
			}
		case <-settle:
			settle, deadline = nil, time.Time{}
			w.reload()
			continue
		case <-poll.C:
			rewatch()
			w.reload()
			continue
		}
		now := time.Now()
		if deadline.IsZero() {
			deadline = now.Add(MaxSettle)
		}
		settle = time.After(min(Settle, deadline.Sub(now)))
	}
}

// reload reads the directory and, if its content is new, takes or refuses it.
func (w *Watcher) reload() {
	sources := readDir(w.dir)
	sum := digest(sources)
	if sum == w.digest {
		return
	}
	w.digest = sum
	set, errs := compile(sources)
	if len(errs) > 0 {
		w.refuse(errs)
		return
	}
	w.mu.Lock()
	w.set = set
	w.status.Generation++
	w.status.Policies = set.Len()
	w.status.LoadedAt = time.Now()
	w.status.Errors, w.status.ErrorsAt = nil, time.Time{}
	generation := w.status.Generation
	w.mu.Unlock()
	w.logger.Info("policies loaded", "dir", w.dir, "generation", generation, "policies", set.Len(), "files", len(sources))
	w.onChange(set)
}

func (w *Watcher) refuse(errs []FileError) {
	w.mu.Lock()
	w.status.Errors, w.status.ErrorsAt = errs, time.Now()
	w.status.Failures++
	generation := w.status.Generation
	w.mu.Unlock()
	for _, e := range errs {
		w.logger.Error("policy file refused", "file", e.File, "line", e.Line, "field", e.Path, "reason", e.Reason)
	}
	w.logger.Error("policy directory has errors, the last good policies stay",
		"dir", w.dir, "errors", len(errs), "generation", generation)
}

// digest tells two contents of a directory apart.
func digest(sources []source) [sha256.Size]byte {
	h := sha256.New()
	for _, src := range sources {
		failure := ""
		if src.err != nil {
			failure = src.err.Error()
		}
		for _, part := range [][]byte{[]byte(src.name), src.data, []byte(failure)} {
			h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
			h.Write(part)
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}

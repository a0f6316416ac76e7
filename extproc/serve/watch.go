package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// watchPoll is how often files are looked at even if nothing was notified: not every file system tells.
	watchPoll = 10 * time.Second
	// watchSettle is how long to wait after a change, since several files are written one after the other.
	watchSettle = 100 * time.Millisecond
)

// watchFiles calls changed when one of the files may have changed, until ctx
// ends. It watches their directories, since Kubernetes replaces a whole
// directory by a symbolic link and editors rename.
func watchFiles(ctx context.Context, log *slog.Logger, names []string, changed func()) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watching files: %w", err)
	}
	for _, name := range names {
		if errAdd := w.Add(filepath.Dir(name)); errAdd != nil {
			log.Warn("Directory not watched, looking at it from time to time", "file", name, "error", errAdd)
		}
	}
	changed() // since they were read last, before the watch began
	poll := time.NewTicker(watchPoll)
	defer poll.Stop()
	var settled <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return w.Close()
		case <-w.Events:
			if settled == nil {
				settled = time.After(watchSettle)
			}
		case errWatch := <-w.Errors:
			if !errors.Is(errWatch, fsnotify.ErrEventOverflow) {
				log.Warn("Watching files", "error", errWatch)
			}
		case <-settled:
			settled = nil
			changed()
		case <-poll.C:
			changed()
		}
	}
}

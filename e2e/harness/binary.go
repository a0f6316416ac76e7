package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
)

// raceVar, set to 1, has the binaries built with the race detector.
const raceVar = "WEIR_E2E_RACE"

// built remembers the result of one build a process, by command.
//
//nolint:gochecknoglobals // a memo of what go build made; tests cannot tell it from building each time
var built sync.Map // command -> func() (string, error)

// Binary builds a command of this module, once in a process, and returns its path.
func Binary(tb TB, command string) string {
	tb.Helper()
	build, _ := built.LoadOrStore(command, sync.OnceValues(func() (string, error) { return buildCommand(command) }))
	path, err := build.(func() (string, error))()
	if err != nil {
		tb.Fatalf("%v", err)
	}
	return path
}

// buildCommand builds into the tools' folder, where go build finds the binary of the last run and has nothing to do
// when it is current.
func buildCommand(command string) (string, error) {
	root, err := ModuleRoot()
	if err != nil {
		return "", err
	}
	tools, err := toolsDir()
	if err != nil {
		return "", err
	}
	kind := "plain"
	args := []string{"build", "-buildvcs=false"} // a clone of another owner builds too
	if os.Getenv(raceVar) == "1" {
		kind = "race"
		args = append(args, "-race")
	}
	// Clones side by side do not disturb each other.
	dir := filepath.Join(tools, "e2e", fmt.Sprintf("%x", hash(root)), kind)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("build %s: %w", command, err)
	}
	unlock, err := lock(filepath.Join(dir, "lock"))
	if err != nil {
		return "", fmt.Errorf("build %s: %w", command, err)
	}
	defer unlock()
	path := filepath.Join(dir, command)
	build := exec.Command("go", append(args, "-o", path, "./cmd/"+command)...)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", command, err, out)
	}
	return path, nil
}

// lock waits for the lock file, which test processes of several packages share.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { _ = f.Close() }, nil // closing unlocks
}

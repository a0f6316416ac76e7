package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
)

const (
	// insideVar tells the process that Enter started that it is the one inside.
	insideVar = "WEIR_CLUSTER_INSIDE"
	// baseDir is where the one cluster of the machine lives: logs/ on disk, state/ in memory. Fixed and short, since
	// paths of Unix sockets are bounded.
	baseDir  = "/tmp/weir-cluster"
	logDir   = baseDir + "/logs"
	stateDir = baseDir + "/state"
	pidFile  = baseDir + "/pid" // of the process inside, for the script enter
	// lockFile is held while a cluster runs.
	lockFile = baseDir + ".lock"
)

// Enter runs this program again, with the same arguments, in namespaces of its own; there it calls inside, whose
// result it returns as the exit status. It waits until no other cluster runs on the machine. Call it first thing: what
// came before it is done twice.
func Enter(inside func() int) int {
	if os.Getenv(insideVar) != "" && os.Getpid() == 1 {
		if err := arrangeNamespaces(); err != nil {
			return failure(fmt.Errorf("arrange the namespaces: %w", err))
		}
		return inside()
	}
	status, err := runInside()
	if err != nil {
		return failure(err)
	}
	return status
}

func failure(err error) int {
	fmt.Fprintln(os.Stderr, "cluster:", err)
	return 1
}

// runInside starts the process inside and waits for it. When it has ended the kernel has killed all other processes of
// the PID namespace, and with them its mounts and networks.
func runInside() (status int, err error) {
	if os.Geteuid() != 0 {
		return 0, errors.New("a cluster needs root, for namespaces and mounts")
	}
	unlock, err := lock()
	if err != nil {
		return 0, err
	}
	defer unlock()
	if err := sweep(); err != nil { // of a run that was killed
		return 0, err
	}
	if err := os.MkdirAll(logDir, 0o755); err != nil {
		return 0, fmt.Errorf("make a folder for logs: %w", err)
	}
	// The kernel sends Pdeathsig when the thread that started the child ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	inside := exec.Command(os.Args[0], os.Args[1:]...)
	inside.Stdin, inside.Stdout, inside.Stderr = os.Stdin, os.Stdout, os.Stderr
	inside.Env = append(os.Environ(), insideVar+"=1")
	inside.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC,
		Pdeathsig:  syscall.SIGKILL,
	}
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(interrupts)
	if err := inside.Start(); err != nil {
		return 0, fmt.Errorf("start %s in namespaces of its own: %w", os.Args[0], err)
	}
	if err := os.WriteFile(pidFile, []byte(strconv.Itoa(inside.Process.Pid)), 0o644); err != nil {
		return 0, fmt.Errorf("note the process inside: %w", err) // which ends with this thread
	}
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-interrupts:
				_ = inside.Process.Signal(syscall.SIGTERM) // fails only when it is gone
			case <-done:
				return
			}
		}
	}()
	_ = inside.Wait() // how it ended is in ProcessState
	close(done)
	_ = os.Remove(pidFile) // with the process gone it says nothing
	if status = inside.ProcessState.ExitCode(); status != 0 {
		fmt.Fprintf(os.Stderr, "cluster: %v; the logs are in %s\n", inside.ProcessState, logDir)
		removeCgroups()
		return max(status, 1), nil
	}
	return 0, sweep()
}

// lock waits until this process is the only one with a cluster. The kernel unlocks when the process ends.
func lock() (unlock func(), err error) {
	f, err := os.OpenFile(lockFile, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock the machine's cluster: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		fmt.Fprintln(os.Stderr, "cluster: waiting for the end of another one")
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: %w", lockFile, err)
	}
	return func() { _ = f.Close() }, nil // closing unlocks
}

// sweep removes what a cluster leaves when all its processes are gone.
func sweep() error {
	removeCgroups()
	// Mounts are gone with their namespace: what is there is a plain folder.
	if err := os.RemoveAll(baseDir); err != nil {
		return fmt.Errorf("remove what an earlier cluster left: %w", err)
	}
	return nil
}

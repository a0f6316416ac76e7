package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// startLimit bounds how long a part of the cluster may take to be ready: a busy machine is slow.
const startLimit = 3 * time.Minute

// run runs a command of few words, and fails with what it printed.
func run(command string) error {
	words := strings.Fields(command)
	out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", command, err, out)
	}
	return nil
}

// daemons are the programs that run as long as the cluster.
type daemons struct {
	ctx  context.Context // ends when one of them does, which is the cause
	fail context.CancelCauseFunc
}

// start starts one. It ends with the PID namespace. What it prints goes to logs/NAME.log.
func (d daemons) start(program string, args ...string) error {
	name := filepath.Base(program)
	log, err := os.Create(filepath.Join(logDir, name+".log"))
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	defer func() { _ = log.Close() }() // the daemon has its own
	daemon := exec.Command(program, args...)
	daemon.Stdout, daemon.Stderr = log, log
	if err := daemon.Start(); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		_ = daemon.Wait() // how it ended is in ProcessState
		d.fail(fmt.Errorf("%s ended (%v): see %s", name, daemon.ProcessState, log.Name()))
	}()
	return nil
}

// await calls attempt until it succeeds, a daemon ends, or startLimit is over.
func (d daemons) await(what string, attempt func() error) error {
	ctx, cancel := context.WithTimeout(d.ctx, startLimit)
	defer cancel()
	for {
		err := attempt()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("wait until %s: %w", what, context.Cause(ctx)), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

package harness

import (
	"bytes"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// maxOutput bounds what is kept of a process's output: the newest bytes.
	maxOutput = 1 << 20
	// stopGrace is how long a process may take to end on SIGTERM before it is killed.
	stopGrace = 10 * time.Second
)

// process is a child that ends with the test. Its output is shown only when the test fails.
type process struct {
	name   string
	cmd    *exec.Cmd
	output *output
	exited chan struct{} // closed when the process is gone
}

// startProcess starts cmd. onLine, if not nil, is given each complete line of output until it returns true.
func startProcess(tb TB, name string, cmd *exec.Cmd, onLine func(line string) (done bool)) *process {
	tb.Helper()
	p := &process{name: name, cmd: cmd, output: &output{onLine: onLine}, exited: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.output, p.output
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setpgid:   true,            // Ctrl-C is for the demo, which then ends its children in order
		Pdeathsig: syscall.SIGKILL, // a test that dies leaves nothing behind
	}
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		tb.Fatalf("start %s: %v", name, err)
	}
	go func() {
		defer close(p.exited)
		_ = cmd.Wait() // how it ended is in cmd.ProcessState
	}()
	tb.Cleanup(func() {
		p.stop(stopGrace)
		if tb.Failed() {
			tb.Logf("--- output of %s (%v):\n%s", name, cmd.ProcessState, p.output)
		}
	})
	return p
}

// stop ends the process with SIGTERM, or with SIGKILL when that takes longer than grace, and waits until it is gone.
func (p *process) stop(grace time.Duration) {
	p.signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(grace):
		p.signal(syscall.SIGKILL)
		<-p.exited
	}
}

func (p *process) signal(s syscall.Signal) {
	_ = p.cmd.Process.Signal(s) // fails only when the process is gone, which is what signals here are for
}

func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// output keeps the newest bytes a process printed. It is safe for concurrent use.
type output struct {
	mu     sync.Mutex
	kept   []byte
	line   []byte // the line being written
	onLine func(string) bool
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.kept = append(o.kept, p...)
	if len(o.kept) > 2*maxOutput { // twice, so that the copy is rare
		o.kept = bytes.Clone(o.kept[len(o.kept)-maxOutput:])
	}
	if o.onLine != nil {
		o.watch(p)
	}
	return len(p), nil
}

func (o *output) watch(p []byte) {
	o.line = append(o.line, p...)
	for {
		line, rest, ok := bytes.Cut(o.line, []byte("\n"))
		if !ok {
			return
		}
		o.line = rest
		if o.onLine(string(line)) {
			o.onLine, o.line = nil, nil
			return
		}
	}
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.ToValidUTF8(string(o.kept), "\uFFFD")
}

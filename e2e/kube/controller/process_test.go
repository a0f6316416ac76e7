package controller_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/weirproxy/weir/e2e/harness"
)

// systemNamespace is where controller and data plane are.
const systemNamespace = "weir-system"

// limit bounds what a test waits for: a busy machine is slow.
const limit = time.Minute

// process is a weir-controller.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{}

	mu    sync.Mutex
	lines []string
	feed  string
}

// startController starts a weir-controller and waits until its feed serves.
func startController(t *testing.T, args ...string) *process {
	t.Helper()
	p := newProcess(t, append([]string{
		"--feed-bind-address=127.0.0.1:0", "--metrics-bind-address=0", "--health-probe-bind-address=0",
		"--leader-election-lease-duration=3s", "--leader-election-renew-deadline=2s",
		"--leader-election-retry-period=200ms", "--log-level=debug", "--log-format=json",
		"--data-plane-service=" + systemNamespace + "/weir-extproc",
	}, args...)...)
	harness.Eventually(t, limit, "the feed serves", func() bool {
		if !p.running() {
			t.Fatal("weir-controller ended")
		}
		return p.address() != ""
	})
	return p
}

func newProcess(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{exited: make(chan struct{})}
	p.cmd = exec.Command(harness.Binary(t, "weir-controller"), args...)
	p.cmd.Env = append(os.Environ(), "KUBECONFIG="+serviceAccountKubeconfig(t), "POD_NAMESPACE="+systemNamespace)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	reader, writer := io.Pipe()
	p.cmd.Stdout, p.cmd.Stderr = writer, writer
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		p.read(reader)
	}()
	go func() {
		_ = p.cmd.Wait() // how it ended is in ProcessState
		_ = writer.Close()
		<-read
		close(p.exited)
	}()
	t.Cleanup(func() {
		p.stop()
		if p.says("is forbidden") {
			t.Error("config/rbac lacks a right")
		}
		if t.Failed() {
			t.Logf("--- output of weir-controller %v:\n%s", p.cmd.ProcessState, p.output())
		}
	})
	return p
}

// maxLines bounds what is kept of the output: the newest.
const maxLines = 2000

func (p *process) read(r io.Reader) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct{ Msg, Address string }
		_ = json.Unmarshal(lines.Bytes(), &line) // what is no JSON says nothing of the feed
		p.mu.Lock()
		p.lines = append(p.lines, lines.Text())
		p.lines = p.lines[max(0, len(p.lines)-maxLines):]
		if line.Msg == "Feed serves" {
			p.feed = line.Address
		}
		p.mu.Unlock()
	}
}

func (p *process) address() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.feed
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

func (p *process) says(text string) bool { return strings.Contains(p.output(), text) }

func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// stop has it end as a pod does.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(limit):
		p.kill()
	}
}

// kill ends it without a goodbye.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// serviceAccountKubeconfig is what the controller's ServiceAccount may do: no more than config/rbac says.
func serviceAccountKubeconfig(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(server.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := yaml.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	for _, u := range config["users"].([]any) {
		user := u.(map[string]any)["user"].(map[string]any)
		user["as"] = "system:serviceaccount:" + systemNamespace + ":weir-controller"
		user["as-groups"] = []string{"system:serviceaccounts", "system:authenticated"}
	}
	if data, err = yaml.Marshal(config); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// wait waits until the process has ended, and returns its exit status.
func (p *process) wait(t *testing.T) int {
	t.Helper()
	harness.Eventually(t, limit, "weir-controller ends", func() bool { return !p.running() })
	return p.cmd.ProcessState.ExitCode()
}

// has reports whether a list has all of the others.
func has(list []string, others ...string) bool {
	return !slices.ContainsFunc(others, func(s string) bool { return !slices.Contains(list, s) })
}

package harness

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// WeirOptions says what is peculiar about one weir-extproc.
type WeirOptions struct {
	// Policies are the files of --policy-dir, by name ("shop.yaml").
	Policies map[string]string
	// RefillAddress is --refill-address, usually Envoy.RefillAddress.
	RefillAddress string
	// GRPCAddress is --grpc-bind-address; "" takes a port of 127.0.0.1 from the system.
	GRPCAddress string
	// AdminAddress, MetricsAddress and HealthAddress likewise.
	AdminAddress, MetricsAddress, HealthAddress string
	// Args are further flags; of one given twice, the last counts, so they may also replace what is set here.
	Args []string
	// Env are further variables, KEY=VALUE.
	Env []string
	// Binary, if set, is the path of another build to start, as a benchmark does to compare the two.
	Binary string
}

// drainLimit is longer than weir's own --drain-timeout.
const drainLimit = time.Minute

// Weir is a running weir-extproc.
type Weir struct {
	// The addresses it bound, host:port; GRPCAddress may be unix:///path.
	GRPCAddress, AdminAddress, MetricsAddress, HealthAddress string
	// PolicyDir is its --policy-dir: what is written there is picked up.
	PolicyDir string

	tb      TB
	process *process
	client  *http.Client
}

// readyLine is what weir-extproc logs, with --log-format=json, when it serves.
type readyLine struct {
	Msg            string `json:"msg"`
	GRPCAddress    string `json:"grpcAddress"`
	AdminAddress   string `json:"adminAddress"`
	MetricsAddress string `json:"metricsAddress"`
	HealthAddress  string `json:"healthAddress"`
}

// StartWeir starts weir-extproc, built from this module, and waits until it is ready.
func StartWeir(tb TB, o WeirOptions) *Weir {
	tb.Helper()
	binary := o.Binary
	if binary == "" {
		binary = Binary(tb, "weir-extproc")
	}
	raiseFileLimit(tb)
	const fromSystem = "127.0.0.1:0"
	for _, address := range []*string{&o.GRPCAddress, &o.AdminAddress, &o.MetricsAddress, &o.HealthAddress} {
		orDefault(address, fromSystem)
	}
	w := &Weir{tb: tb, PolicyDir: tb.TempDir(), client: newClient(tb)}
	for name, content := range o.Policies {
		w.WritePolicy(name, content)
	}
	args := []string{
		"--log-format=json",
		"--grpc-bind-address=" + o.GRPCAddress,
		"--admin-bind-address=" + o.AdminAddress,
		"--metrics-bind-address=" + o.MetricsAddress,
		"--health-probe-bind-address=" + o.HealthAddress,
		"--policy-dir=" + w.PolicyDir,
		"--drain-delay=0s", // no load balancer has to notice
	}
	if o.RefillAddress != "" {
		args = append(args, "--refill-address="+o.RefillAddress)
	}
	cmd := exec.Command(binary, append(args, o.Args...)...)
	cmd.Env = append(os.Environ(), o.Env...)

	ready := make(chan readyLine, 1)
	w.process = startProcess(tb, "weir-extproc", cmd, func(line string) bool {
		var l readyLine
		if json.Unmarshal([]byte(line), &l) != nil || l.Msg != "Ready" {
			return false
		}
		ready <- l
		return true
	})
	Eventually(tb, startLimit, "weir-extproc is ready", func() bool {
		select {
		case l := <-ready:
			w.GRPCAddress, w.AdminAddress = l.GRPCAddress, l.AdminAddress
			w.MetricsAddress, w.HealthAddress = l.MetricsAddress, l.HealthAddress
			return true
		case <-w.process.exited:
			tb.Fatalf("weir-extproc ended before it was ready")
			return false
		default:
			return false
		}
	})
	return w
}

// WritePolicy puts a file into the policy folder, or replaces it, by a rename: no half-written file is ever read.
func (w *Weir) WritePolicy(name, content string) {
	w.tb.Helper()
	next := filepath.Join(w.PolicyDir, "."+name+".next")
	if err := os.WriteFile(next, []byte(content), 0o644); err != nil {
		w.tb.Fatalf("write a policy: %v", err)
	}
	if err := os.Rename(next, filepath.Join(w.PolicyDir, name)); err != nil {
		w.tb.Fatalf("write a policy: %v", err)
	}
}

// Kill ends weir as a crash does (SIGKILL) and waits until it is gone.
func (w *Weir) Kill() {
	w.process.signal(syscall.SIGKILL)
	<-w.process.exited
}

// Terminate asks weir to end (SIGTERM) and waits until it has drained and is gone; it fails the test when the exit
// status is not 0 or that takes a minute.
func (w *Weir) Terminate() {
	w.tb.Helper()
	w.process.signal(syscall.SIGTERM)
	w.WaitDrained()
}

// WaitDrained waits until a weir that got its SIGTERM has drained and is gone; it fails the test as Terminate does. A
// second signal would cut the drain short.
func (w *Weir) WaitDrained() {
	w.tb.Helper()
	select {
	case <-w.process.exited:
	case <-time.After(drainLimit):
		w.tb.Fatalf("after %v: weir-extproc has not ended", drainLimit)
	}
	if state := w.process.cmd.ProcessState; !state.Success() {
		w.tb.Fatalf("weir-extproc ended with %v", state)
	}
}

// Signal sends a signal: SIGSTOP makes a hung weir of it, SIGTERM begins a drain.
func (w *Weir) Signal(s syscall.Signal) { w.process.signal(s) }

// Running says whether the process is there.
func (w *Weir) Running() bool { return w.process.running() }

// Output is the newest part of what weir printed, about a MiB.
func (w *Weir) Output() string { return w.process.output.String() }

// PID is the ID of weir's process.
func (w *Weir) PID() int { return w.process.cmd.Process.Pid }

// ResidentBytes is the memory weir's process holds.
func (w *Weir) ResidentBytes() uint64 {
	w.tb.Helper()
	return residentBytes(w.tb, w.process)
}

// Status is the answer of the admin API's GET /v1/status.
func (w *Weir) Status() map[string]any {
	w.tb.Helper()
	var status map[string]any
	w.AdminGet("/v1/status", &status)
	return status
}

// AdminGet decodes the JSON that the admin API answers with status 200.
func (w *Weir) AdminGet(path string, into any) {
	w.tb.Helper()
	w.admin(Get("http://"+w.AdminAddress+path), into)
}

// AdminPost sends body as JSON and decodes the answer, which must have a status of 2xx.
func (w *Weir) AdminPost(path string, body, into any) {
	w.tb.Helper()
	encoded, err := json.Marshal(body)
	if err != nil {
		w.tb.Fatalf("encode the body for %s: %v", path, err)
	}
	req, err := http.NewRequest(http.MethodPost, "http://"+w.AdminAddress+path, strings.NewReader(string(encoded)))
	if err != nil {
		w.tb.Fatalf("ask weir's admin API: %v", err)
	}
	req.Header.Set("Content-Type", "application/json")
	w.admin(req, into)
}

func (w *Weir) admin(req *http.Request, into any) {
	w.tb.Helper()
	resp := do(w.tb, w.client, req)
	if resp.Status/100 != 2 {
		w.tb.Fatalf("%s %s: status %d: %s", req.Method, req.URL.Path, resp.Status, resp.Body)
	}
	if err := json.Unmarshal(resp.Body, into); err != nil {
		w.tb.Fatalf("%s %s: %v in %q", req.Method, req.URL.Path, err, resp.Body)
	}
}

// Metrics returns weir's metrics as they are now.
func (w *Weir) Metrics() Metrics {
	w.tb.Helper()
	resp := do(w.tb, w.client, Get("http://"+w.MetricsAddress+"/metrics"))
	if resp.Status != http.StatusOK {
		w.tb.Fatalf("read weir's metrics: status %d", resp.Status)
	}
	metrics, err := parseMetrics(string(resp.Body))
	if err != nil {
		w.tb.Fatalf("read weir's metrics: %v", err)
	}
	return metrics
}

// IsReady says whether /readyz answers 200.
func (w *Weir) IsReady() bool {
	resp, err := w.client.Get(fmt.Sprintf("http://%s/readyz", w.HealthAddress))
	if err != nil {
		return false
	}
	defer func() { _ = resp.Body.Close() }()
	return resp.StatusCode == http.StatusOK
}

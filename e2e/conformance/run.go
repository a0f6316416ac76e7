package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/weirproxy/weir/e2e/harness"
)

// runLimit bounds one run of the suite's client, which takes about 20 s: its tests pause for 3 s up to three times,
// and it waits for the slowest of each hundred.
const runLimit = 5 * time.Minute

// startOrigin starts the suite's server and returns its address.
func (s *Suite) startOrigin(tb harness.TB) string {
	tb.Helper()
	address := freeAddress(tb)
	_, port, _ := net.SplitHostPort(address)
	cmd := exec.Command("node", "--no-warnings", s.server)
	cmd.Dir = s.Dir
	// npm would set these.
	cmd.Env = append(os.Environ(), "npm_config_protocol=http", "npm_config_port="+port,
		"npm_config_pidfile="+filepath.Join(tb.TempDir(), "pid"))
	harness.StartProgram(tb, "the suite's origin", cmd, address)
	return address
}

// runClient runs the suite's client against baseURL (scheme and authority, no path).
func (s *Suite) runClient(tb harness.TB, baseURL string) Results {
	tb.Helper()
	client := exec.CommandContext(tb.Context(), "node", "--no-warnings", s.client)
	client.Dir = s.Dir
	// Both forms of id must be empty for "every test".
	client.Env = append(os.Environ(), "npm_config_base="+baseURL, "npm_config_id=", "npm_package_config_id=")
	client.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	client.Stdout, client.Stderr = &stdout, &stderr
	if err := client.Start(); err != nil {
		tb.Fatalf("run the suite's client: %v", err)
	}
	limit := time.AfterFunc(runLimit, func() { _ = client.Process.Kill() })
	defer limit.Stop()
	if err := client.Wait(); err != nil {
		tb.Fatalf("run the suite's client: %v\n%.4000s", err, stderr.String())
	}
	r, err := parseResults(stdout.String())
	if err != nil {
		tb.Fatalf("read the results of %s: %v\n%.1000s", s.Edition, err, stdout.String())
	}
	return r
}

// parseResults reads the client's output: remarks, if any, then the results as one JSON document.
func parseResults(output string) (Results, error) {
	document := output
	if !strings.HasPrefix(output, "{\n") {
		_, rest, ok := strings.Cut(output, "\n{\n")
		if !ok {
			return nil, fmt.Errorf("there is no JSON document")
		}
		document = "{\n" + rest
	}
	var r Results
	if err := json.Unmarshal([]byte(document), &r); err != nil {
		return nil, err
	}
	return r, nil
}

// freeAddress returns an address of 127.0.0.1 that nothing listens on at the moment.
func freeAddress(tb harness.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("find a free port: %v", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

package bench

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"

	"github.com/weirproxy/weir/e2e/harness"
)

// load is a number of requests for one URL, from h2load.
type load struct {
	url      string
	requests int
	clients  int
	http2    bool
	method   string   // GET if empty
	fields   []string // "name: value"
	// sent, if set, counts what was sent: each path below url is asked for once, in all runs together. It wants one
	// client, since each takes all paths.
	sent *int
}

// statusLine is h2load's count of statuses.
var statusLine = regexp.MustCompile(`status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx`)

// run sends the requests and fails unless each was answered 2xx, or 304.
func (l load) run(tb harness.TB) {
	tb.Helper()
	args := []string{"-t1", "-n", strconv.Itoa(l.requests), "-c", strconv.Itoa(l.clients), "-m1"}
	if !l.http2 {
		args = append(args, "--h1")
	}
	if l.method != "" {
		args = append(args, "-H", ":method: "+l.method)
	}
	for _, f := range l.fields {
		args = append(args, "-H", f)
	}
	args = append(args, l.targets(tb)...)
	out, err := exec.CommandContext(tb.Context(), "h2load", args...).CombinedOutput()
	if err != nil {
		tb.Fatalf("h2load (run .ci/tools bench): %v\n%s", err, out)
	}
	m := statusLine.FindSubmatch(out)
	if m == nil {
		tb.Fatalf("h2load said nothing of statuses:\n%s", out)
	}
	good, _ := strconv.Atoi(string(m[1]))
	notModified, _ := strconv.Atoi(string(m[2]))
	if good+notModified != l.requests {
		tb.Fatalf("h2load: %s", fmt.Sprintf("of %d requests to %s: %s", l.requests, l.url, m[0]))
	}
}

// targets are the arguments that say what is asked for.
func (l load) targets(tb harness.TB) []string {
	tb.Helper()
	if l.sent == nil {
		return []string{l.url}
	}
	*l.sent += l.requests
	return []string{"-i", uris(tb, l.url, l.requests, *l.sent)}
}

package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// accessLogLimit is how long an access log line may take to arrive: Envoy writes it when the stream is over.
const accessLogLimit = 10 * time.Second

// AccessLogEntry is what Envoy logs of a request; fields that do not apply are zero.
type AccessLogEntry struct {
	Listener    string         `json:"listener"` // edge or refill
	Method      string         `json:"method"`
	Authority   string         `json:"authority"`
	Path        string         `json:"path"`
	Code        int            `json:"code"`
	Flags       string         `json:"flags"`
	Details     string         `json:"details"`
	Route       string         `json:"route"`
	Attempts    int            `json:"attempts"` // requests to the origin
	DurationMS  int            `json:"durationMs"`
	BytesSent   int64          `json:"bytesSent"`
	CacheStatus string         `json:"cacheStatus"`
	Weir        map[string]any `json:"weir"` // dynamic metadata
}

// Admin returns the body of a GET of Envoy's admin interface.
func (e *Envoy) Admin(path string) string {
	e.tb.Helper()
	resp, err := e.client.Get("http://" + e.admin + path)
	if err != nil {
		e.tb.Fatalf("ask Envoy's admin interface: %v", err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		e.tb.Fatalf("ask Envoy's admin interface for %s: status %d, error %v", path, resp.StatusCode, err)
	}
	return string(body)
}

// Counter returns the value of the counter or gauge with exactly this name; one that Envoy does not have is 0.
func (e *Envoy) Counter(name string) uint64 {
	e.tb.Helper()
	stats := e.Admin("/stats?filter=" + "^" + regexp.QuoteMeta(name) + "$")
	_, value, ok := strings.Cut(strings.TrimSpace(stats), ": ")
	if !ok {
		return 0
	}
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		e.tb.Fatalf("read Envoy's counter %s: %v", name, err)
	}
	return n
}

// AccessLog returns what was logged so far, oldest first.
func (e *Envoy) AccessLog() []AccessLogEntry {
	e.tb.Helper()
	content, err := os.ReadFile(e.config.AccessLogPath)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		e.tb.Fatalf("read Envoy's access log: %v", err)
	}
	var entries []AccessLogEntry
	for {
		line, rest, ok := bytes.Cut(content, []byte("\n"))
		if !ok { // what follows is a line being written
			return entries
		}
		content = rest
		var entry AccessLogEntry
		if err := json.Unmarshal(line, &entry); err != nil {
			e.tb.Fatalf("read Envoy's access log: %v in %q", err, line)
		}
		entries = append(entries, entry)
	}
}

// WaitAccessLog waits until at least n entries match, and returns those that do.
func (e *Envoy) WaitAccessLog(n int, match func(AccessLogEntry) bool) []AccessLogEntry {
	e.tb.Helper()
	var matching []AccessLogEntry
	Eventually(e.tb, accessLogLimit, strconv.Itoa(n)+" matching lines in Envoy's access log", func() bool {
		matching = matching[:0]
		for _, entry := range e.AccessLog() {
			if match(entry) {
				matching = append(matching, entry)
			}
		}
		return len(matching) >= n
	})
	return matching
}

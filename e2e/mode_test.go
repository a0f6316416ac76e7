package e2e_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/weirproxy/weir/e2e/harness"
)

// processingMode is the sample's, with changes: "response_body_mode=STREAMED".
func processingMode(changes string) string {
	mode := map[string]string{
		"request_header_mode": "SEND", "response_header_mode": "SEND", "request_body_mode": "NONE",
		"response_body_mode": "NONE", "request_trailer_mode": "SKIP", "response_trailer_mode": "SKIP",
	}
	for change := range strings.FieldsSeq(changes) {
		name, value, _ := strings.Cut(change, "=")
		mode[name] = value
	}
	var fields []string
	for _, name := range slices.Sorted(maps.Keys(mode)) {
		fields = append(fields, name+": "+mode[name])
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

// A burst on a cold key, where the mode lets weir work; where its streamed answers are not taken; where it learns only
// from the answer that it cannot work; and where it keeps out.
const (
	shares   = "one fetches, the others follow"
	alone    = "each fetches"
	learns   = "the others follow up to the headers"
	keepsOut = "passed by"
)

const (
	modeClients = 10
	bigSize     = 2 << 20 // more than Envoy's buffer, and than weir puts into one message
)

// TestProcessingModes: whatever the filter is set to, clients get their answers whole. Where weir cannot work it stores
// nothing, counts it and logs it once.
func TestProcessingModes(t *testing.T) {
	t.Parallel()
	const duplexResponse = "response_body_mode=FULL_DUPLEX_STREAMED response_trailer_mode=SEND"
	const showsNoHead = "request_header_mode=SKIP response_header_mode=SKIP response_body_mode=STREAMED"
	const duplexRequest = "request_body_mode=FULL_DUPLEX_STREAMED request_trailer_mode=SEND"
	tests := []struct {
		changes     string
		forbid      bool // allow_mode_override: false
		burst       string
		page, big   int // what the origin sees of two GETs and a HEAD after the burst, and of two GETs of a big object
		wantEntries int
	}{
		{"", false, shares, 0, 1, 2},
		{"request_trailer_mode=SEND response_trailer_mode=SEND", false, shares, 0, 1, 2},
		{"response_body_mode=STREAMED", false, shares, 0, 1, 2},
		{"response_body_mode=STREAMED response_trailer_mode=SEND", true, shares, 0, 1, 2},
		{"request_body_mode=STREAMED", false, alone, 0, 2, 2},
		{"request_body_mode=BUFFERED", false, alone, 0, 2, 2},
		{"request_body_mode=BUFFERED_PARTIAL", false, alone, 0, 2, 2},
		{duplexRequest + " response_body_mode=STREAMED", true, shares, 0, 1, 2},
		{"", true, learns, 3, 2, 0},
		{"request_body_mode=STREAMED", true, alone, 3, 2, 0},
		{"response_header_mode=SKIP", false, keepsOut, 3, 2, 0},
		{"response_header_mode=SKIP response_body_mode=STREAMED", false, learns, 3, 2, 0},
		{"request_header_mode=SKIP", false, keepsOut, 3, 2, 0},
		{showsNoHead, false, keepsOut, 3, 2, 0},
		{"response_body_mode=BUFFERED", false, keepsOut, 3, 2, 0},
		{"response_body_mode=BUFFERED", true, keepsOut, 3, 2, 0},
		{"response_body_mode=BUFFERED_PARTIAL", true, keepsOut, 3, 2, 0},
		{duplexResponse, false, keepsOut, 3, 2, 0},
		{duplexRequest, false, keepsOut, 3, 2, 0},
		{duplexRequest + " " + duplexResponse, true, keepsOut, 3, 2, 0},
	}
	for _, tt := range tests {
		name := processingModeName(tt.changes, tt.forbid)
		t.Run(name, func(t *testing.T) {
			e := startEdge(t, edgeOptions{
				Envoy: harness.EnvoyOptions{
					ProcessingMode: processingMode(tt.changes), ForbidModeOverride: tt.forbid, Concurrency: 1,
				},
				Spec: "storage: {maxObjectSize: 8Mi}",
			})
			e.burstInMode(tt.burst)
			before := e.origin.Count("/page")
			e.useInMode()
			if got := e.origin.Count("/page") - before; got != tt.page {
				t.Errorf("the origin saw %d requests after the burst, want %d", got, tt.page)
			}
			e.wantCount("/big", tt.big)
			if n := e.status().Store.Entries; n != tt.wantEntries {
				t.Errorf("%d entries are stored, want %d", n, tt.wantEntries)
			}
			// Beside a duplex request body it is the POST that passes by; of a HEAD weir may hear nothing at all.
			e.wantModeCounted(tt.wantEntries == 0 || strings.Contains(tt.changes, duplexRequest))
			if tt.changes != showsNoHead {
				e.settles()
			}
		})
	}
}

func processingModeName(changes string, forbid bool) string {
	name := "override allowed"
	if forbid {
		name = "override forbidden"
	}
	return strings.TrimSpace(changes + " " + name)
}

// burstInMode has clients ask for a cold key; the leader gets its answer before the others.
func (e *edge) burstInMode(how string) {
	e.t.Helper()
	leader, rest := make(chan struct{}), make(chan struct{})
	e.serve("/page", func(n int, _ *http.Request) harness.Reply {
		reply := harness.Reply{
			Size: smallSize, Header: harness.Fields("Cache-Control", "max-age=600", "Content-Type", "text/plain"), Gate: rest,
		}
		if n == 1 {
			reply.Gate = leader
		}
		return reply
	})
	answers := e.burst(modeClients, e.get("/page"))
	switch how {
	case shares:
		e.waiting(modeClients - 1)
		close(leader)
	case learns:
		e.waiting(modeClients - 1)
		close(leader)
		e.answering("/page", modeClients-1)
	default:
		e.answering("/page", modeClients) // all at once, the leader's answer is not there yet
		close(leader)
	}
	close(rest)
	e.wantBody(answers(), harness.GeneratedBody(smallSize))
	if want := map[bool]int{true: 1, false: modeClients}[how == shares]; e.origin.Count("/page") != want {
		e.t.Errorf("burst: the origin saw %d requests, want %d", e.origin.Count("/page"), want)
	}
}

// useInMode asks for this and that, and checks every answer.
func (e *edge) useInMode() {
	e.t.Helper()
	for path, size := range map[string]int{"/big": bigSize, "/posted": smallSize} {
		e.serve(path, harness.Always(harness.Reply{
			Size: size, Header: harness.Fields("Cache-Control", "max-age=600", "Content-Type", "text/plain"),
		}))
	}
	posted := strings.Repeat("x", 300_000)
	tests := []struct {
		method, path, body string
		want               int
	}{
		{"GET", "/page", "", smallSize},
		{"GET", "/page", "", smallSize},
		{"HEAD", "/page", "", 0},
		{"GET", "/big", "", bigSize},
		{"GET", "/big", "", bigSize},
		{"POST", "/posted", posted, smallSize},
	}
	for _, tt := range tests {
		req, err := http.NewRequestWithContext(e.t.Context(), tt.method, e.envoy.URL(tt.path), strings.NewReader(tt.body))
		if err != nil {
			e.t.Fatal(err)
		}
		got := e.do(req)
		if got.Status != 200 || string(got.Body) != string(harness.GeneratedBody(tt.want)) {
			e.t.Errorf("%s %s: status %d, %d bytes, want %d", tt.method, tt.path, got.Status, len(got.Body), tt.want)
		}
	}
	if seen := e.origin.Requests("/posted"); len(seen) != 1 || !strings.HasPrefix(posted, string(seen[0].Body)) {
		e.t.Errorf("the origin saw %d POST requests, or another body", len(seen))
	}
}

// wantModeCounted checks what the operator sees of it, and that Envoy found no fault with what weir says.
func (e *edge) wantModeCounted(unusable bool) {
	e.t.Helper()
	e.quiet()
	metrics := e.weir.Metrics()
	counted, passed := metrics.Sum("weir_mode_unusable_total"), e.outcomes()["bypass_mode"]
	if (counted > 0) != unusable || unusable && passed == 0 {
		e.t.Errorf("weir_mode_unusable_total is %v, outcomes %v; unusable: %t", counted, e.outcomes(), unusable)
	}
	logged := 0
	for line := range strings.Lines(e.weir.Output()) {
		if strings.Contains(line, `"WARN"`) && (strings.Contains(line, "processing mode leaves no room") ||
			strings.Contains(line, "did not show weir a response")) {
			logged++
		}
	}
	if (logged > 0) != unusable || logged > 2 { // one of each kind
		e.t.Errorf("the warning was logged %d times; unusable: %t", logged, unusable)
	}
	for _, name := range []string{"spurious_msgs_received", "failure_mode_allowed", "streams_failed", "message_timeouts"} {
		if n := e.envoy.Counter("http.edge.ext_proc." + name); n != 0 {
			e.t.Errorf("Envoy's ext_proc %s is %d", name, n)
		}
	}
}

package e2e_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirproxy/weir/e2e/harness"
)

// patience bounds what a test waits for: far longer than anything takes, since other work may share the machine.
const patience = 30 * time.Second

// edge is what most tests run on: clients, a real Envoy, weir, and an origin that follows a script.
type edge struct {
	t      *testing.T
	origin *harness.Origin
	envoy  *harness.Envoy
	weir   *harness.Weir
}

type edgeOptions struct {
	// Envoy's Origins are the scripted origin unless the test names its own.
	Envoy harness.EnvoyOptions
	// Spec are further lines of the spec of shopPolicy: "coalescing: {maxWait: 1s}".
	Spec string
	// Policies replace shopPolicy.
	Policies map[string]string
	// NoRefill leaves weir without a way to fetch on its own.
	NoRefill bool
	// Weir is what else is peculiar about weir.
	Weir harness.WeirOptions
}

// startEdge starts all of it. The test defers settles, or quiet where requests do not all pass weir.
func startEdge(t *testing.T, o edgeOptions) *edge {
	t.Helper()
	e := &edge{t: t, origin: harness.StartOrigin(t)}
	if len(o.Envoy.Origins) == 0 {
		o.Envoy.Origins = []string{e.origin.Address()}
	}
	e.envoy = harness.StartEnvoy(t, o.Envoy)
	o.Weir.Policies = o.Policies
	if o.Policies == nil {
		o.Weir.Policies = map[string]string{"shop.yaml": shopPolicy + spec(o.Spec)}
	}
	if !o.NoRefill {
		o.Weir.RefillAddress = e.envoy.RefillAddress()
	}
	e.weir = harness.StartWeir(t, o.Weir)
	e.envoy.SetWeir(e.weir.GRPCAddress)
	return e
}

// spec indents lines so that they continue the spec of shopPolicy.
func spec(lines string) string {
	var out strings.Builder
	for line := range strings.Lines(lines) {
		out.WriteString("  " + strings.TrimSpace(line) + "\n")
	}
	return out.String()
}

// serve scripts the origin.
func (e *edge) serve(path string, script harness.Script) { e.origin.Handle(path, script) }

// get makes a request for a path of the edge.
func (e *edge) get(path string, fields ...string) *http.Request {
	return harness.Get(e.envoy.URL(path), fields...)
}

// do sends a request and reads the whole response.
func (e *edge) do(req *http.Request) harness.Response {
	e.t.Helper()
	return harness.Do(e.t, req)
}

// burst sends n equal requests at once; the returned function waits for the answers.
func (e *edge) burst(n int, req *http.Request) func() []harness.BurstResult {
	e.t.Helper()
	return harness.StartBurst(e.t, n, harness.Same(req))
}

// send sends a request on a connection of its own, which the test may close early to be a client that gives up.
func (e *edge) send(req *http.Request) *net.TCPConn {
	e.t.Helper()
	conn := harness.Dial(e.t, e.envoy.Address())
	if err := req.Write(conn); err != nil {
		e.t.Fatalf("send a request: %v", err)
	}
	return conn
}

// hangUp closes a client's connection.
func (e *edge) hangUp(conn io.Closer) {
	e.t.Helper()
	if err := conn.Close(); err != nil {
		e.t.Fatalf("hang up: %v", err)
	}
}

// eventually waits until cond holds.
func (e *edge) eventually(what string, cond func() bool) {
	e.t.Helper()
	harness.Eventually(e.t, patience, what, cond)
}

// waiting waits until exactly n requests are held.
func (e *edge) waiting(n int) {
	e.t.Helper()
	var last float64
	defer func() {
		if e.t.Failed() {
			e.t.Logf("weir_waiting was %v at last", last)
		}
	}()
	e.eventually("the wanted number of requests is held", func() bool {
		last = e.weir.Metrics().Sum("weir_waiting")
		return last == float64(n)
	})
}

// answering waits until the origin is at work on exactly n requests for a path.
func (e *edge) answering(path string, n int) {
	e.t.Helper()
	e.eventually("the origin answers the wanted number of requests", func() bool {
		return e.origin.Concurrent(path) == n
	})
}

// wantCount checks how many requests for a path the origin saw.
func (e *edge) wantCount(path string, want int) {
	e.t.Helper()
	if got := e.origin.Count(path); got != want {
		e.t.Errorf("%s: the origin saw %d requests, want %d", path, got, want)
	}
}

// wantBody checks answers that came whole, with status 200 and all the same body.
func (e *edge) wantBody(answers []harness.BurstResult, want []byte) {
	e.t.Helper()
	for i, r := range answers {
		if r.Err != nil || r.Status != http.StatusOK || r.Hash != hash(want) {
			e.t.Errorf("client %d of %d: status %d, %d of %d bytes, error %v, Cache-Status %q",
				i, len(answers), r.Status, r.Length, len(want), r.Err, r.Header.Get("Cache-Status"))
		}
	}
}

// invalidate makes what is stored of a path unusable.
func (e *edge) invalidate(path string) {
	e.t.Helper()
	var done map[string]any
	e.weir.AdminPost("/v1/invalidate", map[string]string{
		"by": "Url", "value": e.envoy.URL(path), "namespace": "shop",
	}, &done)
}

// weirStatus is the part of GET /v1/status that tests look at.
type weirStatus struct {
	Streams, Waiting int
	Flights          struct{ Flights, Waiters, Marks int }
	Refills          struct{ Running int }
	Store            struct{ Entries int }
}

func (e *edge) status() weirStatus {
	e.t.Helper()
	var s weirStatus
	e.weir.AdminGet("/v1/status", &s)
	return s
}

// outcomes are the values of weir_requests_total that are not zero, by outcome.
func (e *edge) outcomes() map[string]int {
	e.t.Helper()
	return e.outcomesSince(nil)
}

// outcomesSince are what the outcomes gained after an earlier reading.
func (e *edge) outcomesSince(before harness.Metrics) map[string]int {
	e.t.Helper()
	counted := make(map[string]int)
	for series, value := range e.weir.Metrics().Since(before, "weir_requests_total") {
		name := strings.TrimSuffix(strings.TrimPrefix(series, `weir_requests_total{outcome="`), `"}`)
		counted[name] = int(value)
	}
	return counted
}

// wantOutcomes checks how all requests so far ended.
func (e *edge) wantOutcomes(want map[string]int) {
	e.t.Helper()
	e.wantOutcomesSince(nil, "all", want)
}

// wantOutcomesSince checks how the requests after an earlier reading ended.
func (e *edge) wantOutcomesSince(before harness.Metrics, what string, want map[string]int) {
	e.t.Helper()
	if diff := cmp.Diff(want, e.outcomesSince(before)); diff != "" {
		e.t.Errorf("%s: weir_requests_total (-want +got):\n%s", what, diff)
	}
}

// quiet checks that weir holds nothing any more: no stream, no flight, no waiter, no fetch of its own.
func (e *edge) quiet() {
	e.t.Helper()
	if e.t.Failed() {
		return // there is nothing more to learn, and what failed may be the reason
	}
	var s weirStatus
	defer func() {
		if e.t.Failed() {
			e.t.Logf("/v1/status at last: %+v", s)
		}
	}()
	e.eventually("/v1/status is back at zero", func() bool {
		s = e.status()
		return s.Streams == 0 && s.Waiting == 0 && s.Flights.Flights == 0 && s.Flights.Waiters == 0 &&
			s.Refills.Running == 0
	})
	e.waiting(0)
	if n := e.weir.Metrics().Sum("weir_grpc_panics_total"); n != 0 {
		e.t.Errorf("%v streams panicked", n)
	}
}

// settles checks the books when all requests of a test are over: weir holds nothing, every request of a client was
// counted under exactly one outcome, and the outcome is what Cache-Status told the client.
func (e *edge) settles() {
	e.t.Helper()
	e.quiet()
	if e.t.Failed() {
		return
	}
	total := int(e.weir.Metrics().Sum("weir_requests_total"))
	onEdge := func(l harness.AccessLogEntry) bool { return l.Listener == "edge" }
	log := e.envoy.WaitAccessLog(total, onEdge)
	if len(log) != total {
		e.t.Errorf("clients made %d requests, weir counted %d: %v", len(log), total, e.outcomes())
	}
	told := make(map[string]int)
	for _, l := range log {
		outcome := outcomeOf(l)
		told[outcome]++
		if logged, ok := l.Weir["outcome"]; ok && logged != outcome {
			e.t.Errorf("access log: outcome %v beside Cache-Status %q", logged, l.CacheStatus)
		}
	}
	counted := make(map[string]int)
	for outcome, n := range e.outcomes() {
		if silent(outcome) {
			outcome = ""
		}
		counted[outcome] += n
	}
	if diff := cmp.Diff(told, counted); diff != "" {
		e.t.Errorf("outcomes that Cache-Status told, and that were counted (-told +counted):\n%s", diff)
	}
}

// answer is a response that a client reads step by step.
type answer struct {
	e    *edge
	conn net.Conn
	resp *http.Response
	got  []byte
}

// begin sends a request and reads the response's head and the first n bytes of its body.
func (e *edge) begin(req *http.Request, n int) *answer {
	e.t.Helper()
	a := &answer{e: e, conn: e.send(req)}
	resp, err := http.ReadResponse(bufio.NewReader(a.conn), req)
	if err != nil {
		e.t.Fatalf("read the response's head: %v", err)
	}
	a.resp, a.got = resp, make([]byte, n)
	if _, err := io.ReadFull(resp.Body, a.got); err != nil {
		e.t.Fatalf("read the first %d bytes of a response with status %d: %v", n, resp.StatusCode, err)
	}
	return a
}

// rest reads what is left. The error says that the response broke off.
func (a *answer) rest() ([]byte, error) {
	more, err := io.ReadAll(a.resp.Body)
	return append(a.got, more...), err
}

// hangUp closes the client's connection.
func (a *answer) hangUp() { a.e.hangUp(a.conn) }

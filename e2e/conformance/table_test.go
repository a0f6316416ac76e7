package conformance_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/e2e/harness"
)

// The tables of this package, in the spirit of http-cache-tests: a row is a path of its own, what the origin answers
// there, and what clients must get. Time passes by the origin's word, not by sleeping: an answer with "Age: 100" and
// "max-age=90" is stale at once.

// row is one case. Rows share one installation, each with its own path.
type row struct {
	name string
	// policy is "rfc", "strict" or "windows"; "" is "rfc". See policyOf.
	policy string
	// answers are the origin's, by the number of the request it sees; the last one is repeated. A body that is not
	// given is "answer N", and tells in the client's hands which answer it got.
	answers []harness.Reply
	// requests are sent one after the other.
	requests []request
}

// request is one request of a client and what it must get.
type request struct {
	method string   // "" is GET
	fields []string // name, value pairs
	want   want
}

// want is what must be true of a response. Zero values ask for nothing but Status, which is 200.
type want struct {
	status int
	// answer is the number of the origin's answer whose body the client gets; notAnswer one whose body it must not.
	answer, notAnswer int
	// asked is how many requests the origin has seen by then. A refresh in the background may still come: it is
	// waited for; one too many is not.
	asked int
	// refreshed waits until no refresh in the background runs any more.
	refreshed bool
	// fields are name, value pairs that must be there so; absent are names that must not be there.
	fields, absent []string
	// age is the least Age; one second more is allowed for. The field must be there when it is not 0.
	age int
	// cacheStatus are conditions on weir's member of Cache-Status: see matchCacheStatus.
	cacheStatus []string
}

// anyError allows every status from 500.
const anyError = -1

// fields makes a Reply of name, value pairs.
func fields(pairs ...string) harness.Reply { return harness.Reply{Header: harness.Fields(pairs...)} }

// closed is an origin that closes the connection without answering.
func closed() harness.Reply { return harness.Reply{Raw: "\r\n"} }

func status(code int, pairs ...string) harness.Reply {
	return harness.Reply{Status: code, Header: harness.Fields(pairs...)}
}

// installation is one Envoy with weir and an origin.
type installation struct {
	origin *harness.Origin
	envoy  *harness.Envoy
	weir   *harness.Weir
}

// policyOf is the policy of conformance.yaml's spirit with windows as given.
func policyOf(name, whileRevalidate, ifError string) string {
	return fmt.Sprintf(`apiVersion: weir.dev/v1alpha1
kind: CachePolicy
metadata: {name: %[1]s, namespace: e2e}
spec:
  targetRefs: [{group: weir.dev, kind: EnvoyRoute, name: %[1]s}]
  jitterPercent: 0
  xfetch: {mode: "Off"}
  stale: {whileRevalidate: %[2]s, ifError: %[3]s, softTimeout: 0s}
  requestDirectives: Honor
`, name, whileRevalidate, ifError)
}

// install starts an installation with three routes and policies: /rfc/ serves stale on errors, as RFC 9111 §4.2.4
// allows; /strict/ never does by itself; /windows/ has both windows open.
func install(t *testing.T) *installation {
	t.Helper()
	in := &installation{origin: harness.StartOrigin(t)}
	names := []string{"rfc", "strict", "windows"}
	var routes []harness.Route
	for _, name := range names {
		routes = append(routes, harness.Route{Name: name, Prefix: "/" + name + "/"})
	}
	in.envoy = harness.StartEnvoy(t, harness.EnvoyOptions{Origins: []string{in.origin.Address()}, Routes: routes})
	in.weir = harness.StartWeir(t, harness.WeirOptions{
		Policies: map[string]string{
			"rfc.yaml":     policyOf("rfc", "0s", "10m"),
			"strict.yaml":  policyOf("strict", "0s", "0s"),
			"windows.yaml": policyOf("windows", "10m", "10m"),
		},
		RefillAddress: in.envoy.RefillAddress(),
	})
	in.envoy.SetWeir(in.weir.GRPCAddress)
	return in
}

// runTable runs the rows side by side.
func runTable(t *testing.T, rows []row) {
	t.Helper()
	in := install(t)
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			in.run(t, r)
		})
	}
}

func (in *installation) run(t *testing.T, r row) {
	t.Helper()
	path := "/" + pathOf(r.policy) + "/" + strings.NewReplacer("/", "-", "#", "-").Replace(t.Name())
	in.origin.Handle(path, script(r.answers))
	for i, q := range r.requests {
		req := harness.Get(in.envoy.URL(path), q.fields...)
		if q.method != "" {
			req.Method = q.method
		}
		resp := harness.Do(t, req)
		what := fmt.Sprintf("request %d", i+1)
		checkResponse(t, what, resp, q.want)
		if q.want.asked > 0 {
			harness.Eventually(t, 10*time.Second, fmt.Sprintf("%s: the origin is asked %d times", what, q.want.asked),
				func() bool { return in.origin.Count(path) >= q.want.asked })
			if n := in.origin.Count(path); n != q.want.asked {
				t.Errorf("%s: the origin was asked %d times, want %d", what, n, q.want.asked)
			}
		}
		if q.want.refreshed {
			in.awaitRefreshes(t)
		}
		if t.Failed() {
			t.Fatalf("%s got %d %q\n%s", what, resp.Status, resp.Body, fieldLines(resp.Header))
		}
	}
}

// awaitRefreshes waits until none runs, of this row or of another: those that ran before are over then.
func (in *installation) awaitRefreshes(t *testing.T) {
	t.Helper()
	harness.Eventually(t, 30*time.Second, "refreshes are over", func() bool {
		var status struct{ Refills struct{ Running int } }
		in.weir.AdminGet("/v1/status", &status)
		return status.Refills.Running == 0
	})
}

func pathOf(policy string) string {
	if policy == "" {
		return "rfc"
	}
	return policy
}

// script answers the n-th request by the n-th answer, then by the last.
func script(answers []harness.Reply) harness.Script {
	return func(n int, _ *http.Request) harness.Reply {
		a := answers[min(n, len(answers))-1]
		if a.Body == nil && a.Raw == "" {
			a.Body = answerBody(n)
		}
		return a
	}
}

func answerBody(n int) []byte { return []byte("answer " + strconv.Itoa(n)) }

func checkResponse(t *testing.T, what string, resp harness.Response, w want) {
	t.Helper()
	checkStatus(t, what, resp.Status, w.status)
	if w.answer > 0 && string(resp.Body) != string(answerBody(w.answer)) {
		t.Errorf("%s: body %q, want %q", what, resp.Body, answerBody(w.answer))
	}
	if w.notAnswer > 0 && string(resp.Body) == string(answerBody(w.notAnswer)) {
		t.Errorf("%s: body %q, which must not be served", what, resp.Body)
	}
	for pair := range slices.Chunk(w.fields, 2) {
		if got := strings.Join(resp.Header.Values(pair[0]), ", "); got != pair[1] {
			t.Errorf("%s: %s: %q, want %q", what, pair[0], got, pair[1])
		}
	}
	for _, name := range w.absent {
		if got := resp.Header.Values(name); len(got) > 0 {
			t.Errorf("%s: %s: %q, want none", what, name, got)
		}
	}
	checkAge(t, what, resp.Header, w.age)
	checkCacheStatus(t, what, resp.Header, w.cacheStatus)
}

func checkStatus(t *testing.T, what string, got, want int) {
	t.Helper()
	switch {
	case want == anyError && got >= 500:
	case want == 0 && got == http.StatusOK:
	case got == want:
	default:
		t.Errorf("%s: status %d, want %d", what, got, want)
	}
}

func checkAge(t *testing.T, what string, h http.Header, least int) {
	t.Helper()
	lines := h.Values("Age")
	if len(lines) == 0 && least == 0 {
		return
	}
	age, err := strconv.Atoi(strings.Join(lines, ", "))
	if err != nil || age < least {
		t.Errorf("%s: Age: %q, want one number, at least %d", what, lines, least)
	}
	// The exchange takes a moment, on a busy machine more than one.
	if least > 0 && age > least+20 {
		t.Errorf("%s: Age: %d, want about %d", what, age, least)
	}
}

func fieldLines(h http.Header) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, value := range h[name] {
			fmt.Fprintf(&b, "    %s: %s\n", name, value)
		}
	}
	return b.String()
}

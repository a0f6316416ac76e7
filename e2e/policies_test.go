package e2e_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirproxy/weir/e2e/harness"
)

// everyField is the policy of the documentation, with every field set to something else than its default.
const everyField = `
apiVersion: weir.dev/v1alpha1
kind: CachePolicy
metadata: {name: catalog, namespace: shop}
spec:
  targetRefs: [{group: weir.dev, kind: EnvoyRoute, name: default}]
  mode: Enabled
  ttl: {default: 6m, min: 5m, max: 6m, origin: IgnoreFreshness, heuristic: Enabled}
  jitterPercent: 0
  negativeTTL:
  - {status: "404", ttl: 100s}
  - {status: "5xx", ttl: 200s}
  - {status: Unreachable, ttl: 300s}
  xfetch: {mode: "Off", beta: "2.5", maxLeadPercent: 5}
  stale: {whileRevalidate: 31s, ifError: 11m, softTimeout: 251ms}
  coalescing: {scope: Replica, maxWait: 6s, maxWaiters: 3, onTimeout: Unavailable}
  originLimits: {maxConcurrentFetches: 50, maxQueue: 60, onOverflow: Unavailable}
  key: {query: {mode: Include, names: [{type: Exact, value: id}]}, headers: [X-Tenant], cookies: [lang]}
  storage: {maxObjectSize: 2Ki, maxVariants: 2, setCookie: Strip, requestCookies: Ignore, sharing: Replica}
  tags: {responseHeader: X-Tags}
  requestDirectives: Honor
`

// weirctl runs the command beside the weir of the test and returns what it printed and its exit status.
func weirctl(t *testing.T, e *edge, args ...string) (stdout, stderr string, exit int) {
	t.Helper()
	if e != nil {
		args = append(args, "--admin-address="+e.weir.AdminAddress)
	}
	return runCommand(t, "weirctl", args...)
}

// runCommand runs a command of this module to its end.
func runCommand(t *testing.T, command string, args ...string) (stdout, stderr string, exit int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), harness.Binary(t, command), args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatalf("%s %q: %v", command, args, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// TestEveryFieldOfAPolicy: a file may set them all, and what it sets is done.
func TestEveryFieldOfAPolicy(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{Policies: map[string]string{"shop.yaml": everyField}})
	defer e.settles()
	if out, errs, exit := weirctl(t, nil, "validate", e.weir.PolicyDir); exit != 0 {
		t.Errorf("weirctl validate: exit status %d: %s%s", exit, out, errs)
	}
	tests := []struct {
		path   string
		reply  harness.Reply
		fields []string
		want   string // of the second answer's Cache-Status
	}{
		{"/silent", harness.Reply{}, nil, "hit; ttl=359"},                                                           // ttl.default
		{"/stated", harness.Reply{Header: harness.Fields("Cache-Control", "max-age=1")}, nil, "hit; ttl=359"},       // ttl.origin
		{"/missing", harness.Reply{Status: 404}, nil, "hit; ttl=99"},                                                // negativeTTL
		{"/failing", harness.Reply{Status: 503}, nil, "hit; ttl=199"},                                               // negativeTTL, by class
		{"/cookie", harness.Reply{Header: harness.Fields("Set-Cookie", "a=b")}, []string{"Cookie", "c=d"}, "hit"},   // storage.*Cookies
		{"/large", harness.Reply{Size: 2049}, nil, "detail=too-large"},                                              // storage.maxObjectSize
		{"/fits", harness.Reply{Size: 2048}, nil, "hit"},                                                            //
		{"/reload", harness.Reply{}, []string{"Cache-Control", "no-cache"}, "fwd=request"},                          // requestDirectives
		{"/query?a=1&id=2", harness.Reply{}, nil, "hit"},                                                            // key.query
		{"/tagged", harness.Reply{Header: harness.Fields("X-Tags", "one two")}, []string{"X-Tenant", "t"}, "hit; "}, // tags
	}
	for _, tt := range tests {
		e.serve(strings.SplitN(tt.path, "?", 2)[0], harness.Always(tt.reply))
		e.do(e.get(tt.path, tt.fields...))
		if got := e.do(e.get(tt.path, tt.fields...)).Header.Get("Cache-Status"); !strings.Contains(got, tt.want) {
			t.Errorf("%s: Cache-Status %q, want %q", tt.path, got, tt.want)
		}
	}
	for _, other := range []struct{ path, name, value, want string }{
		{"/query?id=2&a=3", "X-Other", "1", "hit"}, {"/query?id=3", "X-Other", "1", "fwd="},
		{"/tagged", "X-Tenant", "u", "fwd="}, {"/tagged", "Cookie", "lang=en", "fwd="},
	} {
		if got := e.do(e.get(other.path, other.name, other.value)).Header.Get("Cache-Status"); !strings.Contains(got, other.want) {
			t.Errorf("%s with %s: Cache-Status %q, want %q", other.path, other.name, got, other.want)
		}
	}
	var page struct{ Entries []struct{ Tags []string } }
	e.weir.AdminGet("/v1/entries", &page)
	tagged := 0
	for _, entry := range page.Entries {
		if len(entry.Tags) > 0 && cmp.Equal(entry.Tags, []string{"one", "two"}) {
			tagged++
		}
	}
	if tagged != 3 {
		t.Errorf("%d entries with tags, want 3", tagged)
	}
}

// lived is shopPolicy with a lifetime, told by the ttl of a hit.
func lived(seconds int) string {
	return shopPolicy + fmt.Sprintf("  ttl: {default: %ds}\n  jitterPercent: 0\n", seconds)
}

// ttlOf asks for a path that was never asked for and returns how long its answer is to live.
func (e *edge) ttlOf(path string) string {
	e.t.Helper()
	e.serve(path, harness.Always(harness.Reply{}))
	e.ask(path)
	status := e.do(e.get(path)).Header.Get("Cache-Status")
	_, ttl, _ := strings.Cut(status, "ttl=")
	return ttl
}

// policyState is what GET /v1/status says of the policies.
type policyState struct {
	Policies struct {
		Generation int
		Errors     []struct {
			File, Path, Reason string
			Line               int
		}
	}
}

func (e *edge) policyState() (s policyState) {
	e.t.Helper()
	e.weir.AdminGet("/v1/status", &s)
	return s
}

// TestInvalidFileKeepsTheLastGoodSet: an error in a file is told with its place by the log, a counter, the status and
// weirctl, who says the same offline; what was in use stays until the file is mended.
func TestInvalidFileKeepsTheLastGoodSet(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{Policies: map[string]string{"shop.yaml": lived(100)}})
	defer e.settles()
	if got := e.ttlOf("/first"); got != "99" {
		t.Errorf("under the first policy: ttl=%s, want 99", got)
	}
	e.weir.WritePolicy("shop.yaml", lived(200)+"  storage: {maxVariants: 0}\n")
	failures := func() float64 { return e.weir.Metrics()[`weir_policy_reload_total{result="failure"}`] }
	e.eventually("the invalid file is counted", func() bool { return failures() == 1 })

	file := filepath.Join(e.weir.PolicyDir, "shop.yaml")
	const line, field = 9, "spec.storage.maxVariants"
	s := e.policyState().Policies
	if len(s.Errors) != 1 || s.Errors[0].File != file || s.Errors[0].Line != line || s.Errors[0].Path != field || s.Generation != 1 {
		t.Fatalf("/v1/status: %+v, want one error in line %d of %s", s, line, file)
	}
	fault := fmt.Sprintf("%s:%d: %s: %s", file, line, field, s.Errors[0].Reason)
	if out, _, exit := weirctl(t, e, "status"); exit != 0 || !strings.Contains(out, fault) {
		t.Errorf("weirctl status: exit status %d, want %q in\n%s", exit, fault, out)
	}
	if out, _, exit := weirctl(t, nil, "validate", file); exit != 1 || out != fault+"\n" {
		t.Errorf("weirctl validate: exit status %d, printed %q, want %q", exit, out, fault)
	}
	for _, part := range []string{`"file":"` + file + `"`, fmt.Sprintf(`"line":%d`, line), `"field":"` + field + `"`} {
		if !strings.Contains(e.weir.Output(), part) {
			t.Errorf("the log does not say %s", part)
		}
	}
	if got := e.ttlOf("/second"); got != "99" {
		t.Errorf("with an invalid file: ttl=%s, want 99 as before", got)
	}

	e.weir.WritePolicy("shop.yaml", lived(200))
	e.eventually("the mended file is in use", func() bool { return e.policyState().Policies.Generation == 2 })
	if got := e.ttlOf("/third"); got != "199" {
		t.Errorf("with the mended file: ttl=%s, want 199", got)
	}
	if s := e.policyState().Policies; len(s.Errors) != 0 || failures() != 1 {
		t.Errorf("the mended file: %+v, %v failures", s, failures())
	}
	if out, _, exit := weirctl(t, nil, "validate", file); exit != 0 || !strings.Contains(out, "1 policy: valid") {
		t.Errorf("weirctl validate: exit status %d, %q", exit, out)
	}
}

// TestConfigMapMount: a mount changes by a symbolic link that is put in the place of another; weir takes the new files.
func TestConfigMapMount(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mount := func(generation, policy string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(dir, generation), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, generation, "shop.yaml"), []byte(policy), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(generation, filepath.Join(dir, "..data_tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	mount("..2026_11_30_1", lived(100))
	if err := os.Symlink("..data/shop.yaml", filepath.Join(dir, "shop.yaml")); err != nil {
		t.Fatal(err)
	}
	e := startEdge(t, edgeOptions{Weir: harness.WeirOptions{Args: []string{"--policy-dir=" + dir}}})
	defer e.settles()
	if got := e.ttlOf("/first"); got != "99" {
		t.Errorf("ttl=%s, want 99", got)
	}
	mount("..2026_11_30_2", lived(200))
	e.eventually("the new generation is in use", func() bool { return e.policyState().Policies.Generation == 2 })
	if got := e.ttlOf("/second"); got != "199" {
		t.Errorf("ttl=%s, want 199", got)
	}
}

// TestPolicyChangesUnderHeldRequests: who is held when the policy changes, or goes, gets the answer that it waits for;
// who comes later is treated by the new one.
func TestPolicyChangesUnderHeldRequests(t *testing.T) {
	t.Parallel()
	const followers = 10
	e := startEdge(t, edgeOptions{})
	defer e.settles()
	for i, change := range []struct {
		policy  string
		counted string // of a request that comes after the change, while the others wait
	}{
		{strings.Replace(shopPolicy, "name: catalog", "name: renamed", 1), "coalesced"},
		{shopPolicy + "  key: {headers: [X-Tenant]}\n", "miss"}, // another key, so another flight
		{shopPolicy + "  mode: Disabled\n", "bypass_policy"},
		{"", "bypass_policy"}, // no policies
	} {
		path := fmt.Sprintf("/page-%d", i)
		e.weir.WritePolicy("shop.yaml", shopPolicy)
		e.eventually("the first policy is in use", func() bool { return e.policyState().Policies.Generation == 2*i+1 })
		before := e.weir.Metrics()
		gate := make(chan struct{})
		e.serve(path, harness.Always(harness.Reply{
			Gate: gate, Body: []byte("page"), Header: harness.Fields("Cache-Control", "max-age=60"),
		}))
		held := e.burst(1+followers, e.get(path))
		e.waiting(followers)
		e.weir.WritePolicy("shop.yaml", change.policy)
		e.eventually("the change is in use", func() bool { return e.policyState().Policies.Generation == 2*i+2 })
		later := e.burst(1, e.get(path))
		if change.counted == "coalesced" {
			e.waiting(followers + 1)
		} else {
			e.answering(path, 2)
		}
		close(gate)
		e.wantBody(append(held(), later()...), []byte("page"))
		e.quiet()
		want := map[string]int{"miss": 1, "coalesced": followers}
		want[change.counted]++
		e.wantOutcomesSince(before, change.policy, want)
	}
}

// TestPolicyNamedByTheRoute: metadata on the route names the policy, whatever policy targets the route by its name.
func TestPolicyNamedByTheRoute(t *testing.T) {
	t.Parallel()
	policy := func(name, route string, ttl int) string {
		return fmt.Sprintf("---\napiVersion: weir.dev/v1alpha1\nkind: CachePolicy\nmetadata: {name: %s, namespace: shop}\n"+
			"spec:\n  targetRefs: [{group: weir.dev, kind: EnvoyRoute, name: %s}]\n  ttl: {default: %ds}\n  jitterPercent: 0\n",
			name, route, ttl)
	}
	e := startEdge(t, edgeOptions{
		Envoy: harness.EnvoyOptions{Routes: []harness.Route{
			{Name: "both", Prefix: "/both", Policy: "shop/named"}, {Name: "route", Prefix: "/route"},
			{Name: "elsewhere", Prefix: "/named", Policy: "shop/named"}, {Name: "unknown", Prefix: "/unknown", Policy: "shop/none"},
		}},
		Policies: map[string]string{"shop.yaml": policy("named", "elsewhere", 100) + policy("other", "both", 200) +
			policy("third", "route", 300) + policy("fourth", "unknown", 400)},
	})
	defer e.settles()
	for path, want := range map[string]string{"/both": "99", "/route": "299", "/named": "99", "/unknown": ""} {
		if got := e.ttlOf(path); got != want {
			t.Errorf("%s: ttl=%q, want %q", path, got, want)
		}
	}
	named := e.envoy.WaitAccessLog(1, func(l harness.AccessLogEntry) bool { return l.Path == "/both" && l.Code == http.StatusOK })
	if got := named[0].Weir["policy"]; got != "shop/named" {
		t.Errorf("the access log shows policy %v for the route that names shop/named", got)
	}
}

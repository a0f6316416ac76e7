package e2e_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirproxy/weir/e2e/harness"
)

// explained is what weirctl explain says of a request.
type explained struct {
	Decision, Reason, Outcome, CacheStatus, Policy string
	Key                                            struct{ Resource string }
	Stored                                         *struct{ Status, BodyBytes int }
	Answer                                         *struct {
		Stored   bool
		Reason   string
		Lifetime float64
	}
}

// explain asks weirctl about a request for a path of the edge.
func (e *edge) explain(req *http.Request, more ...string) (x explained) {
	e.t.Helper()
	args := []string{"explain", req.URL.String(), "-o", "json", "-X", req.Method}
	for name, values := range req.Header {
		for _, v := range values {
			args = append(args, "-H", name+": "+v)
		}
	}
	out, errs, exit := weirctl(e.t, e, append(args, more...)...)
	if err := json.Unmarshal([]byte(out), &x); exit != 0 || err != nil {
		e.t.Fatalf("weirctl %q: exit status %d, %v: %s%s", args, exit, err, out, errs)
	}
	return x
}

// TestExplainedIsDone: what weirctl explain says of a request is what then happens to it, and to ask changes nothing.
func TestExplainedIsDone(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{Spec: "requestDirectives: Honor\nstale: {whileRevalidate: 1h, softTimeout: 0s}\n" +
		"negativeTTL: [{status: \"404\", ttl: 60s}]\nkey: {query: {names: [{type: Prefix, value: utm_}]}}"})
	defer e.settles()
	e.serve("/", harness.Always(harness.Reply{
		Body: []byte("page"), Header: harness.Fields("Cache-Control", "max-age=60", "Content-Type", "text/plain"),
	}))
	e.serve("/missing", harness.Always(harness.Reply{Status: 404}))
	request := func(method, path string, fields ...string) *http.Request {
		req := e.get(path, fields...)
		req.Method = method
		return req
	}
	steps := []struct {
		name     string
		before   func()
		request  *http.Request
		decision string
		outcome  string // counted in the end; explain says so too where that is settled before the origin answers
	}{
		{"cold", nil, request("GET", "/a?utm_x=1"), "Fetch", "miss"},
		{"fresh", nil, request("GET", "/a"), "Serve", "hit"},
		{"fresh, by HEAD", nil, request("HEAD", "/a?utm_y=2"), "Serve", "hit"},
		{"forced", nil, request("GET", "/a", "Cache-Control", "no-cache"), "Fetch", "miss"},
		{"stored nowhere", nil, request("GET", "/b", "Cache-Control", "only-if-cached"), "Refuse", "only_if_cached"},
		{"part of nothing", nil, request("GET", "/b", "Range", "bytes=0-1"), "Pass", "bypass_request"},
		{"override", nil, request("GET", "/a", "X-HTTP-Method-Override", "PUT"), "Pass", "bypass_request"},
		{"one user", nil, request("GET", "/b", "Authorization", "A"), "FetchAlone", "miss_uncacheable"},
		{"missing", nil, request("GET", "/missing"), "Fetch", "miss"},
		{"known to be missing", nil, request("GET", "/missing"), "Serve", "hit_negative"},
		{"soft-stale", func() { e.steer("invalidate", "url", e.envoy.URL("/a"), "--soft") }, request("GET", "/a"),
			"ServeAndRefresh", "hit_stale"},
		{"gone", func() {
			e.quiet()
			e.steer("invalidate", "url", e.envoy.URL("/a?utm_z=3"), "-n", "shop")
		}, request("GET", "/a"), "Fetch", "miss"},
		{"write", nil, request("POST", "/a"), "Watch", "bypass_method"},
		{"after the write", nil, request("GET", "/a?utm_x=1"), "Fetch", "miss"},
		{"other host", nil, request("GET", "/a", "X-Forwarded-Host", "b.test"), "Fetch", "miss"},
		{"this host", func() { e.steer("invalidate", "host", e.envoy.Address()) }, request("GET", "/missing"), "Fetch", "miss"},
		{"all", func() { e.steer("invalidate", "all") }, request("GET", "/missing"), "Fetch", "miss"},
	}
	for _, s := range steps {
		if s.before != nil {
			s.before()
		}
		said := e.explain(s.request)
		if again := e.explain(s.request); again.Decision != said.Decision || again.Outcome != said.Outcome {
			t.Errorf("%s: %s, and when asked again %s", s.name, said.Decision, again.Decision)
		}
		before := e.weir.Metrics()
		got := e.do(s.request).Header.Get("Cache-Status")
		e.quiet()
		if said.Decision != s.decision || said.Outcome != "" && said.Outcome != s.outcome {
			t.Errorf("%s: explained as %+v, want %s and outcome %s", s.name, said, s.decision, s.outcome)
		}
		for param := range strings.SplitSeq(said.CacheStatus, "; ") {
			if strings.HasPrefix(param, "ttl=") { // time passes
				continue
			}
			if !strings.Contains("; "+got+";", "; "+param+";") {
				t.Errorf("%s: Cache-Status %q, explained as %q", s.name, got, said.CacheStatus)
			}
		}
		e.wantOutcomesSince(before, s.name, map[string]int{s.outcome: 1})
	}
}

// steer runs weirctl for what it does.
func (e *edge) steer(args ...string) {
	e.t.Helper()
	if out, errs, exit := weirctl(e.t, e, args...); exit != 0 {
		e.t.Errorf("weirctl %q: exit status %d: %s%s", args, exit, out, errs)
	}
}

// TestExplainedAnswer: with the origin's answer given, explain says whether it is stored, and for how long; with files
// instead of a running weir it says the same.
func TestExplainedAnswer(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{Spec: "jitterPercent: 0"})
	defer e.settles()
	for path, header := range map[string][]string{
		"/stored":  {"Cache-Control", "max-age=100"},
		"/private": {"Cache-Control", "private"},
		"/cookie":  {"Cache-Control", "max-age=100", "Set-Cookie", "a=b"},
		"/silent":  nil,
	} {
		e.serve(path, harness.Always(harness.Reply{Header: harness.Fields(header...)}))
		more := []string{"--status=200"}
		for i := 0; i < len(header); i += 2 {
			more = append(more, "--response-header", header[i]+": "+header[i+1])
		}
		online := e.explain(e.get(path), more...)
		out, _, _ := weirctl(t, nil, append([]string{"explain", e.envoy.URL(path), "-o", "json",
			"--policy-file=" + e.weir.PolicyDir}, more...)...)
		var offline explained
		if err := json.Unmarshal([]byte(out), &offline); err != nil {
			t.Fatalf("offline: %v in %q", err, out)
		}
		if diff := cmp.Diff(online, offline); diff != "" {
			t.Errorf("%s (-online +offline):\n%s", path, diff)
		}
		got := e.do(e.get(path)).Header.Get("Cache-Status")
		if online.Answer == nil || strings.Contains(got, "stored") != online.Answer.Stored ||
			!online.Answer.Stored && !strings.Contains(got, "detail="+online.Answer.Reason) {
			t.Errorf("%s: Cache-Status %q, explained as %+v", path, got, online.Answer)
		}
		if hit := e.do(e.get(path)).Header.Get("Cache-Status"); online.Answer.Stored && !strings.Contains(hit, "hit; ttl=99") {
			t.Errorf("%s: Cache-Status %q after a lifetime explained as %vs", path, hit, online.Answer.Lifetime)
		}
	}
}

// TestEntriesAreListed: weirctl lists what is stored, under the URI of its key, and what was evicted no more.
func TestEntriesAreListed(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{Spec: "key: {query: {names: [{type: Prefix, value: utm_}]}}"})
	defer e.settles()
	e.serve("/", harness.Always(harness.Reply{
		Body: []byte("page"), Header: harness.Fields("Cache-Control", "max-age=60", "Vary", "Accept"),
	}))
	for _, path := range []string{"/a?utm_x=1", "/a", "/b?id=1&utm_x=1"} {
		e.ask(path, "Host", "Shop.test:80", "Accept", "text/html")
		e.ask(path, "Host", "blog.test", "Accept", "image/png")
	}
	list := func(args ...string) map[string]string {
		t.Helper()
		out, errs, exit := weirctl(t, e, append([]string{"entries", "-o", "json"}, args...)...)
		var page struct {
			Entries []struct {
				URI, State string
				Vary       map[string]string
			}
		}
		if err := json.Unmarshal([]byte(out), &page); exit != 0 || err != nil {
			t.Fatalf("weirctl entries: exit status %d, %v: %s", exit, err, errs)
		}
		found := make(map[string]string)
		for _, entry := range page.Entries {
			found[entry.URI] = entry.State + " " + entry.Vary["accept"]
		}
		return found
	}
	shop := map[string]string{"http://shop.test/a": "fresh text/html", "http://shop.test/b?id=1": "fresh text/html"}
	blog := map[string]string{"http://blog.test/a": "fresh image/png", "http://blog.test/b?id=1": "fresh image/png"}
	all := maps.Clone(shop)
	maps.Copy(all, blog)
	for args, want := range map[string]map[string]string{
		"": all, "--host=shop.test": shop, "--host=none.test": {}, "--policy=shop/catalog": all, "--policy=shop/none": {},
		"--limit=0": all,
	} {
		if diff := cmp.Diff(want, list(strings.Fields(args)...)); diff != "" {
			t.Errorf("weirctl entries %s (-want +got):\n%s", args, diff)
		}
	}
	// What is listed can be named: by its URI it is invalidated, and only it.
	for uri := range shop {
		u, err := url.Parse(uri)
		if err != nil {
			t.Fatal(err)
		}
		before := e.weir.Metrics()
		e.steer("invalidate", "url", uri)
		e.ask(u.RequestURI(), "Host", u.Host, "Accept", "text/html")
		e.ask(u.RequestURI(), "Host", "blog.test", "Accept", "image/png")
		e.wantOutcomesSince(before, uri, map[string]int{"miss": 1, "hit": 1})
	}
}

package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/e2e/harness"
	"github.com/weirproxy/weir/extproc/admin"
	"github.com/weirproxy/weir/extproc/warm"
)

// weirctl runs weirctl against the edge's weir and returns what it printed, and said.
func (e *edge) weirctl(args ...string) (stdout, stderr string, err error) {
	e.t.Helper()
	args = append(args, "--admin-address="+e.weir.AdminAddress)
	cmd := exec.CommandContext(e.t.Context(), harness.Binary(e.t, "weirctl"), args...)
	var out, said strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &said
	err = cmd.Run()
	return out.String(), said.String(), err
}

// warmFile is a --warm-file with these lines.
func warmFile(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "urls")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestWarmFile: what the file names is there before weir is ready: the first client of each page and variant is a hit.
func TestWarmFile(t *testing.T) {
	t.Parallel()
	origin := harness.StartOrigin(t)
	origin.Handle("/", func(_ int, r *http.Request) harness.Reply {
		return harness.Reply{
			Body:   []byte(r.URL.Path + " " + r.Header.Get("Accept-Encoding")),
			Header: harness.Fields("Cache-Control", "max-age=600", "Vary", "Accept-Encoding"),
		}
	})
	origin.Handle("/private", harness.Always(harness.Reply{Header: harness.Fields("Cache-Control", "private")}))
	envoy := harness.StartEnvoy(t, harness.EnvoyOptions{Origins: []string{origin.Address()}})
	lines := []string{"# what is read most", envoy.URL("/a"), envoy.URL("/a"), "  Accept-Encoding: gzip",
		envoy.URL("/private"), envoy.URL("/secret"), "  Authorization: Basic x"}
	for i := range 20 {
		lines = append(lines, envoy.URL(fmt.Sprintf("/page/%d?q=%%2F", i)))
	}
	weir := harness.StartWeir(t, harness.WeirOptions{
		Policies: map[string]string{"shop.yaml": shopPolicy}, RefillAddress: envoy.RefillAddress(),
		Args: []string{"--warm-file=" + warmFile(t, lines...), "--warm-rate=1000"},
	})
	envoy.SetWeir(weir.GRPCAddress)
	e := &edge{t: t, origin: origin, envoy: envoy, weir: weir}
	defer e.settles()

	count := origin.Count("/")
	for i := range 20 {
		path := fmt.Sprintf("/page/%d?q=%%2F", i)
		if r := e.do(e.get(path)); !strings.HasPrefix(r.Header.Get("Cache-Status"), "weir; hit") {
			t.Errorf("%s: Cache-Status %q", path, r.Header.Get("Cache-Status"))
		}
	}
	for _, coding := range []string{"", "gzip"} {
		fields := []string{"Accept-Encoding", coding}
		if coding == "" {
			fields = nil
		}
		if r := e.do(e.get("/a", fields...)); !strings.HasPrefix(r.Header.Get("Cache-Status"), "weir; hit") ||
			string(r.Body) != "/a "+coding {
			t.Errorf("variant %q: %q, Cache-Status %q", coding, r.Body, r.Header.Get("Cache-Status"))
		}
	}
	if count != 22 || origin.Count("/") != 22 {
		t.Errorf("the origin saw %d requests before clients came and %d in all, want 22", count, origin.Count("/"))
	}
	var jobs admin.WarmJobs
	weir.AdminGet("/v1/warm", &jobs)
	if len(jobs.Jobs) != 1 || jobs.Jobs[0].Stored != 22 || jobs.Jobs[0].Uncacheable != 1 || jobs.Jobs[0].Failed != 1 {
		t.Errorf("jobs %+v", jobs)
	}
	e.wantOutcomes(map[string]int{"hit": 22})
}

// TestWarmBeforeTheOrigin: weir and the warm-up start before the origin does; nothing is lost by it.
func TestWarmBeforeTheOrigin(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{})
	defer e.settles()
	e.serve("/page", harness.Always(harness.Reply{
		Body: []byte("page"), Header: harness.Fields("Cache-Control", "max-age=600"),
	}))
	e.origin.Down()
	var queued admin.WarmResult
	e.weir.AdminPost("/v1/warm", admin.WarmRequest{URLs: []string{e.envoy.URL("/page")}}, &queued)
	e.eventually("the warm-up has tried", func() bool { return e.weir.Metrics().Sum("weir_refills_total") > 0 })
	e.origin.Up()
	e.eventually("the page is loaded", func() bool {
		var jobs admin.WarmJobs
		e.weir.AdminGet("/v1/warm?job="+queued.Job, &jobs)
		return jobs.Jobs[0].State == warm.Done && jobs.Jobs[0].Stored == 1
	})
	e.wantHit("the first client", "/page", "ttl=")
}

// TestWeirctlWarmAndTop: the same by hand, and what is read most.
func TestWeirctlWarmAndTop(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{Spec: "ttl: {default: 600s}\nkey: {cookies: [lang]}"})
	defer e.settles()
	e.serve("/page/", harness.Always(harness.Reply{Body: []byte("page")}))
	e.serve("/gone", harness.Always(harness.Reply{Status: http.StatusGone}))
	file := warmFile(t, e.envoy.URL("/page/1"), "  Cookie: lang=de", e.envoy.URL("/page/2")+" route=default",
		e.envoy.URL("/page/3")+" route=unknown")
	out, said, err := e.weirctl("warm", e.envoy.URL("/page/4"), e.envoy.URL("/gone"), "--file="+file)
	if err == nil || !strings.Contains(said, "1 URL could not be loaded") || !strings.Contains(said, "100 %  5 of 5") {
		t.Errorf("weirctl warm: %v\n%s", err, said)
	}
	for _, want := range []string{"stored", "route \"unknown\"", "status 410"} {
		if !strings.Contains(out, want) {
			t.Errorf("weirctl warm printed no %q:\n%s", want, out)
		}
	}
	for range 20 {
		e.wantHit("loaded", "/page/2")
		if r := e.do(e.get("/page/1", "Cookie", "lang=de; other=1")); r.Status != http.StatusOK {
			t.Errorf("status %d", r.Status)
		}
	}
	rates := map[string]float64{}
	for _, k := range e.weirctlTop() {
		rates[k.URI] = k.Rate
		if k.Policy != "shop/catalog" || k.Route != "default" {
			t.Errorf("key %+v", k)
		}
	}
	if rates[e.envoy.URL("/page/2")] <= 0 || rates[e.envoy.URL("/page/1")] <= 0 || rates[e.envoy.URL("/page/4")] > 0 {
		t.Errorf("rates %v", rates)
	}
}

// weirctlTop are the keys that weirctl top shows; of the cookie lang it does not show the value.
func (e *edge) weirctlTop() []admin.HotKey {
	e.t.Helper()
	out, said, err := e.weirctl("top", "-o", "json", "--limit=5")
	var top admin.TopResult
	if err != nil || json.Unmarshal([]byte(out), &top) != nil {
		e.t.Fatalf("weirctl top: %v\n%s%s", err, out, said)
	}
	if strings.Contains(out, "lang=") || !strings.Contains(out, `"lang"`) {
		e.t.Errorf("cookies are to be shown by their names: %s", out)
	}
	return top.Keys
}

// TestRampThroughEnvoy: after a cold start no more fetches a second than --ramp-rate; all get their answer.
func TestRampThroughEnvoy(t *testing.T) {
	t.Parallel()
	const pages, rate = 20, 5
	e := startEdge(t, edgeOptions{
		Spec: "ttl: {default: 600s}\ncoalescing: {maxWait: 30s}",
		Weir: harness.WeirOptions{Args: []string{fmt.Sprintf("--ramp-rate=%d", rate), "--ramp-duration=1h"}},
	})
	defer e.settles()
	e.serve("/page/", harness.Always(harness.Reply{Body: []byte("page")}))
	start := time.Now()
	e.wantBody(harness.Burst(t, 2*pages, func(i int) *http.Request {
		return e.get(fmt.Sprintf("/page/%d", i%pages))
	}), []byte("page"))
	// The first comes at once, the last after (pages − 1) / rate seconds.
	if took := time.Since(start); took < (pages-1)*time.Second/rate-time.Second/rate {
		t.Errorf("%d fetches in %v, want %d a second at most", pages, took, rate)
	}
	e.wantCount("/page/", pages)
}

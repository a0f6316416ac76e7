package e2e_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/weirproxy/weir/e2e/harness"
)

// policies are edgeOptions with a route and policy per name, reached under /NAME/; each spec continues with the lines.
func policies(specs map[string]string) edgeOptions {
	o := edgeOptions{Policies: map[string]string{}}
	for name, lines := range specs {
		o.Envoy.Routes = append(o.Envoy.Routes, harness.Route{Name: name, Prefix: "/" + name + "/"})
		o.Policies[name+".yaml"] = strings.NewReplacer("catalog", name, "default", name).Replace(shopPolicy) + spec(lines)
	}
	return o
}

// exact keeps lifetimes as they were said.
const exact = "jitterPercent: 0\nxfetch: {mode: \"Off\"}\nstale: {whileRevalidate: 0s, ifError: 0s, softTimeout: 0s}\n"

// TestCacheControlOddities: Cache-Control that is malformed, doubled, overridden; the lifetime is told by the ttl of
// the hit. Policy "house" gives 20 s where the origin says nothing of a lifetime.
func TestCacheControlOddities(t *testing.T) {
	t.Parallel()
	e := startEdge(t, policies(map[string]string{
		"plain": exact,
		"house": exact + "ttl: {default: 20s}",
	}))
	defer e.settles()
	const none = -1 // not stored, or stale at once
	for i, c := range []struct {
		cacheControl string // lines separated by "\n"
		cdn          string
		plain, house int // the lifetimes
	}{
		{"public; max-age=30", "", none, 20},
		{"max-age=0, s-maxage=15", "", 15, 15},
		{"s-maxage=15, max-age=0", "", 15, 15},
		{`max-age="60"`, "", 60, 60},
		{"MAX-AGE=60", "", 60, 60},
		{"max-age=60, max-age=600", "", 60, 60},
		{"max-age=-5", "", none, none},
		{"max-age=99999999999999", "", 86400, 86400}, // ttl.max
		{"max-age=99999999999999999999999", "", 86400, 86400},
		{"public\nmax-age=60", "", 60, 60},
		{"max-age=60\nno-store", "", none, none},
		{"no-store, max-age=60", "", none, none},
		{"no-store; max-age=60", "", none, none},
		{"private; max-age=60", "", none, none},
		{"max-age=60", "max-age=5", 5, 5},
		{"no-store", "max-age=5", 5, 5},
		{"max-age=60", "&&", 60, 60},
		{"no-store", "&&", none, none},
		{"max-age=60", "max-age=5, &&", 60, 60},
		{"", "", none, 20},
	} {
		for route, want := range map[string]int{"plain": c.plain, "house": c.house} {
			path := fmt.Sprintf("/%s/%d", route, i)
			header := make(http.Header)
			for line := range strings.Lines(c.cacheControl) {
				header.Add("Cache-Control", strings.TrimSpace(line))
			}
			if c.cdn != "" {
				header.Set("CDN-Cache-Control", c.cdn)
			}
			e.serve(path, harness.Always(harness.Reply{Body: []byte("page"), Header: header}))
			e.do(e.get(path))
			got := e.lifetime(e.do(e.get(path)))
			if got != want && got != want-1 { // the second may have turned meanwhile
				t.Errorf("%s: Cache-Control %q, CDN-Cache-Control %q: lives %d s, want %d",
					route, c.cacheControl, c.cdn, got, want)
			}
			asked := 1
			if want < 0 {
				asked = 2
			}
			e.wantCount(path, asked)
		}
	}
}

// lifetime is age plus ttl of a hit, -1 of anything else.
func (e *edge) lifetime(r harness.Response) int {
	e.t.Helper()
	_, ttl, ok := strings.Cut(r.Header.Get("Cache-Status"), "weir; hit; ttl=")
	if !ok {
		return -1
	}
	left, err := strconv.Atoi(strings.TrimSpace(ttl))
	age, errAge := strconv.Atoi(r.Header.Get("Age"))
	if err != nil || errAge != nil {
		e.t.Fatalf("ttl %q, Age %q", ttl, r.Header.Get("Age"))
	}
	return left + age
}

// version answers with a page that lives long: its body is the version, and its ETag if tag is set.
func version(v string, tag bool, gate <-chan struct{}) harness.Script {
	reply := harness.Reply{Gate: gate, Body: []byte(v), Header: harness.Fields("Cache-Control", "max-age=1000")}
	if tag {
		reply.ETag = strconv.Quote(v)
	}
	return harness.Always(reply)
}

// TestRequestDirectivesHonoured: a reload gets the new page, and renews it for others; many at once cost one fetch.
func TestRequestDirectivesHonoured(t *testing.T) {
	t.Parallel()
	const clients = 200
	for _, tag := range []bool{false, true} {
		t.Run(fmt.Sprintf("ETag %v", tag), func(t *testing.T) {
			t.Parallel()
			e := startEdge(t, edgeOptions{Spec: "requestDirectives: Honor\n" + exact})
			defer e.settles()
			e.serve("/page", version("v1", tag, nil))
			e.do(e.get("/page"))
			e.serve("/page", version("v2", tag, nil))
			if hit := e.do(e.get("/page")); string(hit.Body) != "v1" {
				t.Errorf("before the reload: %q", hit.Body)
			}
			for _, fields := range [][]string{{"Cache-Control", "no-cache"}, nil} {
				if got := e.do(e.get("/page", fields...)); string(got.Body) != "v2" {
					t.Errorf("%q: %q, want v2", fields, got.Body)
				}
			}
			e.wantCount("/page", 2)

			gate := make(chan struct{})
			e.serve("/page", version("v2", tag, gate))
			answers := e.burst(clients, e.get("/page", "Cache-Control", "no-cache"))
			e.answering("/page", 1)
			e.waiting(clients - 1)
			close(gate)
			e.wantBody(answers(), []byte("v2"))
			e.wantCount("/page", 3)
			if last := e.origin.Requests("/page")[2]; tag && last.Header.Get("If-None-Match") != `"v2"` {
				t.Errorf("the reload was not a validation: %v", last.Header)
			}
		})
	}
}

// TestRequestDirectivesIgnored: no client drives the origin by what it says.
func TestRequestDirectivesIgnored(t *testing.T) {
	t.Parallel()
	const clients = 200
	e := startEdge(t, edgeOptions{})
	defer e.settles()
	e.serve("/page", version("v1", false, nil))
	e.do(e.get("/page"))
	e.serve("/page", version("v2", false, nil))
	e.wantBody(e.burst(clients, e.get("/page", "Cache-Control", "no-cache", "Pragma", "no-cache"))(), []byte("v1"))
	e.wantCount("/page", 1)
	e.wantOutcomes(map[string]int{"miss": 1, "hit": clients})
}

// TestRequestDirectivesOneByOne: each directive of RFC 9111 §5.2.1, honoured and ignored, on a stored answer of age
// 100 that is fresh for 900 s more, and on a cold key.
func TestRequestDirectivesOneByOne(t *testing.T) {
	t.Parallel()
	e := startEdge(t, policies(map[string]string{
		"honour": "requestDirectives: Honor\n" + exact,
		"ignore": exact,
	}))
	defer e.settles()
	for i, c := range []struct {
		stored, field, value string
		asked                int // requests to the origin, after the one that stored
		honoured             int // status where directives count; 0 is 200
	}{
		{"max-age=1000", "Cache-Control", "no-cache", 1, 0},
		{"max-age=1000", "Cache-Control", "No-Cache", 1, 0},
		{"max-age=1000", "Pragma", "no-cache", 1, 0},
		{"max-age=1000", "Cache-Control", "max-age=0", 1, 0},
		{"max-age=1000", "Cache-Control", "max-age=99", 1, 0},
		{"max-age=1000", "Cache-Control", "max-age=800", 0, 0},
		{"max-age=1000", "Cache-Control", "min-fresh=950", 1, 0},
		{"max-age=1000", "Cache-Control", "min-fresh=100", 0, 0},
		{"max-age=1000", "Cache-Control", "only-if-cached", 0, 0},
		{"max-age=1000", "Cache-Control", "nonsense=1, public", 0, 0},
		{"max-age=1000", "Cache-Control", "no-store", 0, 0},
		// Past its lifetime by 50 s.
		{"max-age=50", "Cache-Control", "max-stale=10", 1, 0},
		{"max-age=50", "Cache-Control", "max-stale=500", 0, 0},
		{"max-age=50", "Cache-Control", "max-stale", 0, 0},
		{"max-age=50, must-revalidate", "Cache-Control", "max-stale", 1, 0},
		{"s-maxage=50", "Cache-Control", "max-stale", 1, 0},
		{"max-age=50", "Cache-Control", "only-if-cached", 0, 504},
		{"max-age=50", "Cache-Control", "only-if-cached, max-stale", 0, 0},
		{"", "Cache-Control", "only-if-cached", 0, 504},
	} {
		for _, route := range []string{"honour", "ignore"} {
			path := fmt.Sprintf("/%s/%d", route, i)
			e.serve(path, harness.Always(harness.Reply{
				ETag: `"v1"`, Body: []byte("page"), Header: harness.Fields("Cache-Control", c.stored, "Age", "100"),
			}))
			before := 0
			if c.stored != "" {
				e.do(e.get(path))
				before = 1
			}
			resp := e.do(e.get(path, c.field, c.value))
			asked, status := c.asked, max(c.honoured, http.StatusOK)
			if route == "ignore" {
				status, asked = http.StatusOK, 0
				if c.stored != "max-age=1000" {
					asked = 1 // it was stale, or cold
				}
			}
			if resp.Status != status {
				t.Errorf("%s, %s: %s on %q: status %d, want %d", route, c.field, c.value, c.stored, resp.Status, status)
			}
			// A refresh behind the answer may follow one that max-stale allowed.
			stale := strings.Contains(c.value, "max-stale") && asked == 0
			if n := e.origin.Count(path) - before; n != asked && !stale {
				t.Errorf("%s, %s: %s on %q: the origin was asked %d times, want %d", route, c.field, c.value, c.stored, n, asked)
			}
			if stale && string(resp.Body) != "page" {
				t.Errorf("%s: %q", c.value, resp.Body)
			}
		}
	}
}

// TestRequestNoStore: what a request with no-store brought is not kept, if the policy honours it.
func TestRequestNoStore(t *testing.T) {
	t.Parallel()
	e := startEdge(t, policies(map[string]string{"honour": "requestDirectives: Honor", "ignore": ""}))
	defer e.settles()
	for route, asked := range map[string]int{"honour": 2, "ignore": 1} {
		path := "/" + route + "/page"
		e.serve(path, harness.Always(harness.Reply{
			Body: []byte("page"), Header: harness.Fields("Cache-Control", "max-age=60"),
		}))
		e.do(e.get(path, "Cache-Control", "no-store"))
		e.do(e.get(path))
		e.wantCount(path, asked)
	}
}

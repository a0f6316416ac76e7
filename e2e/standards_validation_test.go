package e2e_test

import (
	"net/http"
	"testing"

	"github.com/weirproxy/weir/e2e/harness"
)

// stale and fresh begin every answer of these tests: past its lifetime at once, and not.
var (
	stale = []string{"Cache-Control", "max-age=90", "Age", "100"}
	fresh = []string{"Cache-Control", "max-age=90"}
)

func page(body, tag string, lifetime []string, fields ...string) harness.Reply {
	return harness.Reply{
		Body: []byte(body), Header: harness.Fields(append(append([]string{"ETag", tag}, lifetime...), fields...)...),
	}
}

func notModified(tag string, fields ...string) harness.Reply {
	reply := page("", tag, fresh, fields...)
	reply.Status = http.StatusNotModified
	return reply
}

// inOrder answers the n-th request by the n-th answer.
func inOrder(answers ...harness.Reply) harness.Script {
	return func(n int, _ *http.Request) harness.Reply {
		if n > len(answers) {
			return harness.Reply{Status: http.StatusTeapot}
		}
		return answers[n-1]
	}
}

// noWindows leaves validation as the one way to use a stale answer.
const noWindows = "stale: {whileRevalidate: 0s, ifError: 0s, softTimeout: 0s}"

// TestValidationOfOneVariant: a 304 freshens what answers the request, and takes no field of it to another variant,
// though their tag is the same (RFC 9111 §4.3.4: those that could have been chosen for that request).
func TestValidationOfOneVariant(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, noRefill bool) {
		e := startEdge(t, edgeOptions{NoRefill: noRefill, Spec: noWindows})
		defer e.settles()
		const allowed = "Access-Control-Allow-Origin"
		e.serve("/font", func(n int, r *http.Request) harness.Reply {
			who := r.Header.Get("Origin")
			if n <= 2 {
				return page("font", `"v1"`, stale, "Vary", "Origin", allowed, who)
			}
			return notModified(`"v1"`, "Vary", "Origin", allowed, who)
		})
		// Two variants stored, one validated, and again, the other.
		const a, b = "https://a.test", "https://b.test"
		for i, who := range []string{a, b, a, a, b} {
			resp := e.do(e.get("/font", "Origin", who))
			if got := resp.Header.Get(allowed); got != who || string(resp.Body) != "font" {
				t.Errorf("%d: %d %q, %s: %q, want %q", i, resp.Status, resp.Body, allowed, got, who)
			}
		}
		e.wantCount("/font", 4)
	})
}

// TestValidationOfAllThatMatch: every stored answer that could have been chosen and has the strong tag of the 304 is
// freshened; of those with a weak tag only the one that was validated.
func TestValidationOfAllThatMatch(t *testing.T) {
	t.Parallel()
	for tag, asked := range map[string]int{`"v1"`: 3, `W/"v1"`: 4} {
		t.Run(tag, func(t *testing.T) {
			t.Parallel()
			e := startEdge(t, edgeOptions{Spec: noWindows})
			defer e.settles()
			e.serve("/page", inOrder(
				page("page", tag, stale), // without Vary: it matches every request
				page("page", tag, stale, "Vary", "Foo"),
				notModified(tag), // of both
				notModified(tag),
			))
			for _, foo := range []string{"1", "1", "1", "2"} {
				if resp := e.do(e.get("/page", "Foo", foo)); string(resp.Body) != "page" {
					t.Errorf("Foo %s: %d %q", foo, resp.Status, resp.Body)
				}
			}
			e.wantCount("/page", asked)
		})
	}
}

// TestValidationBringsVary: a Vary that comes with the 304 counts from then on (RFC 9111 §3.2, §4.1).
func TestValidationBringsVary(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, noRefill bool) {
		e := startEdge(t, edgeOptions{NoRefill: noRefill, Spec: noWindows})
		defer e.settles()
		e.serve("/page", inOrder(
			page("one", `"v1"`, stale),
			notModified(`"v1"`, "Vary", "Foo"),
			page("two", `"v2"`, fresh, "Vary", "Foo"),
		))
		for i, foo := range []string{"1", "1", "1", "2", "1"} {
			want := map[string]string{"1": "one", "2": "two"}[foo]
			if resp := e.do(e.get("/page", "Foo", foo)); string(resp.Body) != want {
				t.Errorf("%d: Foo %s: %d %q, want %q", i, foo, resp.Status, resp.Body, want)
			}
		}
		e.wantCount("/page", 3)
	})
}

// TestHeadFreshens: a HEAD that the origin answered 200 with the stored validators renews what is stored; with others
// it makes it unusable (RFC 9111 §4.3.5).
func TestHeadFreshens(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{Spec: noWindows})
	defer e.settles()
	for path, c := range map[string]struct {
		tag   string // of the answer to HEAD
		body  string // that the GET afterwards gets
		asked int
	}{"/same": {`"v1"`, "old", 2}, "/other": {`"v2"`, "new", 3}} {
		e.serve(path, func(n int, _ *http.Request) harness.Reply {
			return []harness.Reply{
				page("old", `"v1"`, stale, "X-Rev", "1"),
				page("old", c.tag, fresh, "X-Rev", "2"),
				page("new", `"v2"`, fresh, "X-Rev", "2"),
			}[n-1]
		})
		e.do(e.get(path))
		head := e.get(path)
		head.Method = http.MethodHead
		e.do(head)
		resp := e.do(e.get(path))
		if string(resp.Body) != c.body || resp.Header.Get("X-Rev") != "2" {
			t.Errorf("%s: %q, X-Rev %q", path, resp.Body, resp.Header.Get("X-Rev"))
		}
		e.wantCount(path, c.asked)
	}
}

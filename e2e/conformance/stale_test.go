package conformance_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/weirproxy/weir/e2e/harness"
)

// aged is an answer of 10 s past its lifetime, and a good one to follow.
func aged(cacheControl string, then ...harness.Reply) []harness.Reply {
	if len(then) == 0 {
		then = []harness.Reply{fields("Cache-Control", "max-age=90")}
	}
	return append([]harness.Reply{fields("Cache-Control", cacheControl, "Age", "100")}, then...)
}

// servedStale: the stored answer at once, one refresh behind it, then the new answer.
func servedStale() []request {
	return []request{
		{want: want{answer: 1, asked: 1}},
		{want: want{answer: 1, age: 100, asked: 2, refreshed: true, cacheStatus: []string{"hit", "ttl<0"}}},
		{want: want{answer: 2, asked: 2, cacheStatus: []string{"hit", "ttl>=0"}}},
	}
}

// fetchedFirst: the client waits for the new answer.
func fetchedFirst() []request {
	return []request{
		{want: want{answer: 1, asked: 1}},
		{want: want{answer: 2, asked: 2, cacheStatus: []string{"fwd=stale"}}},
	}
}

// forgotten: as fetchedFirst, of a copy that may serve nobody again, neither by itself nor after a validation. It need
// not be kept, and is then told as never seen (RFC 9211 §2.2).
func forgotten() []request {
	return []request{
		{want: want{answer: 1, asked: 1}},
		{want: want{answer: 2, asked: 2, cacheStatus: []string{"fwd=stale|uri-miss"}}},
	}
}

// TestStaleWhileRevalidate: RFC 5861 §3, and what forbids it (RFC 9111 §4.2.4).
func TestStaleWhileRevalidate(t *testing.T) {
	t.Parallel()
	runTable(t, []row{
		{name: "within the window", answers: aged("max-age=90, stale-while-revalidate=60"), requests: servedStale()},
		{name: "after the window", answers: aged("max-age=90, stale-while-revalidate=5"), requests: fetchedFirst()},
		{name: "window 0", answers: aged("max-age=90, stale-while-revalidate=0"), requests: fetchedFirst()},
		{name: "window of no number", answers: aged("max-age=90, stale-while-revalidate=x"), requests: fetchedFirst()},
		{name: "no window", answers: aged("max-age=90"), requests: fetchedFirst()},
		{name: "must-revalidate", answers: aged("max-age=90, stale-while-revalidate=60, must-revalidate"),
			requests: forgotten()},
		{name: "proxy-revalidate", answers: aged("max-age=90, stale-while-revalidate=60, proxy-revalidate"),
			requests: forgotten()},
		// §5.2.2.10: s-maxage carries proxy-revalidate; said beside a window, the window is the origin's consent.
		{name: "s-maxage", answers: aged("s-maxage=90, stale-while-revalidate=60"), requests: servedStale()},

		{name: "policy's window", policy: "windows", answers: aged("max-age=90"), requests: servedStale()},
		{name: "policy's window, must-revalidate", policy: "windows", answers: aged("max-age=90, must-revalidate"),
			requests: forgotten()},
		{name: "policy's window, proxy-revalidate", policy: "windows", answers: aged("max-age=90, proxy-revalidate"),
			requests: forgotten()},
		{name: "policy's window, s-maxage", policy: "windows", answers: aged("s-maxage=90"), requests: forgotten()},
		{name: "origin's window is shorter", policy: "windows",
			answers: aged("max-age=90, stale-while-revalidate=5"), requests: fetchedFirst()},
	})
}

// TestStaleWhileRevalidateNoCache: §5.2.2.4, no-cache is never served without validation, whatever the window.
func TestStaleWhileRevalidateNoCache(t *testing.T) {
	t.Parallel()
	runTable(t, []row{
		{name: "origin's window", answers: []harness.Reply{
			fields("Cache-Control", "max-age=90, stale-while-revalidate=60, no-cache"),
		}, requests: notReused()},
		{name: "policy's window", policy: "windows", answers: []harness.Reply{
			fields("Cache-Control", "max-age=90, no-cache"),
		}, requests: notReused()},
		{name: "validated", policy: "windows", answers: []harness.Reply{
			withETag(fields("Cache-Control", "max-age=90, stale-while-revalidate=60, no-cache")),
		}, requests: validated()},
	})
}

// TestRefresh: what the refresh behind a stale answer may bring.
func TestRefresh(t *testing.T) {
	t.Parallel()
	const window = "max-age=90, stale-while-revalidate=600"
	stale := request{want: want{answer: 1, age: 100, asked: 2, refreshed: true}}
	runTable(t, []row{
		// RFC 9111 §4.3.4: a 304 restarts the lifetime.
		{name: "304", answers: []harness.Reply{
			{ETag: `"v1"`, Header: harness.Fields("Cache-Control", window, "Age", "100", "Version", "1")},
			{ETag: `"v1"`, Header: harness.Fields("Cache-Control", window, "Version", "2")},
		}, requests: []request{
			{want: want{answer: 1, fields: []string{"Version", "1"}}}, stale,
			{want: want{answer: 1, asked: 2, fields: []string{"Version", "2"}, cacheStatus: []string{"hit", "ttl>=0"}}},
		}},
		{name: "404 replaces", answers: aged(window, status(http.StatusNotFound, "Cache-Control", "max-age=60")),
			requests: []request{{want: want{answer: 1}}, stale, {want: want{status: 404, answer: 2, asked: 2}}}},
		{name: "410 replaces", answers: aged(window, status(http.StatusGone, "Cache-Control", "max-age=60")),
			requests: []request{{want: want{answer: 1}}, stale, {want: want{status: 410, answer: 2, asked: 2}}}},
		// Design §6: a 5xx never replaces what may still be served stale, even one that may be stored.
		{name: "503 does not", answers: aged(window, status(503, "Cache-Control", "max-age=60")), requests: []request{
			{want: want{answer: 1}}, stale, {want: want{answer: 1, age: 100}},
		}},
		{name: "closed connection does not", answers: aged(window, closed()), requests: []request{
			{want: want{answer: 1}}, stale, {want: want{answer: 1, age: 100}},
		}},
	})
}

// errorsOfOrigins are the ways an origin fails, by RFC 5861 §4 and RFC 9111 §4.2.4.
func errorsOfOrigins() map[string]harness.Reply {
	return map[string]harness.Reply{
		"closed": closed(), "500": status(500), "502": status(502), "503": status(503), "504": status(504),
	}
}

// TestStaleOnError: stale on a closed connection and on 5xx, and each directive that forbids it.
func TestStaleOnError(t *testing.T) {
	t.Parallel()
	stale := []request{{want: want{answer: 1}}, {want: want{answer: 1, age: 100, asked: 2}}}
	failed := []request{{want: want{answer: 1}}, {want: want{status: anyError, notAnswer: 1, asked: 2}}}
	cases := []struct {
		name, policy, cacheControl string
		requests                   []request
	}{
		{"nothing said", "", "max-age=90", stale},
		{"must-revalidate", "", "max-age=90, must-revalidate", failed},
		{"proxy-revalidate", "", "max-age=90, proxy-revalidate", failed},
		{"no-cache", "", "max-age=90, no-cache", failed},
		{"s-maxage", "", "s-maxage=90", failed},
		{"stale-if-error", "", "max-age=90, stale-if-error=600", stale},
		{"stale-if-error is over", "", "max-age=90, stale-if-error=5", failed},
		{"stale-if-error 0", "", "max-age=90, stale-if-error=0", failed},
		{"stale-if-error beside s-maxage", "", "s-maxage=90, stale-if-error=600", stale},
		{"stale-if-error, must-revalidate", "", "max-age=90, stale-if-error=600, must-revalidate", failed},
		{"stale-if-error, proxy-revalidate", "", "max-age=90, stale-if-error=600, proxy-revalidate", failed},
		{"strict", "strict", "max-age=90", failed},
		{"strict, stale-if-error", "strict", "max-age=90, stale-if-error=600", stale},
		{"strict, must-revalidate", "strict", "max-age=90, stale-if-error=600, must-revalidate", failed},
	}
	var rows []row
	for failure, answer := range errorsOfOrigins() {
		for _, c := range cases {
			rows = append(rows, row{
				name: failure + ", " + c.name, policy: c.policy,
				answers: aged(c.cacheControl, answer), requests: c.requests,
			})
		}
	}
	runTable(t, rows)
}

// TestStaleThroughAnOutage: what ends the service of a stale copy is a good answer or a 404, not an error.
func TestStaleThroughAnOutage(t *testing.T) {
	t.Parallel()
	runTable(t, []row{
		{name: "404 is not an error",
			answers: aged("max-age=90", status(404, "Cache-Control", "max-age=60"), status(503)),
			requests: []request{
				{want: want{answer: 1}},
				{want: want{status: 404, answer: 2, asked: 2}},
				{want: want{status: 404, answer: 2, asked: 2}},
			}},
		// RFC 9111 §4.3.3: an error may be passed on; nothing makes it a reason for stale.
		{name: "400 is not an error", answers: aged("max-age=90", status(400)), requests: []request{
			{want: want{answer: 1}}, {want: want{status: 400, answer: 2, asked: 2}},
		}},
		// A conditional client is answered from the stale copy as from a fresh one.
		{name: "conditional request", answers: []harness.Reply{
			{ETag: `"v1"`, Header: harness.Fields("Cache-Control", "max-age=90", "Age", "100")}, status(503),
		}, requests: []request{
			{want: want{answer: 1}},
			{fields: []string{"If-None-Match", `"v1"`}, want: want{status: 304, age: 100, asked: 2}},
		}},
		{name: "HEAD", answers: aged("max-age=90", status(503)), requests: []request{
			{want: want{answer: 1}},
			{method: http.MethodHead, want: want{age: 100, asked: 2}},
		}},
	})
}

// TestRecovery: errors come and go, and weir need not ask at each request; every client gets the stale copy until a
// good answer has come, and then that.
func TestRecovery(t *testing.T) {
	t.Parallel()
	const path = "/rfc/recovery"
	in := install(t)
	in.origin.Handle(path, script(
		aged("max-age=90", status(503), closed(), status(500, "Cache-Control", "max-age=60"), aged("max-age=900")[0])))
	get := func() harness.Response { return harness.Do(t, harness.Get(in.envoy.URL(path))) }
	checkResponse(t, "first", get(), want{answer: 1})
	var last harness.Response
	harness.Eventually(t, 30*time.Second, "a good answer", func() bool {
		last = get()
		if string(last.Body) == string(answerBody(5)) {
			return true
		}
		checkResponse(t, "during the outage", last, want{answer: 1, age: 100})
		return t.Failed()
	})
	checkResponse(t, "then", get(), want{answer: 5, age: 100, cacheStatus: []string{"hit", "ttl>=700"}})
	if n := in.origin.Count(path); n != 5 {
		t.Errorf("the origin was asked %d times, want 5", n)
	}
}

package conformance_test

import (
	"strings"
	"testing"

	"github.com/weirproxy/weir/e2e/harness"
)

// reused is two requests; the second gets the first one's answer without the origin being asked.
func reused() []request {
	return []request{
		{want: want{answer: 1, asked: 1}},
		{want: want{answer: 1, asked: 1, cacheStatus: []string{"hit"}}},
	}
}

// notReused is two requests, each of which gets an answer of its own.
func notReused() []request {
	return []request{
		{want: want{answer: 1, asked: 1}},
		{want: want{answer: 2, asked: 2, cacheStatus: []string{"!hit"}}},
	}
}

// validated is two requests; the second gets the stored answer after the origin said 304.
func validated() []request {
	return []request{{want: want{answer: 1, asked: 1}}, {want: want{answer: 1, asked: 2}}}
}

// targeted is an answer with CDN-Cache-Control, one line of it per line of cdn, and Cache-Control if it is not empty.
func targeted(cdn, cacheControl string, more ...string) harness.Reply {
	a := fields(more...)
	for line := range strings.SplitSeq(cdn, "\n") {
		a.Header.Add("CDN-Cache-Control", line)
	}
	if cacheControl != "" {
		a.Header.Set("Cache-Control", cacheControl)
	}
	return a
}

// TestCDNCacheControl: RFC 9213. A targeted field that is valid and not empty decides alone; one that is not is as if
// it were not there (§2.2).
func TestCDNCacheControl(t *testing.T) {
	t.Parallel()
	var rows []row
	for _, c := range []struct {
		name, cdn, cacheControl string
		requests                []request
	}{
		// §2.2: Cache-Control is ignored.
		{"fresh alone", "max-age=60", "", reused()},
		{"fresh against no-store", "max-age=60", "no-store", reused()},
		{"fresh against private", "max-age=60", "private", reused()},
		{"fresh against no-cache", "max-age=60", "no-cache", reused()},
		{"fresh against max-age=0", "max-age=60", "max-age=0", reused()},
		{"no lifetime against max-age", "foo", "max-age=60", notReused()},
		{"stale against max-age", "max-age=0", "max-age=60", notReused()},
		{"stale against s-maxage", "max-age=0", "s-maxage=60", notReused()},
		{"no-store against max-age", "no-store", "max-age=60", notReused()},
		{"no-store beside max-age", "no-store, max-age=60", "max-age=60", notReused()},
		{"private against max-age", "private", "max-age=60", notReused()},
		{"private beside max-age", "private, max-age=60", "", notReused()},
		{"no-cache against max-age", "no-cache", "max-age=60", notReused()},
		{"s-maxage beats max-age", "max-age=0, s-maxage=60", "", reused()},

		// §2.1: a dictionary of structured fields.
		{"unknown directives", "foo=?0, bar=(1 2), max-age=60", "no-store", reused()},
		{"parameters are ignored", "max-age=60;a=b, foo;no-store", "no-store", reused()},
		{"space around commas", "foo ,\tmax-age=60", "no-store", reused()},
		{"15 digits", "max-age=999999999999999", "no-store", reused()},
		{"two lines", "foo\nmax-age=60", "no-store", reused()},
		{"no-store on a second line", "max-age=60\nno-store", "max-age=60", notReused()},
		// RFC 9651 §4.2.2: the last member of a name wins.
		{"doubled, the last is fresh", "max-age=0, max-age=60", "no-store", reused()},
		{"doubled, the last is stale", "max-age=60, max-age=0", "max-age=60", notReused()},
		{"negative", "max-age=-60", "max-age=60", notReused()},

		// A field that does not parse is ignored: Cache-Control decides, both ways.
		{"bad member, no-store", "max-age=60, &&&", "no-store", notReused()},
		{"bad member, max-age", "no-store, &&&", "max-age=60", reused()},
		{"upper case, no-store", "Max-Age=60", "no-store", notReused()},
		{"upper case, max-age", "No-Store", "max-age=60", reused()},
		{"space before =", "max-age =60", "no-store", notReused()},
		{"space after =", "max-age= 60", "no-store", notReused()},
		{"16 digits", "max-age=1000000000000000", "no-store", notReused()},
		{"trailing comma", "max-age=60,", "no-store", notReused()},
		{"open string", `max-age=60, a="b`, "no-store", notReused()},
		{"bad second line", "max-age=60\n&&&", "no-store", notReused()},
		{"empty, no-store", "", "no-store", notReused()},
		{"empty, max-age", "", "max-age=60", reused()},
		// A directive of the wrong type gives no lifetime.
		{"string", `max-age="60"`, "no-store", notReused()},
		{"decimal", "max-age=60.5", "no-store", notReused()},
		{"boolean", "max-age", "no-store", notReused()},
		{"token", "max-age=a60", "no-store", notReused()},
	} {
		rows = append(rows, row{
			name: c.name, answers: []harness.Reply{targeted(c.cdn, c.cacheControl)}, requests: c.requests,
		})
	}
	runTable(t, rows)
}

// TestCDNCacheControlElsewhere: what a targeted field does beside other fields and rules.
func TestCDNCacheControlElsewhere(t *testing.T) {
	t.Parallel()
	const past = "Thu, 01 Jan 1970 00:00:00 GMT"
	authorized := []string{"Authorization", "Basic eDp5"}
	forwarded := []string{"CDN-Cache-Control", "max-age=60", "Cache-Control", "no-store"}
	one := func(a harness.Reply) []harness.Reply { return []harness.Reply{a} }
	runTable(t, []row{
		{name: "past Expires", answers: one(targeted("max-age=60", "", "Expires", past)), requests: reused()},
		{name: "no-cache is validated", answers: one(withETag(targeted("no-cache", "max-age=60"))),
			requests: validated()},
		{name: "no-cache beside max-age is validated", answers: one(withETag(targeted("no-cache, max-age=60", ""))),
			requests: validated()},
		// RFC 9111 §4.2.3 applies to a targeted lifetime as well.
		{name: "Age beyond the lifetime", answers: one(targeted("max-age=60", "max-age=600", "Age", "100")),
			requests: notReused()},
		{name: "Age within the lifetime", answers: one(targeted("max-age=600", "max-age=1", "Age", "100")),
			requests: []request{
				{want: want{answer: 1}},
				{want: want{answer: 1, asked: 1, age: 100, cacheStatus: []string{"hit", "ttl>=480", "ttl<501"}}},
			}},
		{name: "forwarded and kept", answers: one(targeted("max-age=60", "no-store")), requests: []request{
			{want: want{fields: forwarded}}, {want: want{answer: 1, fields: forwarded}},
		}},
		// RFC 9111 §3.5, by the targeted field alone.
		{name: "Authorization, public elsewhere", answers: one(targeted("max-age=60", "public, max-age=60")),
			requests: []request{{fields: authorized, want: want{answer: 1}}, {want: want{answer: 2, asked: 2}}}},
		{name: "Authorization, public here", answers: one(targeted("public, max-age=60", "no-store")),
			requests: []request{{fields: authorized, want: want{answer: 1}}, {want: want{answer: 1, asked: 1}}}},
		{name: "Authorization, must-revalidate here", answers: one(targeted("must-revalidate, max-age=60", "no-store")),
			requests: []request{{fields: authorized, want: want{answer: 1}}, {want: want{answer: 1, asked: 1}}}},
		// Other fields of the kind mean nothing here.
		{name: "Surrogate-Control", answers: one(fields("Surrogate-Control", "max-age=60", "Cache-Control", "no-store")),
			requests: notReused()},
		{name: "another target", answers: one(fields("Foo-Cache-Control", "max-age=60", "Cache-Control", "no-store")),
			requests: notReused()},
	})
}

// TestCDNCacheControlStale: the stale extensions and what forbids them count where they are said.
func TestCDNCacheControlStale(t *testing.T) {
	t.Parallel()
	const window = "max-age=90, stale-while-revalidate=60"
	fresh := targeted("max-age=90", "")
	runTable(t, []row{
		{name: "window here", answers: []harness.Reply{targeted(window, "", "Age", "100"), fresh}, requests: servedStale()},
		{name: "window elsewhere", answers: []harness.Reply{targeted("max-age=90", window, "Age", "100"), fresh},
			requests: fetchedFirst()},
		{name: "must-revalidate here", requests: []request{
			{want: want{answer: 1}}, {want: want{status: anyError, notAnswer: 1, asked: 2}},
		}, answers: []harness.Reply{targeted("max-age=90, must-revalidate", "", "Age", "100"), status(503)}},
		{name: "must-revalidate elsewhere", requests: []request{
			{want: want{answer: 1}}, {want: want{answer: 1, age: 100, asked: 2}},
		}, answers: []harness.Reply{targeted("max-age=90", "must-revalidate", "Age", "100"), status(503)}},
	})
}

func withETag(a harness.Reply) harness.Reply {
	a.ETag = `"v1"`
	return a
}

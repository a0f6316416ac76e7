package httpcache

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Faults that users of other caches met, as far as these rules prevent them. The
// numbers are those of the collection they come from; stable, with gaps.

// 4. Vary is known only after the answer: who cannot decompress is not given
// another client's compressed body.
func TestCase4VariantOfTheLeader(t *testing.T) {
	t.Parallel()
	v := ParseVary(fields("Vary: Accept-Encoding"))
	leader := v.Select(fields("Accept-Encoding: gzip"))
	wantEqual(t, "gzip follows", SameVariant(v.Names, leader, fields("Accept-Encoding: gzip")), true)
	wantEqual(t, "identity does not", SameVariant(v.Names, leader, fields("Accept-Encoding: identity")), false)
	wantEqual(t, "nobody follows *", ParseVary(fields("Vary: *")).Any, true)
}

// 5. An answer that is stale on arrival may be shared with those who wait for it,
// unless it must be validated for each.
func TestCase5StaleOnArrival(t *testing.T) {
	t.Parallel()
	for cc, want := range map[string]bool{"max-age=0": true, "no-cache": false} {
		v := MayStore(get(), ok("Cache-Control: "+cc, `ETag: "a"`), &Rules{})
		wantEqual(t, cc+" is stored", v.OK, true)
		wantEqual(t, cc+" is shared", v.Shareable, want)
	}
}

// 6 and 7. The origin's own window counts, even beside s-maxage; a policy's never
// overrides what the origin forbids.
func TestCase7StaleAlthoughForbidden(t *testing.T) {
	t.Parallel()
	policy := &Rules{StaleWhileRevalidate: seconds(30), StaleIfError: seconds(300)}
	for cc, want := range map[string][2]int64{
		"max-age=2, stale-while-revalidate=10":   {10, 300},
		"s-maxage=10, stale-while-revalidate=60": {60, 0},
		"max-age=1":                              {30, 300},
		"max-age=1, must-revalidate":             {0, 0},
		"max-age=1, proxy-revalidate":            {0, 0},
		"s-maxage=1":                             {0, 0},
	} {
		swr, sie := StaleWindows(ParseDirectives(fields("Cache-Control: "+cc)), policy)
		if swr != seconds(want[0]) || sie != seconds(want[1]) {
			t.Errorf("%q: %v, %v, want %v s", cc, swr, sie, want)
		}
	}
}

// 8. Errors outlive the outage: what a policy gives to pages does not apply to an
// error that says nothing.
func TestCase8ErrorsGetNoDefault(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]bool{200: true, 404: true, 500: false, 502: false, 503: false, 504: false,
		403: false} {
		v := MayStore(get(), response(status), &Rules{})
		wantEqual(t, "policy lifetimes apply", v.PolicyMayExtend, want)
	}
}

// 11. All lines of a field count, and values are compared, not hashes.
func TestCase11SeveralLines(t *testing.T) {
	t.Parallel()
	v := ParseVary(fields("Vary: Accept-Encoding"))
	two := v.Select(fields("Accept-Encoding: gzip", "Accept-Encoding: br"))
	wantEqual(t, "gzip alone", SameVariant(v.Names, two, fields("Accept-Encoding: gzip")), false)
	wantEqual(t, "joined by Envoy", SameVariant(v.Names, two, fields("Accept-Encoding: gzip,br")), true)
}

// 12. A stored cookie: refused, or stripped.
func TestCase12StoredCookie(t *testing.T) {
	t.Parallel()
	resp := ok("Cache-Control: public, max-age=60", "Set-Cookie: sid=1", "Set-Cookie: b=2", "A: 1")
	wantEqual(t, "by default", MayStore(get(), resp, &Rules{}).Reason, ReasonSetCookie)
	strip := &Rules{StripSetCookie: true}
	v := MayStore(get(), resp, strip)
	wantEqual(t, "with Strip", v.Reason, ReasonStorable)
	want := fields("Cache-Control: public, max-age=60", "A: 1")
	if diff := cmp.Diff(want, StorableFields(resp, v.Directives, strip)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// 13. Authenticated answers in a shared store, whatever the policy gives.
func TestCase13Authorization(t *testing.T) {
	t.Parallel()
	req := get("Authorization: A")
	for cc, want := range map[string]Reason{
		"max-age=60": ReasonAuthorization, "public, max-age=60": ReasonStorable, "s-maxage=60": ReasonStorable,
		"max-age=60, must-revalidate": ReasonStorable,
	} {
		v := MayStore(req, ok("Cache-Control: "+cc), &Rules{})
		wantEqual(t, cc, v.Reason, want)
		wantEqual(t, cc+": the policy's default applies", v.PolicyMayExtend, false)
	}
	v := MayStore(req, ok("Cache-Control: max-age=60", "Vary: Authorization"), &Rules{})
	wantEqual(t, "Vary does not help", v.Reason, ReasonAuthorization)
}

// 15. HEAD and GET must not damage each other.
func TestCase15HEAD(t *testing.T) {
	t.Parallel()
	head := &Request{Method: "HEAD"}
	pass, _ := CheckRequest(head, &Rules{})
	wantEqual(t, "HEAD passes", pass, false)
	resp := ok("Cache-Control: max-age=60", `ETag: "a"`, "Content-Length: 1000")
	wantEqual(t, "HEAD fills", MayStore(head, resp, &Rules{}).OK, false)
	got := Freshen(resp.Header, fields("Content-Length: 0", "A: 1"))
	wantEqual(t, "the stored length", got.Get("content-length"), "1000")
}

// 16. Part of a file served as the whole.
func TestCase16Range(t *testing.T) {
	t.Parallel()
	part := response(206, "Cache-Control: max-age=60", "Content-Range: bytes 0-99/1000")
	wantEqual(t, "206", MayStore(get("Range: bytes=0-99"), part, &Rules{}).Reason, ReasonPartial)
	stored := fields(`ETag: "a"`, "Date: "+at(0))
	wantEqual(t, "a failed If-Range gets the whole", RangeApplies(fields(`If-Range: "b"`), stored), false)
	ranges, _ := ParseRange("bytes=0-99", 1000)
	wantEqual(t, "Content-Range", string(AppendContentRange(nil, ranges[0], 1000)), "bytes 0-99/1000")
	_, outcome := ParseRange("bytes=5000-", 1000)
	wantEqual(t, "out of range", outcome, RangeUnsatisfiable)
}

// 17. Our own validator leaks out as a 304, or the 304's length overwrites ours.
func TestCase17OurOwnValidator(t *testing.T) {
	t.Parallel()
	stored := fields("Cache-Control: max-age=1, must-revalidate", `ETag: "v1"`, "Content-Length: 7", "X-Rev: 1")
	from304 := fields("Content-Length: 0", "X-Rev: 2")
	plain, conditional := fields("Accept: x"), fields(`If-None-Match: "v1"`)
	wantEqual(t, "the 304 is for us", Validated(stored, Validators(stored), from304), true)
	fresh := Freshen(stored, from304)
	wantEqual(t, "length", fresh.Get("content-length"), "7")
	wantEqual(t, "X-Rev", fresh.Get("x-rev"), "2")
	wantEqual(t, "who asked plainly", EvaluatePreconditions(plain, fresh, 200), Full)
	wantEqual(t, "who has it", EvaluatePreconditions(conditional, fresh, 200), NotModified)
}

// 19. Cache-Control that is malformed, doubled or overridden.
func TestCase19MalformedDirectives(t *testing.T) {
	t.Parallel()
	const none = -1
	for _, tt := range []struct {
		lines []string
		want  int64 // seconds
	}{
		{[]string{"Cache-Control: public; max-age=30"}, none},
		{[]string{"Cache-Control: max-age=0, s-maxage=15"}, 15},
		{[]string{`Cache-Control: max-age="60"`}, 60},
		{[]string{"Cache-Control: MAX-AGE=60"}, 60},
		{[]string{"Cache-Control: max-age=60, max-age=600"}, 60},
		{[]string{"Cache-Control: max-age=-5"}, 0},
		{[]string{"Cache-Control: max-age=99999999999999"}, 1 << 31},
		{[]string{"Cache-Control: public", "Cache-Control: max-age=60"}, 60},
		{[]string{"Cache-Control: max-age=60", "CDN-Cache-Control: max-age=5"}, 5},
		{[]string{"Cache-Control: max-age=60", "CDN-Cache-Control: &&"}, 60},
	} {
		resp := ok(tt.lines...)
		got, _, stated := StatedLifetime(resp, ResponseDirectives(resp.Header), base)
		if !stated {
			got = none * time.Second
		}
		wantEqual(t, tt.lines[0], got, seconds(tt.want))
	}
	wantEqual(t, "no-store wins", MayStore(get(), ok("Cache-Control: no-store, max-age=60"), &Rules{}).Reason,
		ReasonNoStore)
	v := MayStore(get(), ok("Cache-Control: public; max-age=30"), &Rules{})
	wantEqual(t, "the policy's default applies to the semicolon form", v.OK && v.PolicyMayExtend && !v.Explicit, true)
}

// 20. The client says no-cache: honoured or ignored, never half.
func TestCase20ClientNoCache(t *testing.T) {
	t.Parallel()
	honour, ignore := &Rules{HonorRequestDirectives: true}, &Rules{}
	for _, cc := range []string{"no-cache", "max-age=0"} {
		req := get("Cache-Control: " + cc)
		forbidden, _ := ReuseForbidden(req, honour, seconds(1), seconds(1000))
		wantEqual(t, cc+" honoured", forbidden, true)
		forbidden, _ = ReuseForbidden(req, ignore, seconds(1), seconds(1000))
		wantEqual(t, cc+" ignored", forbidden, false)
	}
	wantEqual(t, "only-if-cached", OnlyIfCached(get("Cache-Control: only-if-cached"), honour), true)
	wantEqual(t, "no-store", MayStore(get("Cache-Control: no-store"), ok("Cache-Control: max-age=1"), honour).OK, false)
}

// 21. Writes that should, or should not, invalidate.
func TestCase21Writes(t *testing.T) {
	t.Parallel()
	write := func(method, path string, resp *Response) []Target {
		return InvalidatedBy(&Request{Method: method, Scheme: "https", Authority: "a.test", Path: path}, resp)
	}
	target := func(path string) Target { return Target{"https", "a.test", path} }
	created := response(201, "Location: /a", "Content-Location: https://other.test/b")
	for _, tt := range []struct {
		name string
		got  []Target
		want []Target
	}{
		{"POST 200", write("POST", "/a", response(200)), []Target{target("/a")}},
		{"POST 500", write("POST", "/b", response(500)), nil},
		{"PUT 201", write("PUT", "/c", created), []Target{target("/c"), target("/a")}},
		{"GET", write("GET", "/a", created), nil},
		{"HEAD", write("HEAD", "/a", created), nil},
	} {
		if diff := cmp.Diff(tt.want, tt.got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", tt.name, diff)
		}
	}
}

// 37. Cache-Status is a list, and does not grow with each hit.
func TestCase37CacheStatusIsAList(t *testing.T) {
	t.Parallel()
	const origin = "OriginCache; hit; ttl=5"
	for want, s := range map[string]CacheStatus{
		"weir; fwd=uri-miss; stored":            {Fwd: FwdURIMiss, Stored: true},
		"weir; hit; ttl=3":                      {Hit: true, TTL: 3, HasTTL: true},
		"weir; hit; ttl=-3":                     {Hit: true, TTL: -3, HasTTL: true},
		"weir; fwd=stale; fwd-status=304":       {Fwd: FwdStale, FwdStatus: 304},
		"weir; fwd=uri-miss; stored; collapsed": {Fwd: FwdURIMiss, Stored: true, Collapsed: true},
	} {
		wantEqual(t, "Cache-Status", string(AppendCacheStatus(nil, origin, s)), origin+", "+want)
	}
}

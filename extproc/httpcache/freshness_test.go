package httpcache

import (
	"testing"
	"time"
)

// RFC 9111 §4.2.1, §5.3; RFC 9213 §2.2.
func TestStatedLifetime(t *testing.T) {
	t.Parallel()
	const none = -1
	for _, tt := range []struct {
		name   string
		lines  []string
		want   int64 // seconds, or none
		source string
	}{
		{"nothing stated", []string{"Date: " + at(0)}, none, ""},
		{"no-store states no lifetime", []string{"Cache-Control: no-store"}, none, ""},
		{"max-age", []string{"Cache-Control: max-age=60"}, 60, SourceMaxAge},
		{"s-maxage beats max-age", []string{"Cache-Control: max-age=60, s-maxage=5"}, 5, SourceSMaxAge},
		{"a longer s-maxage too", []string{"Cache-Control: s-maxage=600, max-age=0", "Expires: " + at(-10)}, 600,
			SourceSMaxAge},
		{"max-age beats a past Expires", []string{"Cache-Control: max-age=60", "Expires: " + at(-10)}, 60, SourceMaxAge},
		{"and an invalid one", []string{"Cache-Control: max-age=60", "Expires: 0"}, 60, SourceMaxAge},
		{"max-age=0 beats a future Expires", []string{"Cache-Control: max-age=0", "Expires: " + at(60)}, 0, SourceMaxAge},
		{"a malformed max-age is stale", []string{"Cache-Control: max-age=-1", "Expires: " + at(60)}, 0, SourceMaxAge},
		{"a malformed s-maxage is stale", []string{"Cache-Control: s-maxage=x, max-age=60"}, 0, SourceSMaxAge},
		{"Expires less Date", []string{"Expires: " + at(100), "Date: " + at(40)}, 60, SourceExpires},
		{"both of a fast clock", []string{"Expires: " + at(20), "Date: " + at(10)}, 10, SourceExpires},
		{"Expires before Date", []string{"Expires: " + at(300), "Date: " + at(400)}, 0, SourceExpires},
		{"Expires equal to Date", []string{"Expires: " + at(0), "Date: " + at(0)}, 0, SourceExpires},
		{"no Date: when it was received", []string{"Expires: " + at(10)}, 10, SourceExpires},
		{"an invalid Date: the same", []string{"Expires: " + at(10), "Date: foo"}, 10, SourceExpires},
		{"an invalid Expires is past", []string{"Expires: 0", "Date: " + at(0)}, 0, SourceExpires},
		{"two Expires that differ", []string{"Expires: " + at(9), "Expires: " + at(8)}, 0, SourceExpires},
		{"an Expires of the far future", []string{"Expires: Fri, 31 Dec 9999 23:59:59 GMT"}, 1 << 31, SourceExpires},
		{"an RFC 850 Expires", []string{"Expires: Monday, 30-Nov-26 12:01:00 GMT"}, 60, SourceExpires},
		{"targeted beats all", []string{"CDN-Cache-Control: max-age=5", "Cache-Control: max-age=60, s-maxage=70"},
			5, SourceTargeted},
		{"targeted s-maxage", []string{"CDN-Cache-Control: max-age=5, s-maxage=6"}, 6, SourceTargeted},
		{"targeted without a lifetime: Expires does not count",
			[]string{"CDN-Cache-Control: must-revalidate", "Cache-Control: max-age=60", "Expires: " + at(60)}, none, ""},
		{"targeted and negative", []string{"CDN-Cache-Control: max-age=-5", "Cache-Control: max-age=60"}, 0,
			SourceTargeted},
		{"targeted and invalid", []string{"CDN-Cache-Control: &&", "Cache-Control: max-age=60"}, 60, SourceMaxAge},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			resp := ok(tt.lines...)
			got, source, stated := StatedLifetime(resp, ResponseDirectives(resp.Header), base)
			if !stated {
				got = seconds(none)
			}
			wantEqual(t, "lifetime", got, seconds(tt.want))
			wantEqual(t, "source", source, tt.source)
		})
	}
}

// RFC 9111 §4.2.2; RFC 9110 §15.1.
func TestHeuristicLifetime(t *testing.T) {
	t.Parallel()
	const none = -1
	for _, tt := range []struct {
		name   string
		status int
		lines  []string
		want   int64
	}{
		{"a tenth of the time since", 200, []string{"Last-Modified: " + at(-1000), "Date: " + at(0)}, 100},
		{"no Date: since it was received", 404, []string{"Last-Modified: " + at(-1000)}, 100},
		{"from Date, not from our clock", 200, []string{"Last-Modified: " + at(-1000), "Date: " + at(-500)}, 50},
		{"at most a day", 200, []string{"Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT"}, 86400},
		{"not modified before Date", 200, []string{"Last-Modified: " + at(0), "Date: " + at(0)}, none},
		{"modified in the future", 200, []string{"Last-Modified: " + at(60), "Date: " + at(0)}, none},
		{"no Last-Modified", 200, []string{"Date: " + at(0)}, none},
		{"an invalid one", 200, []string{"Last-Modified: yesterday"}, none},
		{"a status that is not heuristically cacheable", 503, []string{"Last-Modified: " + at(-1000)}, none},
		{"unless it is public", 599, []string{"Last-Modified: " + at(-1000), "Cache-Control: public"}, 100},
		{"the old Pragma", 200, []string{"Last-Modified: " + at(-1000), "Pragma: No-Cache"}, none},
		{"which Cache-Control makes void", 200,
			[]string{"Last-Modified: " + at(-1000), "Pragma: no-cache", "Cache-Control: x"}, 100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, allowed := HeuristicLifetime(response(tt.status, tt.lines...), base)
			if !allowed {
				got = seconds(none)
			}
			wantEqual(t, "lifetime", got, seconds(tt.want))
		})
	}
}

func TestHeuristicallyCacheable(t *testing.T) {
	t.Parallel()
	want := map[int]bool{200: true, 203: true, 204: true, 300: true, 301: true, 308: true, 404: true, 405: true,
		410: true, 414: true, 501: true}
	for status := range 1000 {
		wantEqual(t, "HeuristicallyCacheable", HeuristicallyCacheable(status), want[status])
	}
}

// RFC 5861 §3, §4; RFC 9111 §4.2.4, §5.2.2.2, §5.2.2.4, §5.2.2.8, §5.2.2.10.
// The policy of each case allows 30 s and 300 s.
func TestStaleWindows(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		cc       string
		swr, sie int64
	}{
		{"max-age=1", 30, 300},
		{"", 30, 300},
		{"max-age=1, must-revalidate", 0, 0},
		{"max-age=1, proxy-revalidate", 0, 0},
		{"max-age=1, no-cache", 0, 0},
		{`max-age=1, no-cache="a"`, 30, 300},
		{"s-maxage=1", 0, 0},
		{"s-maxage=x", 0, 0},
		{"max-age=1, stale-while-revalidate=5", 5, 300},
		{"max-age=1, stale-if-error=6", 30, 6},
		{"max-age=1, stale-while-revalidate=0, stale-if-error=0", 0, 0},
		{"max-age=1, stale-while-revalidate=x, stale-if-error", 0, 0},
		{"s-maxage=1, stale-while-revalidate=5", 5, 0},
		{"s-maxage=1, stale-if-error=6", 0, 6},
		{"must-revalidate, stale-while-revalidate=5, stale-if-error=6", 0, 0},
		{"s-maxage=1, proxy-revalidate, stale-if-error=6", 0, 0},
	} {
		for _, origin := range []OriginMode{"", OriginHonor, OriginIgnoreFreshness, OriginIgnoreAll} {
			r := &Rules{Origin: origin, StaleWhileRevalidate: seconds(30), StaleIfError: seconds(300)}
			swr, sie := StaleWindows(ParseDirectives(fields("Cache-Control: "+tt.cc)), r)
			wantSWR, wantSIE := seconds(tt.swr), seconds(tt.sie)
			if origin == OriginIgnoreAll {
				wantSWR, wantSIE = 30*time.Second, 300*time.Second
			}
			if swr != wantSWR || sie != wantSIE {
				t.Errorf("%q, %q: %v, %v, want %v, %v", tt.cc, origin, swr, sie, wantSWR, wantSIE)
			}
		}
	}
}

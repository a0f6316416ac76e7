package httpcache

import (
	"strings"
	"testing"
)

// RFC 9111 §4; RFC 9110 §7.8, §9.3.1, and what poisons caches.
func TestCheckRequest(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		method string
		lines  []string
		want   Reason
	}{
		{"GET", nil, ""},
		{"HEAD", nil, ""},
		{"GET", []string{"Accept: */*", "Cookie: a=b", "Authorization: x", "Range: bytes=0-", "If-None-Match: *"}, ""},
		{"GET", []string{"Upgrade-Insecure-Requests: 1", "Connection: keep-alive", "Content-Type: text/plain"}, ""},
		{"GET", []string{"Content-Length: 0"}, ""},
		{"POST", nil, ReasonMethod},
		{"OPTIONS", nil, ReasonMethod},
		{"TRACE", nil, ReasonMethod},
		{"CONNECT", nil, ReasonMethod},
		{"QUERY", nil, ReasonMethod},
		{"PURGE", nil, ReasonMethod},
		{"get", nil, ReasonMethod},
		{"", nil, ReasonMethod},
		{"GET", []string{"Upgrade: websocket"}, ReasonUpgrade},
		{"GET", []string{"Connection: Keep-Alive, Upgrade"}, ReasonUpgrade},
		{"GET", []string{"Connection: x-upgrade"}, ""},
		{"GET", []string{"Content-Type: application/grpc"}, ReasonGRPC},
		{"GET", []string{"Content-Type: Application/gRPC-Web+proto"}, ReasonGRPC},
		{"GET", []string{"X-HTTP-Method-Override: DELETE"}, ReasonMethodOverride},
		{"GET", []string{"X-HTTP-Method: GET"}, ReasonMethodOverride},
		{"HEAD", []string{"X-Method-Override:"}, ReasonMethodOverride},
		{"GET", []string{"X-Original-URL: /admin"}, ReasonRewrittenURL},
		{"GET", []string{"X-Rewrite-URL: /admin"}, ReasonRewrittenURL},
		{"GET", []string{"Content-Length: 5"}, ReasonRequestBody},
		{"GET", []string{"Content-Length: 0, 5"}, ReasonRequestBody},
		{"GET", []string{"Transfer-Encoding: chunked"}, ReasonRequestBody},
		{"GET", []string{`If-Match: "a"`}, ReasonOriginPrecondition},
		{"GET", []string{"If-Unmodified-Since: x"}, ReasonOriginPrecondition},
	} {
		pass, reason := CheckRequest(&Request{Method: tt.method, Header: fields(tt.lines...)}, &Rules{})
		if reason != tt.want || pass != (tt.want != "") {
			t.Errorf("%s %q: %v %q, want %q", tt.method, tt.lines, pass, reason, tt.want)
		}
	}
}

// RFC 9111 §5.2.1.1, §5.2.1.3, §5.2.1.4, §5.4. The stored response lives 100 s.
func TestReuseForbidden(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		age   int64
		lines []string
		want  Reason
	}{
		{10, nil, ""},
		{10, []string{"Cache-Control: nothing-to-see-here", "Pragma: foo"}, ""},
		{10, []string{"Cache-Control: no-cache"}, ReasonRequestNoCache},
		{10, []string{"Cache-Control: nothing-to-see-here, No-Cache"}, ReasonRequestNoCache},
		{10, []string{"Cache-Control: no-store"}, ""},
		{0, []string{"Cache-Control: max-age=0"}, ReasonRequestMaxAge},
		{10, []string{"Cache-Control: max-age=9"}, ReasonRequestMaxAge},
		{10, []string{"Cache-Control: max-age=10"}, ""},
		{10, []string{"Cache-Control: max-age=x"}, ReasonRequestMaxAge},
		{100, []string{"Cache-Control: max-age=200"}, ReasonRequestMaxAge},
		{150, []string{"Cache-Control: max-age=200, max-stale=100"}, ""},
		{10, []string{"Cache-Control: min-fresh=90"}, ""},
		{10, []string{"Cache-Control: min-fresh=91"}, ReasonRequestMinFresh},
		{10, []string{"Cache-Control: max-age=50, min-fresh=91"}, ReasonRequestMinFresh},
		{10, []string{"Pragma: no-cache"}, ReasonRequestPragma},
		{10, []string{"Pragma: foo, No-Cache"}, ReasonRequestPragma},
		{10, []string{"Pragma: no-cache", "Cache-Control: max-age=50"}, ""},
		{10, []string{"Cache-Control: only-if-cached"}, ""},
	} {
		age := seconds(tt.age)
		validate, reason := ReuseForbidden(get(tt.lines...), &Rules{HonorRequestDirectives: true}, age, seconds(100))
		if reason != tt.want || validate != (tt.want != "") {
			t.Errorf("age %v, %q: %v %q, want %q", age, tt.lines, validate, reason, tt.want)
		}
		if validate, reason := ReuseForbidden(get(tt.lines...), &Rules{}, age, seconds(100)); validate || reason != "" {
			t.Errorf("%q counts although request directives are ignored", tt.lines)
		}
	}
}

// RFC 9111 §5.2.1.2, §4.2.4.
func TestMaxStale(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		request, stored string
		origin          OriginMode
		want            int64
	}{
		{"max-stale=60", "max-age=1", "", 60},
		{"max-stale", "max-age=1", "", 1 << 31},
		{"max-stale=x", "max-age=1", "", 0},
		{"max-age=5", "max-age=1", "", 0},
		{"max-stale=60", "max-age=1, must-revalidate", "", 0},
		{"max-stale=60", "max-age=1, proxy-revalidate", "", 0},
		{"max-stale=60", "max-age=1, no-cache", "", 0},
		{"max-stale=60", "s-maxage=1", "", 0},
		{"max-stale=60", "s-maxage=1", OriginIgnoreAll, 60},
	} {
		req, stored := get("Cache-Control: "+tt.request), fields("Cache-Control: "+tt.stored)
		got := MaxStale(req, stored, &Rules{HonorRequestDirectives: true, Origin: tt.origin})
		wantEqual(t, tt.request+" of "+tt.stored, got, seconds(tt.want))
		wantEqual(t, "ignored", MaxStale(req, stored, &Rules{}), 0)
	}
}

// RFC 9111 §5.2.1.7.
func TestOnlyIfCached(t *testing.T) {
	t.Parallel()
	req := get("Cache-Control: x, Only-If-Cached")
	wantEqual(t, "honoured", OnlyIfCached(req, &Rules{HonorRequestDirectives: true}), true)
	wantEqual(t, "ignored", OnlyIfCached(req, &Rules{}), false)
	wantEqual(t, "absent", OnlyIfCached(get(), &Rules{HonorRequestDirectives: true}), false)
}

// RFC 9110 §7.8, §9.3.6.
func TestTunnels(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		method string
		lines  []string
		want   bool
	}{
		{"GET", nil, false},
		{"GET", []string{"Upgrade: websocket", "Connection: Upgrade"}, true},
		{"POST", []string{"Upgrade: foo", "Content-Length: 9"}, true},
		{"POST", []string{"Content-Length: 9", "Content-Type: application/grpc"}, true},
		{"POST", []string{"Content-Type: application/json", "Content-Length: 9", "Connection: close"}, false},
		{"CONNECT", nil, true},
	} {
		req := &Request{Method: tt.method, Header: fields(tt.lines...)}
		wantEqual(t, tt.method+" "+strings.Join(tt.lines, ", "), Tunnels(req), tt.want)
	}
}

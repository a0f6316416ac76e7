package httpcache

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// RFC 9111 §3.1; RFC 9110 §7.6.1.
func TestStorableFields(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		in    Fields
		rules Rules
		want  Fields
	}{
		{"all, known or not, in order and on their lines",
			fields("B: 2", "A: 1", "B: 3", "X-Unknown:", "Content-Length: 5", "ETag: x"), Rules{},
			fields("B: 2", "A: 1", "B: 3", "X-Unknown:", "Content-Length: 5", "ETag: x")},
		{"not those of the connection",
			fields("Connection: close", "Keep-Alive: 1", "Proxy-Connection: x", "TE: x", "Trailer: x",
				"Transfer-Encoding: chunked", "Upgrade: x", "A: 1"), Rules{},
			fields("A: 1")},
		{"not those of the client's proxy",
			fields("Proxy-Authenticate: x", "Proxy-Authentication-Info: x", "Proxy-Authorization: x", "Proxy-X: 1"), Rules{},
			fields("Proxy-X: 1")},
		{"not those that Connection names",
			fields("A: 1", "Connection: a, B", "Connection: c", "B: 2", "C: 3", "D: 4"), Rules{},
			fields("D: 4")},
		{"which must not be said of what all recipients need",
			fields("Connection: vary, content-encoding", "Vary: a", "Content-Encoding: br"), Rules{},
			fields("Vary: a", "Content-Encoding: br")},
		{"not Age, nor Set-Cookie, stripped or not",
			fields("Age: 5", "Set-Cookie: a", "Set-Cookie: b", "Set-Cookie2: c"), Rules{},
			fields("Set-Cookie2: c")},
		{"not those that no-cache and private list",
			fields(`Cache-Control: no-cache="a, B", private="c"`, "A: 1", "B: 2", "C: 3", "D: 4"), Rules{},
			fields(`Cache-Control: no-cache="a, B", private="c"`, "D: 4")},
		{"but by IgnoreAll",
			fields(`Cache-Control: no-cache="a"`, "A: 1"), Rules{Origin: OriginIgnoreAll},
			fields(`Cache-Control: no-cache="a"`, "A: 1")},
		{"the origin's Cache-Status and the targeted field stay",
			fields("Cache-Status: o; hit", "CDN-Cache-Control: max-age=1"), Rules{},
			fields("Cache-Status: o; hit", "CDN-Cache-Control: max-age=1")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			before := append(Fields(nil), tt.in...)
			got := StorableFields(&Response{Status: 200, Header: tt.in}, ResponseDirectives(tt.in), &tt.rules)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(before, tt.in); diff != "" {
				t.Errorf("the response was changed: (-before +after)\n%s", diff)
			}
		})
	}
}

// RFC 9110 §6.6.1.
func TestWithDate(t *testing.T) {
	t.Parallel()
	has := fields("Date: x", "A: 1")
	if diff := cmp.Diff(has, WithDate(has, base)); diff != "" {
		t.Errorf("a Date that is there was changed: %s", diff)
	}
	room := append(make(Fields, 0, 8), fields("A: 1")...)
	paris := time.FixedZone("CET", 3600)
	got := WithDate(room, base.In(paris))
	if diff := cmp.Diff(fields("A: 1", "Date: Mon, 30 Nov 2026 12:00:00 GMT"), got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if spare := room[:2][1]; spare != (Field{}) {
		t.Errorf("WithDate wrote %v into the spare room of its argument", spare)
	}
}

// RFC 9110 §15.4.5.
func TestNotModifiedFields(t *testing.T) {
	t.Parallel()
	in := fields("Date: d", `ETag: "a"`, "Content-Type: text/plain", "Content-Length: 5", "Vary: a", "Cache-Control: x",
		"Expires: e", "Content-Location: /x", "Last-Modified: l", "Content-Encoding: br", "Content-Language: de",
		"Access-Control-Allow-Origin: *", "Cache-Status: o")
	want := fields("Date: d", `ETag: "a"`, "Vary: a", "Cache-Control: x", "Expires: e", "Content-Location: /x",
		"Last-Modified: l", "Access-Control-Allow-Origin: *", "Cache-Status: o")
	if diff := cmp.Diff(want, NotModifiedFields(in)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

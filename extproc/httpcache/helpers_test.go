package httpcache

import (
	"strings"
	"testing"
	"time"
)

// base is the instant at which the messages of the tests are received.
var base = time.Date(2026, time.November, 30, 12, 0, 0, 0, time.UTC)

// fields makes Fields of lines such as "Cache-Control: max-age=60".
func fields(lines ...string) Fields {
	var f Fields
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ":")
		f = append(f, Field{strings.ToLower(name), strings.TrimPrefix(value, " ")})
	}
	return f
}

// get makes a GET request with the lines.
func get(lines ...string) *Request {
	return &Request{Method: "GET", Scheme: "https", Authority: "a.test", Path: "/x?y=1", Header: fields(lines...)}
}

// ok makes a 200 response with the lines.
func ok(lines ...string) *Response { return response(200, lines...) }

func response(status int, lines ...string) *Response {
	return &Response{Status: status, Header: fields(lines...)}
}

// at renders an instant that many seconds after base as an HTTP-date.
func at(seconds int) string {
	return base.Add(time.Duration(seconds) * time.Second).Format(imfFixdate)
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

func wantEqual[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

package conformance_test

import (
	"fmt"
	"testing"

	"github.com/weirproxy/weir/e2e/harness"
)

// raw is an answer written byte by byte: interim answers, then a final one whose body is "answer 1".
func raw(interim, cacheControl string) harness.Reply {
	return harness.Reply{Raw: fmt.Sprintf("%sHTTP/1.1 200 OK\r\nCache-Control: %s\r\nContent-Type: text/plain\r\n"+
		"Content-Length: 8\r\nConnection: close\r\n\r\nanswer 1", interim, cacheControl)}
}

// TestInterim: RFC 9111 §3: an interim answer is never stored, and nothing of it becomes part of the final one.
func TestInterim(t *testing.T) {
	t.Parallel()
	const (
		hints      = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\nCache-Control: max-age=600\r\n\r\n"
		processing = "HTTP/1.1 102 Processing\r\n\r\n"
	)
	final := []request{
		{want: want{answer: 1, asked: 1, absent: []string{"Link"}}},
		{want: want{answer: 1, asked: 1, absent: []string{"Link"}, cacheStatus: []string{"hit", "ttl<61"}}},
	}
	runTable(t, []row{
		{name: "103", answers: []harness.Reply{raw(hints, "max-age=60")}, requests: final},
		{name: "102", answers: []harness.Reply{raw(processing, "max-age=60")}, requests: final},
		{name: "several", answers: []harness.Reply{raw(processing+hints+hints, "max-age=60")},
			requests: final},
		{name: "storable hints, no-store", answers: []harness.Reply{raw(hints, "no-store")},
			requests: []request{
				{want: want{answer: 1, asked: 1}}, {want: want{answer: 1, asked: 2, cacheStatus: []string{"!hit"}}},
			}},
		{name: "hints, then closed", answers: []harness.Reply{{Raw: hints}}, requests: []request{
			{want: want{status: anyError, asked: 1}}, {want: want{status: anyError, asked: 2}},
		}},
	})
}

// TestMustUnderstand: RFC 9111 §5.2.2.3: store only by a status that is understood, and then in spite of no-store.
func TestMustUnderstand(t *testing.T) {
	t.Parallel()
	var rows []row
	for _, c := range []struct {
		status       int
		cacheControl string
		reused       bool
	}{
		{200, "must-understand, no-store, max-age=60", true},
		{200, "no-store, must-understand, max-age=60", true},
		{200, "must-understand, max-age=60", true},
		{404, "must-understand, no-store, max-age=60", true},
		{301, "must-understand, no-store, max-age=60", true},
		{299, "must-understand, no-store, max-age=60", false},
		{299, "must-understand, max-age=60", false},
		{599, "must-understand, no-store, max-age=60", false},
		{599, "must-understand, max-age=60", false},
		{599, "max-age=60", true},
		{200, "must-understand, no-store", false},
		{200, "must-understand, no-store, private, max-age=60", false},
	} {
		second := want{status: c.status, answer: 2, asked: 2}
		if c.reused {
			second = want{status: c.status, answer: 1, asked: 1, cacheStatus: []string{"hit"}}
		}
		rows = append(rows, row{
			name:     fmt.Sprintf("%d %s", c.status, c.cacheControl),
			answers:  []harness.Reply{status(c.status, "Cache-Control", c.cacheControl)},
			requests: []request{{want: want{status: c.status, answer: 1}}, {want: second}},
		})
	}
	runTable(t, rows)
}

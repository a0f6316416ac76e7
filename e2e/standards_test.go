package e2e_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/weirproxy/weir/e2e/harness"
)

// onWire sends one request for a path of the edge and returns what was on the wire: the head, and every byte after it.
func (e *edge) onWire(method, path string, lines ...string) (*http.Response, []byte) {
	e.t.Helper()
	request := method + " " + path + " HTTP/1.1\r\nHost: " + e.envoy.Address() + "\r\nConnection: close\r\n"
	for _, line := range lines {
		request += line + "\r\n"
	}
	head, rest, _ := strings.Cut(harness.Raw(e.t, e.envoy.Address(), request+"\r\n"), "\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(head+"\r\n\r\n")), &http.Request{Method: "HEAD"})
	if err != nil {
		e.t.Fatalf("%s %s: %v in %q", method, path, err, head)
	}
	return resp, []byte(rest)
}

// file answers GET and HEAD of an object, and a Range of the form bytes=FIRST-LAST, as a file server does.
func file(size int, fields ...string) harness.Script {
	whole := harness.GeneratedBody(size)
	return func(_ int, r *http.Request) harness.Reply {
		header := harness.Fields(append([]string{"Cache-Control", "max-age=60", "Content-Type", "text/plain"}, fields...)...)
		reply := harness.Reply{Header: header, ETag: `"v1"`, Body: whole}
		var first, last int
		if n, _ := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &first, &last); n == 2 {
			reply.Status, reply.Body = http.StatusPartialContent, whole[first:last+1]
			header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, last, size))
		}
		return reply
	}
}

// methods counts the requests that the origin saw for a path, by method.
func (e *edge) methods(path string) map[string]int {
	seen := make(map[string]int)
	for _, r := range e.origin.Requests(path) {
		seen[r.Method]++
	}
	return seen
}

// wantCacheStatus checks that the last member of Cache-Status is weir's and has the parameters.
func (e *edge) wantCacheStatus(what string, h http.Header, params ...string) {
	e.t.Helper()
	all := strings.Join(h.Values("Cache-Status"), ", ")
	i := strings.LastIndex(all, "weir")
	if i < 0 {
		e.t.Errorf("%s: Cache-Status %q, want a member of weir's", what, all)
		return
	}
	for _, p := range params {
		if !strings.Contains(all[i:]+";", "; "+p+";") && !strings.Contains(all[i:]+";", "; "+p+"=") {
			e.t.Errorf("%s: Cache-Status %q, want %q", what, all, p)
		}
	}
}

// TestHeadAndGet: a HEAD never fills what GET is answered from, and is answered from a stored GET, with the length of
// its body and none of its bytes.
func TestHeadAndGet(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{})
	defer e.settles()
	for _, size := range []int{1000, 300_000} { // one message, and streamed
		path := "/file-" + strconv.Itoa(size)
		e.serve(path, file(size))
		for i, c := range []struct{ method, status string }{
			{"HEAD", "fwd=uri-miss"}, {"GET", "fwd=uri-miss"}, {"HEAD", "hit"}, {"GET", "hit"},
		} {
			what := fmt.Sprintf("%s %d (%d)", c.method, i+1, size)
			resp, body := e.onWire(c.method, path)
			if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Length") != strconv.Itoa(size) {
				t.Errorf("%s: status %d, Content-Length %q", what, resp.StatusCode, resp.Header.Get("Content-Length"))
			}
			var want []byte
			if c.method == "GET" {
				want = harness.GeneratedBody(size)
			}
			if !bytes.Equal(body, want) {
				t.Errorf("%s: %d bytes after the head, want %d", what, len(body), len(want))
			}
			e.wantCacheStatus(what, resp.Header, c.status)
		}
		if seen := e.methods(path); seen["HEAD"] != 1 || seen["GET"] != 1 {
			t.Errorf("size %d: the origin saw %v, want one HEAD and one GET", size, seen)
		}
	}
}

// TestHeadAndGetAtOnce: whoever comes first, a GET gets the body, a HEAD none, and only GETs share.
func TestHeadAndGetAtOnce(t *testing.T) {
	t.Parallel()
	const others = 5
	e := startEdge(t, edgeOptions{})
	defer e.settles()
	for first, then := range map[string]string{"GET": "HEAD", "HEAD": "GET"} {
		path := "/" + first
		gate := make(chan struct{})
		e.serve(path, func(n int, r *http.Request) harness.Reply {
			reply := file(1000)(n, r)
			reply.Gate = gate
			return reply
		})
		of := func(method string) *http.Request {
			r := e.get(path)
			r.Method = method
			return r
		}
		leader := e.burst(1, of(first))
		e.answering(path, 1)
		followers := e.burst(others, of(then))
		if then == "HEAD" {
			e.answering(path, 1+others) // each asks for itself
		} else {
			e.answering(path, 2)
			e.waiting(others - 1)
		}
		close(gate)
		wantLength := func(method string, answers []harness.BurstResult) {
			want := int64(1000)
			if method == "HEAD" {
				want = 0
			}
			for _, r := range answers {
				told := r.Header.Get("Content-Length")
				if r.Err != nil || r.Status != http.StatusOK || r.Length != want || method == "HEAD" && told != "1000" {
					t.Errorf("%s first, %s: %+v", first, method, r)
				}
			}
		}
		wantLength(first, leader())
		wantLength(then, followers())
		if seen := e.methods(path); seen["GET"] != 1 {
			t.Errorf("%s first: the origin saw %v, want one GET", first, seen)
		}
	}
}

// TestPartAndWhole: a part is never stored, nor given out as the whole; parts are made of a stored whole.
func TestPartAndWhole(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{})
	defer e.settles()
	for _, size := range []int{1000, 300_000} {
		path := "/file-" + strconv.Itoa(size)
		e.serve(path, file(size))
		whole := harness.GeneratedBody(size)
		// As the origin says it: nothing of it is stored.
		for range 2 {
			e.wantPart(path, "bytes=0-99", whole[:100], fmt.Sprintf("bytes 0-99/%d", size))
		}
		e.wantCount(path, 2)
		resp, body := e.onWire("GET", path)
		if resp.StatusCode != http.StatusOK || !bytes.Equal(body, whole) || resp.Header.Get("Content-Range") != "" {
			t.Errorf("plain: %d, %d bytes, Content-Range %q", resp.StatusCode, len(body), resp.Header.Get("Content-Range"))
		}
		e.wantCount(path, 3)

		// From the whole.
		last := size - 1
		e.wantPart(path, "bytes=0-99", whole[:100], fmt.Sprintf("bytes 0-99/%d", size))
		e.wantPart(path, "bytes=500-", whole[500:], fmt.Sprintf("bytes 500-%d/%d", last, size))
		e.wantPart(path, "bytes=-1", whole[last:], fmt.Sprintf("bytes %d-%d/%d", last, last, size))
		e.wantPart(path, "bytes=990-99999999999", whole[990:], fmt.Sprintf("bytes 990-%d/%d", last, size))
		e.wantPart(path, "bytes=0-0", whole[:1], fmt.Sprintf("bytes 0-0/%d", size), `If-Range: "v1"`)
		e.wantParts(path, "bytes=0-9, 200-299, -5", whole[:10], whole[200:300], whole[size-5:])
		e.wantUnsatisfiable(path, "bytes=400000-", size)

		for _, lines := range [][]string{
			{"Range: bytes=0-99", `If-Range: "v0"`},
			{"Range: bytes=0-99", `If-Range: W/"v1"`},
			{"Range: bytes=0-99", "If-Range: Thu, 01 Jan 1970 00:00:00 GMT"},
			{"Range: lines=0-99"},
			{"Range: bytes=99-0"},
			{"Range: bytes=0-,0-,0-,0-"}, // more than asking for the whole
		} {
			resp, body := e.onWire("GET", path, lines...)
			if resp.StatusCode != http.StatusOK || !bytes.Equal(body, whole) {
				t.Errorf("%q: %d and %d bytes, want the whole", lines, resp.StatusCode, len(body))
			}
		}
		e.wantCount(path, 3)
	}
}

func (e *edge) wantPart(path, ask string, want []byte, contentRange string, lines ...string) {
	e.t.Helper()
	resp, body := e.onWire("GET", path, append(lines, "Range: "+ask)...)
	h := resp.Header
	if resp.StatusCode != http.StatusPartialContent || !bytes.Equal(body, want) ||
		h.Get("Content-Range") != contentRange || h.Get("Content-Length") != strconv.Itoa(len(want)) {
		e.t.Errorf("%s %s: %d, Content-Range %q, Content-Length %q, %d bytes %.20q",
			path, ask, resp.StatusCode, h.Get("Content-Range"), h.Get("Content-Length"), len(body), body)
	}
}

// wantParts reads a multipart/byteranges.
func (e *edge) wantParts(path, ask string, want ...[]byte) {
	e.t.Helper()
	resp, body := e.onWire("GET", path, "Range: "+ask)
	mediaType, params, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode != http.StatusPartialContent || err != nil || mediaType != "multipart/byteranges" ||
		resp.Header.Get("Content-Length") != strconv.Itoa(len(body)) {
		e.t.Fatalf("%s %s: %d %v", path, ask, resp.StatusCode, resp.Header)
	}
	parts := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	for i, w := range want {
		part, err := parts.NextPart()
		if err != nil {
			e.t.Fatalf("%s %s: part %d: %v", path, ask, i, err)
		}
		got, err := io.ReadAll(part)
		if err != nil || !bytes.Equal(got, w) || part.Header.Get("Content-Type") != "text/plain" {
			e.t.Errorf("%s %s: part %d: %v, %v, %d bytes", path, ask, i, part.Header, err, len(got))
		}
	}
	if _, err := parts.NextPart(); err != io.EOF {
		e.t.Errorf("%s %s: more parts than asked for (%v)", path, ask, err)
	}
}

func (e *edge) wantUnsatisfiable(path, ask string, size int) {
	e.t.Helper()
	resp, body := e.onWire("GET", path, "Range: "+ask)
	want := fmt.Sprintf("bytes */%d", size)
	if resp.StatusCode != http.StatusRequestedRangeNotSatisfiable || resp.Header.Get("Content-Range") != want ||
		len(body) != 0 {
		e.t.Errorf("%s %s: %d, %v, %q", path, ask, resp.StatusCode, resp.Header, body)
	}
}

// TestRangeNeverLeads: a request for a part goes its own way; the plain requests share a fetch of the whole.
func TestRangeNeverLeads(t *testing.T) {
	t.Parallel()
	const others = 5
	e := startEdge(t, edgeOptions{})
	defer e.settles()
	gate := make(chan struct{})
	e.serve("/file", func(n int, r *http.Request) harness.Reply {
		reply := file(1000)(n, r)
		reply.Gate = gate
		return reply
	})
	part := e.burst(1, e.get("/file", "Range", "bytes=0-99"))
	e.answering("/file", 1)
	plain := e.burst(others, e.get("/file"))
	e.answering("/file", 2)
	e.waiting(others - 1)
	close(gate)
	if r := part()[0]; r.Err != nil || r.Status != http.StatusPartialContent || r.Length != 100 {
		t.Errorf("the part: %+v", r)
	}
	e.wantBody(plain(), harness.GeneratedBody(1000))
	e.wantCount("/file", 2)
}

// validating answers first with a stale object of 1000 bytes, then with a 304 that says Content-Length: 0, as some
// origins do, and a new X-Rev.
func validating(gate <-chan struct{}) harness.Script {
	return func(n int, r *http.Request) harness.Reply {
		if n == 1 {
			reply := file(1000, "Age", "100", "X-Rev", "1")(n, r)
			reply.Header.Set("Cache-Control", "max-age=90, must-revalidate")
			return reply
		}
		if r.Header.Get("If-None-Match") != `"v1"` {
			return harness.Reply{Status: http.StatusTeapot}
		}
		return harness.Reply{Gate: gate, Raw: "HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\nContent-Length: 0\r\n" +
			"X-Rev: 2\r\nCache-Control: max-age=90, must-revalidate\r\nConnection: close\r\n\r\n"}
	}
}

// TestOwnValidatorDoesNotLeak: the 304 to weir's own condition reaches no client that asked without one, and its
// length is not taken for that of the stored body.
func TestOwnValidatorDoesNotLeak(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, noRefill bool) {
		e := startEdge(t, edgeOptions{NoRefill: noRefill})
		defer e.settles()
		e.serve("/page", validating(nil))
		e.do(e.get("/page"))
		for i, status := range []string{"fwd-status=304", "hit"} {
			resp := e.do(e.get("/page"))
			length := resp.Header.Get("Content-Length")
			if resp.Status != http.StatusOK || !bytes.Equal(resp.Body, harness.GeneratedBody(1000)) ||
				resp.Header.Get("X-Rev") != "2" || length != "1000" && length != "" {
				t.Errorf("%d: %d, %d bytes, %v", i, resp.Status, len(resp.Body), resp.Header)
			}
			e.wantCacheStatus(strconv.Itoa(i), resp.Header, status)
		}
		resp, body := e.onWire("GET", "/page", `If-None-Match: "v0", "v1"`)
		if resp.StatusCode != http.StatusNotModified || len(body) != 0 || resp.Header.Get("ETag") != `"v1"` {
			t.Errorf("asked with its tag: %d, %v, %q", resp.StatusCode, resp.Header, body)
		}
		e.wantCount("/page", 2)
	})
}

// TestValidationIsShared: of many who come to a stale object one condition goes out, and each gets the answer to its
// own: 304 to who has it, else the whole.
func TestValidationIsShared(t *testing.T) {
	t.Parallel()
	const clients = 10
	eachWay(t, func(t *testing.T, noRefill bool) {
		e := startEdge(t, edgeOptions{NoRefill: noRefill})
		defer e.settles()
		gate := make(chan struct{})
		e.serve("/page", validating(gate))
		e.do(e.get("/page"))
		answers := harness.StartBurst(t, clients, func(i int) *http.Request {
			if i%2 == 0 {
				return e.get("/page", "If-None-Match", `"v1"`)
			}
			return e.get("/page")
		})
		e.eventually("all wait, the origin is asked", func() bool {
			return e.origin.Concurrent("/page") == 1 && e.weir.Metrics().Sum("weir_waiting") >= clients-1
		})
		close(gate)
		for i, r := range answers() {
			wantStatus, wantLength := http.StatusOK, int64(1000)
			if i%2 == 0 {
				wantStatus, wantLength = http.StatusNotModified, 0
			}
			if r.Err != nil || r.Status != wantStatus || r.Length != wantLength {
				t.Errorf("client %d: %d, %d bytes, %v; want %d", i, r.Status, r.Length, r.Err, wantStatus)
			}
		}
		e.wantCount("/page", 2)
	})
}

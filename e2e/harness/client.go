package harness

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// clientLimit bounds every exchange of a client here: longer than any hold a test makes, short beside a test's limit.
const clientLimit = 60 * time.Second

// Response is a response read to its end.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Get makes a GET request with header fields given as name, value pairs. It panics when the URL is malformed, which
// is a mistake in the test.
func Get(rawURL string, fields ...string) *http.Request {
	u, err := url.Parse(rawURL)
	if err != nil {
		panic(fmt.Sprintf("test's URL: %v", err))
	}
	req := &http.Request{Method: http.MethodGet, URL: u, Host: u.Host, Header: make(http.Header)}
	for i := 0; i+1 < len(fields); i += 2 {
		req.Header.Add(fields[i], fields[i+1])
		if http.CanonicalHeaderKey(fields[i]) == "Host" {
			req.Host = fields[i+1]
		}
	}
	return req
}

// Do sends one request on a connection of its own and reads the whole response. Redirects are not followed, nothing
// is decompressed, and no header is added but Host and User-Agent.
func Do(tb TB, req *http.Request) Response {
	tb.Helper()
	client := newClient(tb)
	defer client.CloseIdleConnections()
	return do(tb, client, req)
}

func do(tb TB, client *http.Client, req *http.Request) Response {
	tb.Helper()
	resp, err := client.Do(req)
	if err != nil {
		tb.Fatalf("%s %s: %v", req.Method, req.URL, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		tb.Fatalf("%s %s: status %d, then: %v", req.Method, req.URL, resp.StatusCode, err)
	}
	return Response{Status: resp.StatusCode, Header: resp.Header, Body: body}
}

func newClient(tb TB) *http.Client {
	transport := &http.Transport{DisableCompression: true}
	tb.Cleanup(transport.CloseIdleConnections)
	return &http.Client{
		Transport:     transport,
		Timeout:       clientLimit,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Raw sends bytes to address and returns every byte that comes back until the peer closes: what was really on the
// wire, so also what a client would never show. Let the request say "Connection: close".
func Raw(tb TB, address, request string) string {
	tb.Helper()
	conn := Dial(tb, address)
	if _, err := io.WriteString(conn, request); err != nil {
		tb.Fatalf("write to %s: %v", address, err)
	}
	all, err := io.ReadAll(conn)
	if err != nil {
		tb.Fatalf("read from %s: %v after %q", address, err, all)
	}
	return string(all)
}

// Dial opens a TCP connection, closed with the test; reads and writes end after a minute.
func Dial(tb TB, address string) *net.TCPConn {
	tb.Helper()
	conn, err := net.DialTimeout("tcp", address, clientLimit)
	if err != nil {
		tb.Fatalf("connect: %v", err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(clientLimit)); err != nil {
		tb.Fatalf("connect: %v", err)
	}
	return conn.(*net.TCPConn)
}

// hash tells bodies apart.
func hash[T []byte | string](b T) [sha256.Size]byte { return sha256.Sum256([]byte(b)) }

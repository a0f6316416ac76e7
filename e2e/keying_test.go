package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirproxy/weir/e2e/harness"
)

// says answers 200 with what f makes of the request.
func says(f func(*http.Request) string, header ...string) harness.Script {
	return func(_ int, r *http.Request) harness.Reply {
		return harness.Reply{Body: []byte(f(r)), Header: harness.Fields(header...)}
	}
}

// field shows all lines of a request field, as an origin may see them.
func field(name string) func(*http.Request) string {
	return func(r *http.Request) string { return name + "=" + strings.Join(r.Header.Values(name), "|") }
}

// ask sends one GET and returns the body, which must come with status 200.
func (e *edge) ask(path string, fields ...string) string {
	e.t.Helper()
	resp := e.do(e.get(path, fields...))
	if resp.Status != http.StatusOK {
		e.t.Errorf("%s with %q: status %d", path, fields, resp.Status)
	}
	return string(resp.Body)
}

// TestForgedFieldsPoisonNothing: a page made by a request with a forged field is never shown to one without it, and the
// other way round. The field is in the key, or the request passes by.
func TestForgedFieldsPoisonNothing(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{})
	defer e.settles()
	tests := []struct {
		name, value string
		want        map[string]int // of forged, clean, forged, clean
	}{
		{"X-Forwarded-Host", "evil.test", map[string]int{"miss": 2, "hit": 2}},
		{"X-Forwarded-Port", "666", map[string]int{"miss": 2, "hit": 2}},
		{"X-Forwarded-Prefix", "/evil", map[string]int{"miss": 2, "hit": 2}},
		{"Forwarded", "host=evil.test", map[string]int{"miss": 2, "hit": 2}},
		{"X-Forwarded-Proto", "https", map[string]int{"miss": 2, "hit": 2}},
		{"X-Original-URL", "/evil", map[string]int{"bypass_request": 2, "miss": 1, "hit": 1}},
		{"X-Rewrite-URL", "/evil", map[string]int{"bypass_request": 2, "miss": 1, "hit": 1}},
	}
	for _, tt := range tests {
		for order, fields := range map[string][][]string{
			"forged-first": {{tt.name, tt.value}, nil, {tt.name, tt.value}, nil},
			"clean-first":  {nil, {tt.name, tt.value}, nil, {tt.name, tt.value}},
		} {
			before := e.weir.Metrics()
			path := "/" + order + "/" + tt.name
			e.serve(path, says(field(tt.name), "Cache-Control", "max-age=60"))
			for i, f := range fields {
				body := e.ask(path, f...)
				if forged := len(f) > 0; strings.Contains(body, tt.value) != forged {
					t.Errorf("%s, request %d, forged %v: got %q", path, i+1, forged, body)
				}
			}
			e.wantOutcomesSince(before, path, tt.want)
		}
	}
}

// TestClientAddressesShareAPage: X-Forwarded-For, which Envoy always adds, is in no key.
func TestClientAddressesShareAPage(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{})
	defer e.settles()
	e.serve("/page", says(func(*http.Request) string { return "page" }, "Cache-Control", "max-age=60"))
	for i := range 3 {
		e.ask("/page", "X-Forwarded-For", fmt.Sprintf("192.0.2.%d", i))
	}
	e.wantCount("/page", 1)
}

// TestHostsAreKeptApart: the case of a host and the scheme's own port do not count, every other difference does.
func TestHostsAreKeptApart(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{})
	defer e.settles()
	e.serve("/page", says(func(r *http.Request) string { return strings.ToLower(r.Host) }, "Cache-Control", "max-age=60"))
	tests := []struct {
		scheme, host, want string
		fetched            bool
	}{
		{"http", "a.test", "a.test", true},
		{"http", "A.TEST", "a.test", false},
		{"http", "a.test:80", "a.test", false},
		{"http", "a.test:443", "a.test:443", true},
		{"http", "b.test", "b.test", true},
		{"https", "a.test", "a.test", true},
		{"https", "A.test:443", "a.test", false},
		{"https", "a.test:80", "a.test:80", true},
		{"http", "a.test", "a.test", false},
	}
	fetches := 0
	for _, tt := range tests {
		if tt.fetched {
			fetches++
		}
		if got := e.ask("/page", "Host", tt.host, "X-Forwarded-Proto", tt.scheme); got != tt.want {
			t.Errorf("%s://%s got the page of %s", tt.scheme, tt.host, got)
		}
		if got := e.origin.Count("/page"); got != fetches {
			t.Errorf("%s://%s: the origin saw %d requests, want %d", tt.scheme, tt.host, got, fetches)
		}
	}
}

// TestVariantsCompareAllLines: a field may stand on several lines (RFC 9110 §5.3), and values made to look alike to a
// checksum are compared as they are.
func TestVariantsCompareAllLines(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{})
	defer e.settles()
	codings := func(r *http.Request) []string {
		var all []string
		for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
			all = append(all, strings.TrimSpace(part))
		}
		return all
	}
	prefersBr := func(r *http.Request) string {
		for _, coding := range []string{"br", "gzip"} {
			if slices.Contains(codings(r), coding) {
				return coding
			}
		}
		return "identity"
	}
	const (
		encoding = "Accept-Encoding"
		group    = "X-Group"
	)
	tests := []struct {
		path     string
		vary     string
		requests [][]string // fields of each
		want     []string
		fetches  int
	}{
		{"/lines", encoding, [][]string{{encoding, "gzip", encoding, "br"}, {encoding, "gzip"}, {encoding, "br"}, nil},
			[]string{"br", "gzip", "br", "identity"}, 4},
		{"/collision", encoding, [][]string{{encoding, "br,gzip,xxx,jdcqiab"}, {encoding, "gzip"}}, []string{"br", "gzip"}, 2},
		{"/spaces", encoding, [][]string{{encoding, "gzip, br"}, {encoding, "gzip,br"}, {encoding, "br,gzip"}},
			[]string{"br", "br", "br"}, 2},
		{"/custom", group, [][]string{{group, "a", group, "b"}, {group, "a"}, {group, "b"}, {group, "b", group, "a"}, {group, ""}, nil},
			[]string{"X-Group=a|b", "X-Group=a", "X-Group=b", "X-Group=b|a", "X-Group=", "X-Group="}, 6},
	}
	for _, tt := range tests {
		script := prefersBr
		if tt.vary == group {
			script = field(group)
		}
		e.serve(tt.path, says(script, "Cache-Control", "max-age=60", "Vary", tt.vary))
		for range 2 { // fetched, then stored
			for i, fields := range tt.requests {
				if got := strings.ReplaceAll(e.ask(tt.path, fields...), ",", "|"); got != tt.want[i] {
					t.Errorf("%s with %q: got %q, want %q", tt.path, fields, got, tt.want[i])
				}
			}
		}
		e.wantCount(tt.path, tt.fetches)
	}
}

// credentialRows are what an origin may say of the answer to a request with Authorization.
var credentialRows = []struct {
	path   string
	header []string
	shared bool // with other users, as RFC 9111 §3.5 has it
}{
	{"/max-age", []string{"Cache-Control", "max-age=60"}, false},
	{"/public", []string{"Cache-Control", "public, max-age=60"}, true},
	{"/s-maxage", []string{"Cache-Control", "s-maxage=60"}, true},
	{"/must-revalidate", []string{"Cache-Control", "max-age=60, must-revalidate"}, true},
	{"/vary", []string{"Cache-Control", "max-age=60", "Vary", "Authorization"}, false},
	{"/silent", nil, false},
	{"/public-vary", []string{"Cache-Control", "public, max-age=60", "Vary", "Authorization"}, false},
}

// TestAuthorization: an answer to one user is given to another only where the origin says so; a policy's own lifetime
// says nothing about it. Nor does it help to ask first without a user.
func TestAuthorization(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{Spec: "ttl: {default: 60s}"})
	defer e.settles()
	asks := func(path string, users ...string) (got []string) {
		for _, user := range users {
			var fields []string
			if user != "" {
				fields = []string{"Authorization", user}
			}
			got = append(got, e.ask(path, fields...))
		}
		return got
	}
	const own, a, b, none = "Authorization=", "Authorization=A", "Authorization=B", ""
	for _, row := range credentialRows {
		e.serve(row.path, says(field("Authorization"), row.header...))
		want := []string{a, b, a, own, own}
		if row.shared {
			want = []string{a, a, a, a, a}
		}
		if diff := cmp.Diff(want, asks(row.path, "A", "B", "A", none, none)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.path, diff)
		}
		path := row.path + "/anonymous-first"
		e.serve(path, says(field("Authorization"), row.header...))
		want = []string{own, a, b, own}
		if row.shared {
			want = []string{own, own, own, own}
		}
		if diff := cmp.Diff(want, asks(path, none, "A", "B", none)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	e.wantCount("/max-age", 4) // A, B, A, and the anonymous ones share
	e.wantCount("/public", 1)
	e.wantCount("/public-vary", 3) // A, B and nobody, each stored
}

// TestAuthorizationInTheKey: a policy that keeps users apart shares nothing between them, whatever the origin says, and
// serves each from the store where the origin lets it.
func TestAuthorizationInTheKey(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{Spec: "ttl: {default: 60s}\nkey: {headers: [Authorization]}"})
	defer e.settles()
	for _, row := range credentialRows {
		e.serve(row.path, says(field("Authorization"), row.header...))
		for _, user := range []string{"A", "B", "A", "B"} {
			if got := e.ask(row.path, "Authorization", user); got != "Authorization="+user {
				t.Errorf("%s: %s got %q", row.path, user, got)
			}
		}
		fetches := 4
		if row.shared || row.path == "/public-vary" {
			fetches = 2
		}
		e.wantCount(row.path, fetches)
	}
}

// TestUsersDoNotShareAFlight: of users who ask at the same time each gets the answer made for them.
func TestUsersDoNotShareAFlight(t *testing.T) {
	t.Parallel()
	const users = 20
	e := startEdge(t, edgeOptions{Spec: "ttl: {default: 60s}"})
	defer e.settles()
	gate := make(chan struct{})
	e.serve("/account", func(_ int, r *http.Request) harness.Reply {
		return harness.Reply{
			Gate: gate, Body: []byte(r.Header.Get("Authorization")), Header: harness.Fields("Cache-Control", "max-age=60"),
		}
	})
	answers := harness.StartBurst(t, users, func(i int) *http.Request {
		return e.get("/account", "Authorization", fmt.Sprintf("user %d", i))
	})
	e.answering("/account", users)
	if n := e.weir.Metrics().Sum("weir_wait_seconds_count"); n != 0 {
		t.Errorf("%v of them waited for another's answer, before which consent is not known", n)
	}
	close(gate)
	for i, r := range answers() {
		if want := fmt.Sprintf("user %d", i); r.Err != nil || string(r.Body) != want {
			t.Errorf("%s got %q, error %v", want, r.Body, r.Err)
		}
	}
	if n := e.status().Store.Entries; n != 0 {
		t.Errorf("%d entries are stored, want none", n)
	}
}

// TestDisguisedRequestsPassBy: a GET with a body, a method override and methods that weir does not know are between the
// client and the origin. What they bring about is shown to nobody else.
func TestDisguisedRequestsPassBy(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{})
	defer e.quiet()         // safe methods that are not GET or HEAD carry no Cache-Status of weir's
	http2 := http2Client(t) // over which Envoy takes every method
	crafted := func(method string, body io.Reader, fields ...string) func(string) *http.Request {
		return func(path string) *http.Request {
			req := e.get(path, fields...)
			req.Method, req.Body, req.ContentLength = method, io.NopCloser(body), -1
			if r, ok := body.(*strings.Reader); ok {
				req.ContentLength = int64(r.Len())
			}
			return req
		}
	}
	text := func() io.Reader { return strings.NewReader("q=bad") }
	chunked := func() io.Reader { return io.MultiReader(text()) }
	tests := []struct {
		name    string
		crafted func(string) *http.Request
		counted string
	}{
		{"body", crafted("GET", text()), "bypass_request"},
		{"chunked", crafted("GET", chunked()), "bypass_request"},
		{"head", crafted("HEAD", text()), "bypass_request"},
		{"override", crafted("GET", http.NoBody, "X-HTTP-Method-Override", "DELETE"), "bypass_request"},
		{"method", crafted("GET", http.NoBody, "X-HTTP-Method", "DELETE"), "bypass_request"},
		{"method-override", crafted("GET", http.NoBody, "X-Method-Override", "PUT"), "bypass_request"},
		{"query", crafted("QUERY", text(), "Content-Type", "text/plain"), "bypass_method"},
		{"propfind", crafted("PROPFIND", http.NoBody), "bypass_method"},
		{"unknown", crafted("FROBNICATE", http.NoBody), "bypass_method"},
	}
	for _, tt := range tests {
		before, path := e.weir.Metrics(), "/search/"+tt.name
		e.serve(path, func(_ int, r *http.Request) harness.Reply {
			plain := r.Method == http.MethodGet && r.ContentLength == 0 && r.Header.Get("X-HTTP-Method-Override")+
				r.Header.Get("X-HTTP-Method")+r.Header.Get("X-Method-Override") == ""
			return harness.Reply{
				Body:   []byte(map[bool]string{true: "plain", false: "crafted"}[plain]),
				Header: harness.Fields("Cache-Control", "max-age=60"),
			}
		})
		if got := e.over(http2, tt.crafted(path)); got == "200 plain" || !strings.HasPrefix(got, "200 ") {
			t.Errorf("%s: the crafted request got %q", tt.name, got)
		}
		for range 2 {
			if got := e.ask(path); got != "plain" {
				t.Errorf("%s: a plain request got %q", tt.name, got)
			}
		}
		e.wantCount(path, 2)
		e.wantOutcomesSince(before, tt.name, map[string]int{tt.counted: 1, "miss": 1, "hit": 1})
	}
}

// TestFatGetJoinsNoFlight: nor does a GET with a body wait for one without, or the other way round, over HTTP/2 neither,
// where no field tells that a body follows.
func TestFatGetJoinsNoFlight(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{})
	defer e.settles()
	gate := make(chan struct{})
	e.serve("/search", func(_ int, r *http.Request) harness.Reply {
		body, _ := io.ReadAll(r.Body)
		return harness.Reply{Gate: gate, Body: append([]byte("found "), body...),
			Header: harness.Fields("Cache-Control", "max-age=60")}
	})
	plain := e.burst(1, e.get("/search"))
	e.answering("/search", 1)

	http2 := http2Client(t)
	fat := e.get("/search")
	fat.Body, fat.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader("q=bad"))), -1
	got := make(chan string, 1)
	go func() { got <- e.over(http2, fat) }()
	e.answering("/search", 2)
	close(gate)
	if answer := <-got; !strings.HasPrefix(answer, "200 found") {
		t.Errorf("the fat request got %q", answer)
	}
	e.wantBody(plain(), []byte("found "))
	if body := e.ask("/search"); body != "found " {
		t.Errorf("a plain request got %q", body)
	}
	e.wantOutcomes(map[string]int{"miss": 1, "bypass_request": 1, "hit": 1})
}

// over sends a request by an HTTP/2 client, and returns status and body, or the error.
func (e *edge) over(client *http.Client, req *http.Request) string {
	resp, err := client.Do(req)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.ProtoMajor != 2 {
		return fmt.Sprintf("%s %d, then %v", resp.Proto, resp.StatusCode, err)
	}
	return fmt.Sprintf("%d %s", resp.StatusCode, body)
}

// http2Client speaks HTTP/2 without TLS.
func http2Client(t *testing.T) *http.Client {
	t.Helper()
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols, DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

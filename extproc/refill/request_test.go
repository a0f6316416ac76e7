package refill

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirproxy/weir/extproc/httpcache"
)

const noContent = "HTTP/1.1 204 No Content\r\n\r\n"

// What goes over the wire, byte for byte but for the order of the fields.
func TestRequestOnTheWire(t *testing.T) {
	t.Parallel()
	s := serveWire(t, "tcp", "127.0.0.1:0", noContent)
	f := fetcher(t, Options{Addr: s.addr()})
	req := Request{
		Method: "GET", Scheme: "https", Authority: "Shop.test:8443", Path: "/a%2Fb/ü?q=%zz&q=|",
		Header: fields(
			"user-agent", "browser/1", "accept", "text/html", "accept-encoding", "br", "x-tenant", "t1", "x-tenant", "t2",
			"authorization", "Bearer secret", "cookie", "sid=1; lang=de", "if-none-match", `"client"`, "range", "bytes=0-9",
			"x-forwarded-proto", "http", "x-forwarded-for", "192.0.2.1", "x-forwarded-host", "shop.example",
		),
		Cookies:    []string{"lang"},
		Validators: fields("if-none-match", `"stored"`, "if-modified-since", "Sun, 01 Mar 2026 12:00:00 GMT"),
	}
	if err := f.Do(t.Context(), req, &record{}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(s.last(t)), "\r\n")
	slices.Sort(lines[2:])
	want := []string{
		"GET /a%2Fb/ü?q=%zz&q=| HTTP/1.1",
		"Host: Shop.test:8443",
		"Accept-Encoding: br",
		"Accept: text/html",
		"Cookie: lang=de",
		"If-Modified-Since: Sun, 01 Mar 2026 12:00:00 GMT",
		`If-None-Match: "stored"`,
		"User-Agent: browser/1",
		"X-Forwarded-Host: shop.example",
		"X-Forwarded-Proto: https",
		"X-Tenant: t1",
		"X-Tenant: t2",
	}
	if d := cmp.Diff(want, lines); d != "" {
		t.Error(d)
	}
}

func TestNothingIsInvented(t *testing.T) {
	t.Parallel()
	s := serveWire(t, "tcp", "127.0.0.1:0", noContent)
	if err := fetcher(t, Options{Addr: s.addr()}).Do(t.Context(), get, &record{}); err != nil {
		t.Fatal(err)
	}
	want := "GET /x HTTP/1.1\r\nHost: a.test\r\nX-Forwarded-Proto: http\r\n"
	if d := cmp.Diff(want, s.last(t)); d != "" {
		t.Error(d)
	}
}

func TestTokenIsSent(t *testing.T) {
	t.Parallel()
	tokens := NewTokens()
	s := serveWire(t, "tcp", "127.0.0.1:0", noContent)
	f := fetcher(t, Options{Addr: s.addr(), Tokens: tokens})
	req := get
	req.Header = fields(TokenHeader, "forged")
	if err := f.Do(t.Context(), req, &record{}); err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(s.last(t)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if strings.EqualFold(name, TokenHeader) {
			found = append(found, value)
		}
	}
	if len(found) != 1 || !tokens.Verify(found[0], "GET", "a.test", "/x", time.Now()) {
		t.Errorf("tokens sent: %q", found)
	}
}

func TestRequestThatCannotBeSent(t *testing.T) {
	t.Parallel()
	s := serveWire(t, "tcp", "127.0.0.1:0", noContent)
	f := fetcher(t, Options{Addr: s.addr()})
	tests := []struct {
		name   string
		change func(*Request)
	}{
		{"POST", func(r *Request) { r.Method = "POST" }},
		{"no method", func(r *Request) { r.Method = "" }},
		{"no authority", func(r *Request) { r.Authority = "" }},
		{"authority with a line break", func(r *Request) { r.Authority = "a\r\nx: y" }},
		{"unknown scheme", func(r *Request) { r.Scheme = "ftp" }},
		{"no path", func(r *Request) { r.Path = "" }},
		{"asterisk", func(r *Request) { r.Path = "*" }},
		{"absolute URL", func(r *Request) { r.Path = "http://b.test/" }},
		{"space in the path", func(r *Request) { r.Path = "/a b" }},
		{"line break in the path", func(r *Request) { r.Path = "/a\r\nx: y" }},
		{"fragment", func(r *Request) { r.Path = "/a#b" }},
		{"two slashes and a bad escape", func(r *Request) { r.Path = "//a/%zz" }},
		{"two slashes and a character net/url would encode", func(r *Request) { r.Path = "//a/|" }},
		{"line break in a field", func(r *Request) { r.Header = fields("x", "a\nb: c") }},
		{"field name with a space", func(r *Request) { r.Header = fields("x y", "a") }},
		{"bad validator", func(r *Request) { r.Validators = fields("if-none-match", "\x00") }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			req := get
			tt.change(&req)
			if err := f.Do(t.Context(), req, &record{}); !errors.Is(err, ErrRequest) {
				t.Errorf("Do = %v, want %v", err, ErrRequest)
			}
		})
	}
}

func TestTargetIsKept(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"/", "/?", "/a?", "/a??b", "//", "//a", "//a/b?c=//d", "//a?", "/%2F%2f", "/a;b=c", "/ä", "/?q=a|b\"<>`{}^\\",
		"/%zz?%", "//%41%2f", "/a//b", "/..//.", "/:80", "//user@host:1/x",
	} {
		if got := requestURI(t, path); got != path {
			t.Errorf("target of %q = %q", path, got)
		}
	}
}

func requestURI(t *testing.T, path string) string {
	t.Helper()
	u, err := targetOf(path)
	if err != nil {
		t.Fatalf("targetOf(%q) = %v", path, err)
	}
	u.Scheme, u.Host = "http", "refill"
	return u.RequestURI()
}

func FuzzTarget(f *testing.F) {
	for _, s := range []string{"/", "//a?", "//%41", "/a#b", "/\x7f", "//a/|"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		u, err := targetOf(path)
		if err != nil {
			return
		}
		u.Scheme, u.Host = "http", "refill"
		if got := u.RequestURI(); got != path {
			t.Errorf("target of %q = %q", path, got)
		}
		if strings.ContainsAny(u.RequestURI(), " \r\n") {
			t.Errorf("target %q breaks the request line", path)
		}
	})
}

func TestSanitize(t *testing.T) {
	t.Parallel()
	kept := fields("accept", "*/*", "accept-language", "de", "x-tenant", "a", "forwarded", "for=x",
		"x-forwarded-host", "h", "x-forwarded-port", "1", "x-forwarded-prefix", "/p", "user-agent", "ua", "x-real-ipx", "1",
		"origin", "https://a.test")
	if d := cmp.Diff(kept, Sanitize(kept, nil)); d != "" {
		t.Error(d)
	}
	gone := []string{
		"authorization", "proxy-authorization", "cookie", "if-match", "if-none-match", "if-modified-since",
		"if-unmodified-since", "if-range", "range", "cache-control", "pragma", "connection", "proxy-connection",
		"keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "content-length", "expect", "host",
		"http2-settings", "x-forwarded-for", "x-real-ip", "x-request-id", "x-forwarded-client-cert", "traceparent",
		"tracestate", "b3", "x-b3-traceid", "x-envoy-external-address", "x-envoy-force-trace", "x-weir-refill",
		"x-weir-policy", ":path",
	}
	for _, name := range gone {
		if got := Sanitize(fields(name, "v"), nil); len(got) != 0 {
			t.Errorf("%s stays", name)
		}
	}
	in := fields("connection", "X-One, keep-alive", "x-one", "1", "connection", "x-two", "x-two", "2", "x-three", "3")
	if d := cmp.Diff(fields("x-three", "3"), Sanitize(in, nil)); d != "" {
		t.Errorf("fields that Connection nominates: %s", d)
	}
}

func TestSanitizeCookies(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		lines []string
		keep  []string
		want  []string
	}{
		{"none named", []string{"a=1; b=2"}, nil, nil},
		{"one named", []string{"a=1; b=2;c=3"}, []string{"b"}, []string{"b=2"}},
		{"order stays", []string{"a=1; b=2; a=3"}, []string{"b", "a"}, []string{"a=1; b=2; a=3"}},
		{"several lines", []string{"a=1", "b=2", "a=3"}, []string{"a"}, []string{"a=1", "a=3"}},
		{"none there", []string{"a=1"}, []string{"b"}, nil},
		{"case matters", []string{"A=1"}, []string{"a"}, nil},
		{"value with an equals sign", []string{"a=b=c"}, []string{"a"}, []string{"a=b=c"}},
		{"name as a value", []string{"x=a"}, []string{"a"}, nil},
		{"no value", []string{"a; b"}, []string{"a"}, []string{"a"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var in, want httpcache.Fields
			for _, line := range tt.lines {
				in = append(in, httpcache.Field{Name: "cookie", Value: line})
			}
			for _, line := range tt.want {
				want = append(want, httpcache.Field{Name: "cookie", Value: line})
			}
			got := Sanitize(in, tt.keep)
			if !slices.Equal(got, want) {
				t.Errorf("kept %v, want %v", got, want)
			}
			if again := Sanitize(got, tt.keep); !slices.Equal(again, got) {
				t.Errorf("sanitizing again gives %v", again)
			}
		})
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	var sni atomic.Value
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(204)
	}))
	s.TLS = &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		sni.Store(h.ServerName)
		return nil, nil
	}}
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	t.Cleanup(s.Close)
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate()) // for example.com
	addr := s.Listener.Addr().String()
	req := Request{Method: "GET", Scheme: "https", Authority: "example.com:8443", Path: "/"}

	f := fetcher(t, Options{Addr: addr, TLS: &tls.Config{RootCAs: pool}})
	if err := f.Do(t.Context(), req, &record{}); err != nil {
		t.Error(err)
	}
	if sni.Load() != "example.com" {
		t.Errorf("SNI = %v, want the authority's host", sni.Load())
	}
	other := req
	other.Authority = "b.test"
	if err := f.Do(t.Context(), other, &record{}); !errors.Is(err, ErrUnreachable) {
		t.Errorf("a certificate for another host: %v", err)
	}
	named := fetcher(t, Options{Addr: addr, TLS: &tls.Config{RootCAs: pool, ServerName: "example.com"}})
	if err := named.Do(t.Context(), other, &record{}); err != nil {
		t.Errorf("with the name configured: %v", err)
	}
	plain := req
	plain.Scheme = "http"
	if err := f.Do(t.Context(), plain, &record{}); !errors.Is(err, ErrRequest) || f.Possible("http") {
		t.Errorf("a request of scheme http over TLS: %v", err)
	}
	unknown := fetcher(t, Options{Addr: addr, TLS: &tls.Config{}})
	if err := unknown.Do(t.Context(), req, &record{}); !errors.Is(err, ErrUnreachable) {
		t.Errorf("a certificate of an unknown CA: %v", err)
	}
}

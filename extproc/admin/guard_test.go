package admin_test

import (
	"net/http/httptest"
	"testing"

	"github.com/weirproxy/weir/extproc/admin"
)

// TestGuard is the table of who may ask. Every case is tried on an order, on a
// question and on pprof: none is served unguarded.
func TestGuard(t *testing.T) {
	t.Parallel()
	local := admin.Options{Loopback: true, Log: quiet()}
	remote := admin.Options{Token: func() string { return "s3cret" }, Log: quiet()}
	bearer := map[string]string{"Authorization": "Bearer s3cret"}
	tests := []struct {
		name   string
		o      admin.Options
		host   string
		header map[string]string
		pass   bool
		status int
	}{
		{name: "loopback", o: local, host: "127.0.0.1:9004", pass: true},
		{name: "localhost", o: local, host: "localhost:9004", pass: true},
		{name: "localhost in capitals", o: local, host: "LocalHost", pass: true},
		{name: "IPv6", o: local, host: "[::1]:9004", pass: true},
		{name: "IPv6 without port", o: local, host: "[::1]", pass: true},
		{name: "rebound name", o: local, host: "evil.example:9004", status: 403},
		{name: "name that looks local", o: local, host: "127.0.0.1.evil.example", status: 403},
		{name: "no host", o: local, host: "", status: 403},
		{name: "own address", o: local, host: "192.0.2.7:9004", status: 403},

		{name: "typed into a browser", o: local, host: "localhost:9004",
			header: map[string]string{"Sec-Fetch-Site": "none"}, pass: true},
		{name: "own page", o: local, host: "localhost:9004",
			header: map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": "http://localhost:9004"}, pass: true},
		{name: "another page", o: local, host: "localhost:9004",
			header: map[string]string{"Sec-Fetch-Site": "cross-site"}, status: 403},
		{name: "another port's page", o: local, host: "localhost:9004",
			header: map[string]string{"Sec-Fetch-Site": "same-site"}, status: 403},
		{name: "origin", o: local, host: "localhost:9004",
			header: map[string]string{"Origin": "https://evil.example"}, status: 403},
		{name: "opaque origin", o: local, host: "localhost:9004",
			header: map[string]string{"Origin": "null"}, status: 403},

		{name: "token", o: remote, host: "weir.shop.svc:9004", header: bearer, pass: true},
		{name: "scheme in small letters", o: remote, host: "weir", pass: true,
			header: map[string]string{"Authorization": "bearer s3cret"}},
		{name: "no token", o: remote, host: "weir.shop.svc:9004", status: 401},
		{name: "wrong token", o: remote, host: "weir", status: 401,
			header: map[string]string{"Authorization": "Bearer s3cre"}},
		{name: "token without scheme", o: remote, host: "weir", status: 401,
			header: map[string]string{"Authorization": "s3cret"}},
		{name: "basic", o: remote, host: "weir", status: 401,
			header: map[string]string{"Authorization": "Basic s3cret"}},
		{name: "token, but another page", o: remote, host: "weir", status: 403,
			header: map[string]string{"Authorization": "Bearer s3cret", "Origin": "https://evil.example"}},
	}
	targets := []struct{ method, path string }{
		{"GET", "/v1/status"}, {"POST", "/v1/invalidate"}, {"GET", "/debug/pprof/cmdline"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, target := range targets {
				r := httptest.NewRequestWithContext(t.Context(), target.method, "http://x"+target.path, nil)
				r.Host = tt.host
				for name, value := range tt.header {
					r.Header.Set(name, value)
				}
				w := httptest.NewRecorder()
				admin.New(&fake{}, tt.o).ServeHTTP(w, r)
				guarded := w.Code == 401 || w.Code == 403
				if guarded == tt.pass || guarded && w.Code != tt.status {
					t.Errorf("%s %s: status %d, want pass %v or %d", target.method, target.path, w.Code,
						tt.pass, tt.status)
				}
				if w.Code == 401 && w.Header().Get("WWW-Authenticate") == "" {
					t.Errorf("%s: no WWW-Authenticate", target.path)
				}
			}
		})
	}
}

func TestEmptyTokenOpensNothing(t *testing.T) {
	t.Parallel()
	o := admin.Options{Token: func() string { return "" }, Log: quiet()}
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/v1/status", nil)
	r.Header.Set("Authorization", "Bearer ")
	w := httptest.NewRecorder()
	admin.New(&fake{}, o).ServeHTTP(w, r)
	if w.Code != 401 {
		t.Errorf("status %d, want 401", w.Code)
	}
}

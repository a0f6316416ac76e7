package httpcache

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// RFC 9111 §4.4.
func TestInvalidatedBy(t *testing.T) {
	t.Parallel()
	self := Target{"https", "a.test", "/dir/x?y=1"}
	for _, tt := range []struct {
		name  string
		lines []string
		want  []Target
	}{
		{"the target alone", nil, []Target{self}},
		{"Location, a path", []string{"Location: /new"}, []Target{self, {"https", "a.test", "/new"}}},
		{"Location, relative", []string{"Location: new?q"}, []Target{self, {"https", "a.test", "/dir/new?q"}}},
		{"Location, dots", []string{"Location: ../new/./"}, []Target{self, {"https", "a.test", "/new/"}}},
		{"Location, absolute", []string{"Location: https://A.test:443/new"}, []Target{self, {"https", "a.test", "/new"}}},
		{"Location, without a scheme", []string{"Location: //a.test/new"}, []Target{self, {"https", "a.test", "/new"}}},
		{"Location, a query alone", []string{"Location: ?z"}, []Target{self, {"https", "a.test", "/dir/x?z"}}},
		{"an empty query is a query", []string{"Location: /new?"}, []Target{self, {"https", "a.test", "/new?"}}},
		{"the fragment goes", []string{"Location: /new#part"}, []Target{self, {"https", "a.test", "/new"}}},
		{"no path", []string{"Location: https://a.test"}, []Target{self, {"https", "a.test", "/"}}},
		{"percent-encoding stays", []string{"Location: /a%2Fb%20c"}, []Target{self, {"https", "a.test", "/a%2Fb%20c"}}},
		{"Content-Location", []string{"Content-Location: /new"}, []Target{self, {"https", "a.test", "/new"}}},
		{"both", []string{"Content-Location: /c", "Location: /l"},
			[]Target{self, {"https", "a.test", "/l"}, {"https", "a.test", "/c"}}},
		{"both the same", []string{"Content-Location: /c", "Location: /c"}, []Target{self, {"https", "a.test", "/c"}}},
		{"the target itself", []string{"Content-Location: x?y=1"}, []Target{self}},

		{"another host", []string{"Content-Location: https://b.test/x", "Location: //b.test/"}, []Target{self}},
		{"another scheme", []string{"Location: http://a.test/new"}, []Target{self}},
		{"another port", []string{"Location: https://a.test:8443/new"}, []Target{self}},
		{"a host that ends like ours", []string{"Location: https://xa.test/"}, []Target{self}},
		{"our host as user", []string{"Location: https://a.test@b.test/"}, []Target{self}},
		{"no URI", []string{"Location: https://a.test:x/", "Content-Location: %zz"}, []Target{self}},
		{"another kind of URI", []string{"Location: mailto:x@a.test"}, []Target{self}},
		{"empty", []string{"Location:", "Content-Location:  "}, []Target{self}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			req := &Request{Method: "POST", Scheme: "HTTPS", Authority: "A.Test:443", Path: "/dir/x?y=1"}
			if diff := cmp.Diff(tt.want, InvalidatedBy(req, ok(tt.lines...))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// RFC 9111 §4.4, RFC 9110 §9.2.1.
func TestInvalidatedByMethodAndStatus(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "M-SEARCH", "MKCOL", "post", "get", "X"} {
		for status := range 700 {
			got := InvalidatedBy(&Request{Method: method, Scheme: "http", Authority: "a.test", Path: "/"}, response(status))
			if want := status >= 200 && status < 400; want != (len(got) == 1) {
				t.Errorf("%s → %d: %v", method, status, got)
			}
		}
	}
	for _, method := range []string{"GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "SEARCH", "QUERY", "REPORT"} {
		if got := InvalidatedBy(&Request{Method: method, Path: "/"}, ok("Location: /x")); got != nil {
			t.Errorf("%s: %v", method, got)
		}
	}
}

func TestInvalidatedByOddTargets(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ scheme, authority, path string }{
		{"http", "a.test", "*"}, {"http", "a.test", ""}, {"http", "a.test", "/%zz"}, {"http", "", "/"},
		{"http", "[::1]", "//double/slash"},
	} {
		req := &Request{Method: "POST", Scheme: tt.scheme, Authority: tt.authority, Path: tt.path}
		got := InvalidatedBy(req, ok("Location: //b.test/"))
		if want := []Target{{tt.scheme, tt.authority, tt.path}}; !cmp.Equal(got, want) {
			t.Errorf("%v: %v", tt, got)
		}
	}
}

func TestNormalAuthority(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ scheme, in, want string }{
		{"http", "A.Test:80", "a.test"}, {"https", "a.test:443", "a.test"}, {"HTTP", "a.test:80", "a.test"},
		{"http", "a.test:443", "a.test:443"}, {"https", "a.test:80", "a.test:80"}, {"http", "a.test:8080", "a.test:8080"},
		{"http", "a.test:", "a.test"}, {"http", "[::80]", "[::80]"}, {"http", "[::1]:80", "[::1]"}, {"", "a:80", "a:80"},
	} {
		wantEqual(t, tt.scheme+" "+tt.in, normalAuthority(tt.scheme, tt.in), tt.want)
	}
}

func TestTargetOf(t *testing.T) {
	t.Parallel()
	req := &Request{Method: "GET", Scheme: "HTTPS", Authority: "A.Test:443", Path: "/X?y"}
	wantEqual(t, "TargetOf", TargetOf(req).String(), "https://a.test/X?y")
}

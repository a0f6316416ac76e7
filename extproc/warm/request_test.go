package warm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirproxy/weir/extproc/httpcache"
)

// wantError wants an error that contains all of want; none wants no error.
func wantError(t *testing.T, name string, err error, want []string) {
	t.Helper()
	if len(want) == 0 && err != nil {
		t.Errorf("%s: %v", name, err)
	}
	for _, w := range want {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("%s: error %v does not say %q", name, err, w)
		}
	}
}

func TestParseURL(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in      string
		want    Request
		wantErr string
	}{
		{in: "https://shop.example/a?b=1", want: Request{Scheme: "https", Authority: "shop.example", Path: "/a?b=1"}},
		{in: "http://shop.example", want: Request{Scheme: "http", Authority: "shop.example", Path: "/"}},
		{in: "http://shop.example?q", want: Request{Scheme: "http", Authority: "shop.example", Path: "/?q"}},
		{in: "http://[::1]:8/a#b", want: Request{Scheme: "http", Authority: "[::1]:8", Path: "/a"}},
		// The bytes of the path are the key's: nothing is decoded, escaped or cleaned.
		{in: "http://a/%7Ex/../|b//c;d?e=%2f", want: Request{Scheme: "http", Authority: "a", Path: "/%7Ex/../|b//c;d?e=%2f"}},
		{in: "HTTP://A.example/", want: Request{Scheme: "http", Authority: "A.example", Path: "/"}},
		{in: "/a", wantErr: "absolute"},
		{in: "ftp://a/", wantErr: "http or https"},
		{in: "http:///a", wantErr: "absolute"},
		{in: "http://user:secret@a/", wantErr: "no user"},
		{in: "http://a/%zz", wantErr: "absolute"},
	}
	for _, tt := range tests {
		got, err := ParseURL(tt.in)
		if tt.wantErr != "" {
			wantError(t, tt.in, err, []string{tt.wantErr})
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error repeats a password: %v", err)
			}
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", tt.in, err, diff)
		}
	}
}

func TestParseFile(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in string
		want     []Request
		wantErr  []string
	}{
		{name: "empty"},
		{name: "URLs", in: "# hot\nhttps://shop.example/a?b=1\n\n   \nhttp://blog.example\r\n", want: []Request{
			{Scheme: "https", Authority: "shop.example", Path: "/a?b=1"},
			{Scheme: "http", Authority: "blog.example", Path: "/"}}},
		{name: "headers", in: "http://a/1\n  Accept-Encoding: gzip\n\tX-Tenant:  t1 \nhttp://a/2\n", want: []Request{
			{Scheme: "http", Authority: "a", Path: "/1", Header: httpcache.Fields{
				{Name: "accept-encoding", Value: "gzip"}, {Name: "x-tenant", Value: "t1"}}},
			{Scheme: "http", Authority: "a", Path: "/2"}}},
		{name: "policies", in: "http://a/ policy=shop/news\thttp://x\nhttp://a/ route=r  policy=shop/x\n",
			wantErr: []string{`urls:1: "http://x"`}},
		{name: "policy and route", in: "http://a/ route=r  policy=shop/x\n",
			want: []Request{{Scheme: "http", Authority: "a", Path: "/", Policy: "shop/x", Route: "r"}}},
		{name: "faults", in: "/relative\nftp://a/\n http://a/\nhttp://a/\n  nonsense\n  x: \x01\n", wantErr: []string{
			"urls:1: ", "urls:2: ", "urls:3: a header without a URL", "urls:5: ", "urls:6: "}},
		{name: "too many headers", in: "http://a/\n" + strings.Repeat(" a: b\n", maxHeaders+1),
			wantErr: []string{"urls:34: more than 32"}},
		{name: "too many URLs", in: strings.Repeat("http://a/\n", MaxRequests+1),
			wantErr: []string{"urls:100001: more than"}},
		{name: "too large", in: strings.Repeat("\n", MaxFileBytes+1), wantErr: []string{"larger"}},
		{name: "a long line", in: "http://a/" + strings.Repeat("x", 1<<20) + "\n",
			want: []Request{{Scheme: "http", Authority: "a", Path: "/" + strings.Repeat("x", 1<<20)}}},
	}
	for _, tt := range tests {
		got, err := ParseFile("urls", []byte(tt.in))
		wantError(t, tt.name, err, tt.wantErr)
		if diff := cmp.Diff(tt.want, got); tt.wantErr == nil && diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func FuzzParseFile(f *testing.F) {
	f.Add([]byte("http://a/1 policy=shop/x\n  Accept-Encoding: gzip\n# x\nhttps://[::1]:8/?y#z\n"))
	f.Add([]byte(" x: y\nhttp://a?b route=r x"))
	f.Add([]byte("http://\x00/\r\n\thttp://u:p@a/"))
	f.Fuzz(func(t *testing.T, data []byte) {
		requests, err := ParseFile("urls", data)
		for i := range requests {
			r := &requests[i]
			again, err := ParseURL(r.URL())
			if err != nil || again.Path != r.Path || again.Authority != r.Authority || r.Path[0] != '/' {
				t.Errorf("%q reads as %+v, then as %+v (%v)", r.URL(), r, again, err)
			}
		}
		if len(requests) > MaxRequests || err == nil && len(data) > MaxFileBytes {
			t.Error("over the bounds")
		}
	})
}

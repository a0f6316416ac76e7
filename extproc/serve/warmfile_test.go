package serve

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirproxy/weir/extproc/httpcache"
)

func TestParseWarmFile(t *testing.T) {
	t.Parallel()
	type request struct {
		URL    string
		Header httpcache.Fields
	}
	tests := []struct {
		name, in string
		want     []request
		wantErr  []string
	}{
		{name: "empty"},
		{name: "URLs", in: "# hot\nhttps://shop.example/a?b=1\n\nhttp://blog.example\r\n",
			want: []request{{URL: "https://shop.example/a?b=1"}, {URL: "http://blog.example"}}},
		{name: "headers", in: "http://a/1\n  Accept-Encoding: gzip\n\tX-Tenant: t1\nhttp://a/2\n",
			want: []request{{"http://a/1", httpcache.Fields{
				{Name: "accept-encoding", Value: "gzip"}, {Name: "x-tenant", Value: "t1"}}}, {URL: "http://a/2"}}},
		{name: "faults", in: "/relative\nftp://a/\n http://a/\nhttp://a/\n  nonsense\n",
			wantErr: []string{"urls:1: ", "urls:2: ", "urls:3: a header without a URL", "urls:5: header"}},
	}
	for _, tt := range tests {
		requests, err := parseWarmFile("urls", []byte(tt.in))
		wantError(t, err, tt.wantErr)
		var got []request
		for _, r := range requests {
			got = append(got, request{r.url.String(), r.header})
		}
		if diff := cmp.Diff(tt.want, got); tt.wantErr == nil && diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func FuzzParseWarmFile(f *testing.F) {
	f.Add([]byte("http://a/1\n  Accept-Encoding: gzip\n# x\nhttps://[::1]:8/\n"))
	f.Add([]byte(" x: y\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		requests, err := parseWarmFile("urls", data)
		for _, r := range requests {
			if r.url.Host == "" {
				t.Errorf("a URL without a host: %q", r.url)
			}
		}
		if len(requests) > maxWarmURLs || err == nil && len(data) > maxWarmBytes {
			t.Error("over the bounds")
		}
	})
}

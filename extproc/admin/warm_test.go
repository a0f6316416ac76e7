package admin_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirproxy/weir/extproc/admin"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/warm"
)

func TestWarmRequests(t *testing.T) {
	t.Parallel()
	gzip := httpcache.Fields{{Name: "accept-encoding", Value: "gzip"}}
	tests := []struct {
		name    string
		in      admin.WarmRequest
		want    []warm.Request
		wantErr string
	}{
		{name: "URLs", in: admin.WarmRequest{URLs: []string{"http://a/1", "https://b"},
			Headers: []string{"Accept-Encoding: gzip"}, Policy: "shop/catalog", Route: "r"}, want: []warm.Request{
			{Scheme: "http", Authority: "a", Path: "/1", Header: gzip, Policy: "shop/catalog", Route: "r"},
			{Scheme: "https", Authority: "b", Path: "/", Header: gzip, Policy: "shop/catalog", Route: "r"}}},
		{name: "a list and a URL", in: admin.WarmRequest{List: "http://a/ route=x\n  A: 1\n", URLs: []string{"http://b/"},
			Route: "y"}, want: []warm.Request{
			{Scheme: "http", Authority: "a", Path: "/", Header: httpcache.Fields{{Name: "a", Value: "1"}}, Route: "x"},
			{Scheme: "http", Authority: "b", Path: "/", Route: "y"}}},
		{name: "nothing", wantErr: "no URLs"},
		{name: "an empty list", in: admin.WarmRequest{List: "# nothing\n"}, wantErr: "no URLs"},
		{name: "relative", in: admin.WarmRequest{URLs: []string{"/a"}}, wantErr: "absolute"},
		{name: "a line", in: admin.WarmRequest{List: "http://a/\nx\n"}, wantErr: "list:2:"},
		{name: "header", in: admin.WarmRequest{URLs: []string{"http://a/"}, Headers: []string{"x"}}, wantErr: "header field"},
		{name: "too many", in: admin.WarmRequest{URLs: make100k(), List: "http://a/\n"}, wantErr: "100001"},
	}
	for _, tt := range tests {
		got, err := tt.in.Requests()
		if tt.wantErr != "" {
			if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
				t.Errorf("%s: error %v, want %q", tt.name, err, tt.wantErr)
			}
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, diff)
		}
	}
}

func make100k() []string {
	urls := make([]string, warm.MaxRequests)
	for i := range urls {
		urls[i] = "http://a/"
	}
	return urls
}

func TestWarmJobs(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{"": "12", "?job=2": "2"} {
		resp := ask(t, &fake{}, "GET", "/v1/warm"+query, "", "")
		var got admin.WarmJobs
		if err := json.Unmarshal(resp.Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		ids := ""
		for _, j := range got.Jobs {
			ids += j.ID
		}
		if ids != want {
			t.Errorf("%s: jobs %q, want %q", query, ids, want)
		}
	}
	resp := ask(t, &fake{}, "GET", "/v1/warm?job=7", "", "")
	if p := problemOf(t, resp); resp.Code != 404 || !strings.Contains(p.Error, "no warm-up job 7") {
		t.Errorf("%d %+v", resp.Code, p)
	}
}

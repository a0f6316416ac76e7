package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirproxy/weir/extproc/admin"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/warm"
)

// fake is a Backend that keeps what it was asked.
type fake struct {
	asked any
	err   error
}

func (f *fake) Status() admin.Status {
	f.asked = "status"
	return admin.Status{Version: "v1", State: "ready"}
}

func (f *fake) Explain(_ context.Context, r admin.ExplainRequest) (any, error) {
	f.asked = []any{r.Request(), r.Response, r.Policy, r.Route}
	return map[string]string{"decision": "hit"}, f.err
}

func (f *fake) Entries(_ context.Context, r admin.EntriesRequest) (admin.EntriesPage, error) {
	f.asked = r
	return admin.EntriesPage{Entries: []admin.Entry{}, Next: "c2"}, f.err
}

func (f *fake) Top(_ context.Context, r admin.TopRequest) (admin.TopResult, error) {
	f.asked = r
	return admin.TopResult{Keys: []admin.HotKey{}}, f.err
}

func (f *fake) Warm(_ context.Context, r admin.WarmRequest) (admin.WarmResult, error) {
	f.asked = r
	return admin.WarmResult{Job: "1", Total: len(r.URLs)}, f.err
}

func (f *fake) WarmJobs() []warm.Job {
	f.asked = "jobs"
	return []warm.Job{{ID: "1"}, {ID: "2", Total: 5}}
}

func (f *fake) Invalidate(_ context.Context, r admin.InvalidateRequest) (admin.InvalidateResult, error) {
	f.asked = r
	return admin.InvalidateResult{InvalidateRequest: r, Position: 7, Covers: "this process only"}, f.err
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// ask sends one request to a handler on loopback, without a token.
func ask(t *testing.T, f *fake, method, target, contentType, body string) *httptest.ResponseRecorder {
	t.Helper()
	h := admin.New(f, admin.Options{Loopback: true, Log: quiet()})
	r := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1:9004"+target, strings.NewReader(body))
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// problem is the JSON of an error.
type problem struct{ Error, Hint string }

func problemOf(t *testing.T, resp *httptest.ResponseRecorder) problem {
	t.Helper()
	var p problem
	if err := json.Unmarshal(resp.Body.Bytes(), &p); err != nil || p.Error == "" {
		t.Fatalf("body %q is no JSON error (%v)", resp.Body, err)
	}
	return p
}

func TestRequestsReachTheBackend(t *testing.T) {
	t.Parallel()
	const json = "application/json"
	tests := []struct {
		name, method, target, contentType, body string
		want                                    any
	}{
		{"status", "GET", "/v1/status", "", "", "status"},
		{"entries", "GET", "/v1/entries", "", "", admin.EntriesRequest{Limit: 100}},
		{"entries filtered", "GET", "/v1/entries?limit=5&after=x&policy=shop/catalog&host=Shop.example", "", "",
			admin.EntriesRequest{Limit: 5, After: "x", Policy: "shop/catalog", Host: "shop.example"}},
		{"warm", "POST", "/v1/warm", json, `{"urls": ["http://a/", "http://b/"]}`,
			admin.WarmRequest{URLs: []string{"http://a/", "http://b/"}}},
		{"warm a list", "POST", "/v1/warm", json, `{"list": "http://a/\n", "urls": ["http://b/"], "headers": ["A: 1"],
			"policy": "shop/catalog", "route": "r"}`, admin.WarmRequest{List: "http://a/\n", URLs: []string{"http://b/"},
			Headers: []string{"A: 1"}, Policy: "shop/catalog", Route: "r"}},
		{"jobs", "GET", "/v1/warm", "", "", "jobs"},
		{"a job", "GET", "/v1/warm?job=2", "", "", "jobs"},
		{"top", "GET", "/v1/top", "", "", admin.TopRequest{Limit: 20}},
		{"top filtered", "GET", "/v1/top?limit=3&policy=shop/catalog", "", "",
			admin.TopRequest{Limit: 3, Policy: "shop/catalog"}},
		{"tag, hard by default", "POST", "/v1/invalidate", json, `{"by":"Tag","value":"p7","namespace":"shop"}`,
			admin.InvalidateRequest{By: "Tag", Value: "p7", Namespace: "shop", Mode: "Hard"}},
		{"charset", "POST", "/v1/invalidate", json + "; charset=utf-8", `{"by":"All","mode":"Soft"}`,
			admin.InvalidateRequest{By: "All", Mode: "Soft"}},
		{"policy is split", "POST", "/v1/invalidate", json, `{"by":"Policy","value":"shop/catalog"}`,
			admin.InvalidateRequest{By: "Policy", Value: "catalog", Namespace: "shop", Mode: "Hard"}},
		{"policy beside namespace", "POST", "/v1/invalidate", json,
			`{"by":"Policy","value":"catalog","namespace":"shop"}`,
			admin.InvalidateRequest{By: "Policy", Value: "catalog", Namespace: "shop", Mode: "Hard"}},
		{"namespace as value", "POST", "/v1/invalidate", json, `{"by":"Namespace","value":"shop"}`,
			admin.InvalidateRequest{By: "Namespace", Namespace: "shop", Mode: "Hard"}},
		{"namespace", "POST", "/v1/invalidate", json, `{"by":"Namespace","namespace":"shop"}`,
			admin.InvalidateRequest{By: "Namespace", Namespace: "shop", Mode: "Hard"}},
		{"host", "POST", "/v1/invalidate", json, `{"by":"Host","value":"Shop.Example:8080"}`,
			admin.InvalidateRequest{By: "Host", Value: "shop.example:8080", Mode: "Hard"}},
		{"url", "POST", "/v1/invalidate", json, `{"by":"Url","value":"https://shop.example/a?b"}`,
			admin.InvalidateRequest{By: "Url", Value: "https://shop.example/a?b", Mode: "Hard"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := &fake{}
			resp := ask(t, f, tt.method, tt.target, tt.contentType, tt.body)
			if resp.Code != http.StatusOK {
				t.Fatalf("status %d: %v", resp.Code, problemOf(t, resp))
			}
			if diff := cmp.Diff(tt.want, f.asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			if got := resp.Header().Get("Cache-Control"); got != "no-store" {
				t.Errorf("Cache-Control %q, want no-store", got)
			}
		})
	}
}

func TestExplainReadsTheQuery(t *testing.T) {
	t.Parallel()
	tests := []struct {
		query string
		want  []any // request, response, policy, route
	}{
		{"url=https://shop.example/p%3Fa=1&method=HEAD&policy=shop/catalog&route=r&header=Accept-Encoding:%20gzip" +
			"&header=Cookie:a=b:c", []any{
			httpcache.Request{Method: "HEAD", Scheme: "https", Authority: "shop.example", Path: "/p?a=1",
				Header: httpcache.Fields{{Name: "accept-encoding", Value: "gzip"}, {Name: "cookie", Value: "a=b:c"}}},
			(*httpcache.Response)(nil), "shop/catalog", "r"}},
		{"url=http://a", []any{
			httpcache.Request{Method: "GET", Scheme: "http", Authority: "a", Path: "/"},
			(*httpcache.Response)(nil), "", ""}},
		{"url=http://a:8080/&status=404&response-header=Age:%201", []any{
			httpcache.Request{Method: "GET", Scheme: "http", Authority: "a:8080", Path: "/"},
			&httpcache.Response{Status: 404, Header: httpcache.Fields{{Name: "age", Value: "1"}}}, "", ""}},
		{"url=http://a/&response-header=Age:1", []any{
			httpcache.Request{Method: "GET", Scheme: "http", Authority: "a", Path: "/"},
			&httpcache.Response{Status: 200, Header: httpcache.Fields{{Name: "age", Value: "1"}}}, "", ""}},
	}
	for _, tt := range tests {
		f := &fake{}
		resp := ask(t, f, "GET", "/v1/explain?"+tt.query, "", "")
		if resp.Code != http.StatusOK {
			t.Errorf("%s: status %d", tt.query, resp.Code)
		}
		if diff := cmp.Diff(any(tt.want), f.asked); diff != "" {
			t.Errorf("%s: asked (-want +got):\n%s", tt.query, diff)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	const json = "application/json"
	tests := []struct {
		name, method, target, contentType, body string
		status                                  int
		want                                    string // in the error or the hint
	}{
		{"path", "GET", "/v2/status", "", "", 404, "/v1/status"},
		{"method", "POST", "/v1/status", "", "", 405, "use GET"},
		{"method of an order", "GET", "/v1/invalidate", "", "", 405, "use POST"},
		{"delete", "DELETE", "/v1/entries", "", "", 405, "use GET"},
		{"no content type", "POST", "/v1/invalidate", "", `{"by":"All"}`, 415, "application/json"},
		{"a form", "POST", "/v1/invalidate", "text/plain", `{"by":"All"}`, 415, "application/json"},
		{"unknown field", "POST", "/v1/invalidate", json, `{"by":"All","hard":true}`, 400, `unknown field "hard"`},
		{"unknown field of warm", "POST", "/v1/warm", json, `{"url":"http://a/"}`, 400, `unknown field "url"`},
		{"empty", "POST", "/v1/invalidate", json, "", 400, "empty"},
		{"two values", "POST", "/v1/invalidate", json, `{"by":"All"} {"by":"All"}`, 400, "more than one"},
		{"not JSON", "POST", "/v1/invalidate", json, `by=All`, 400, "invalid character"},
		{"too large", "POST", "/v1/invalidate", json, `{"by":"` + strings.Repeat("x", 1<<20) + `"}`, 413, "1 MiB"},
		{"list too large", "POST", "/v1/warm", json, `{"list":"` + strings.Repeat("x", 32<<20) + `"}`, 413, "32 MiB"},
		{"method of warm", "PUT", "/v1/warm", "", "", 405, "use GET, POST"},
		{"mistyped job", "GET", "/v1/warm?id=1", "", "", 400, "known are job"},
		{"top limit", "GET", "/v1/top?limit=1001", "", "", 400, "1 to 1000"},
		{"mistyped top", "GET", "/v1/top?n=5", "", "", 400, "limit, policy"},
		{"by what", "POST", "/v1/invalidate", json, `{"by":"url","value":"http://a/"}`, 400, "Url"},
		{"no by", "POST", "/v1/invalidate", json, `{}`, 400, "Namespace or All"},
		{"mode", "POST", "/v1/invalidate", json, `{"by":"All","mode":"hard"}`, 400, "Hard or Soft"},
		{"all of a namespace", "POST", "/v1/invalidate", json, `{"by":"All","namespace":"shop"}`, 400, "by Namespace"},
		{"no value", "POST", "/v1/invalidate", json, `{"by":"Url"}`, 400, "wants a value"},
		{"relative URL", "POST", "/v1/invalidate", json, `{"by":"Url","value":"/a"}`, 400, "absolute"},
		{"other scheme", "POST", "/v1/invalidate", json, `{"by":"Url","value":"ftp://a/"}`, 400, "absolute"},
		{"URL as host", "POST", "/v1/invalidate", json, `{"by":"Host","value":"http://a/"}`, 400, "no host"},
		{"tag alone", "POST", "/v1/invalidate", json, `{"by":"Tag","value":"p7"}`, 400, "namespace"},
		{"policy alone", "POST", "/v1/invalidate", json, `{"by":"Policy","value":"catalog"}`, 400, "shop/catalog"},
		{"policy elsewhere", "POST", "/v1/invalidate", json,
			`{"by":"Policy","value":"shop/catalog","namespace":"blog"}`, 400, "names no policy"},
		{"two namespaces", "POST", "/v1/invalidate", json,
			`{"by":"Namespace","value":"shop","namespace":"blog"}`, 400, "differ"},
		{"limit", "GET", "/v1/entries?limit=0", "", "", 400, "1 to 1000"},
		{"limit too high", "GET", "/v1/entries?limit=1001", "", "", 400, "1 to 1000"},
		{"mistyped filter", "GET", "/v1/entries?hosts=a", "", "", 400, "limit, after, policy, host"},
		{"no url", "GET", "/v1/explain", "", "", 400, "absolute"},
		{"mistyped explain", "GET", "/v1/explain?url=http://a/&headers=x", "", "", 400, "unknown parameter"},
		{"status", "GET", "/v1/explain?url=http://a/&status=99", "", "", 400, "200 to 599"},
		{"response header", "GET", "/v1/explain?url=http://a/&response-header=x", "", "", 400, "header"},
		{"header", "GET", "/v1/explain?url=http://a/&header=nonsense", "", "", 400, "Accept-Encoding: gzip"},
		{"header of two lines", "GET", "/v1/explain?url=http://a/&header=a:b%0d%0ac:d", "", "", 400, "header"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := &fake{}
			resp := ask(t, f, tt.method, tt.target, tt.contentType, tt.body)
			p := problemOf(t, resp)
			if resp.Code != tt.status || !strings.Contains(p.Error+" "+p.Hint, tt.want) {
				t.Errorf("%d %+v, want %d and %q", resp.Code, p, tt.status, tt.want)
			}
			if f.asked != nil {
				t.Errorf("the backend was asked: %v", f.asked)
			}
		})
	}
}

func TestErrorsOfTheBackend(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		err    error
		status int
		want   problem
	}{
		{"told", &admin.Error{Status: 404, Message: "no such policy", Hint: "see /v1/status"}, 404,
			problem{"no such policy", "see /v1/status"}},
		{"untold", errors.New("disk on fire"), 500, problem{"disk on fire", ""}},
	}
	for _, tt := range tests {
		resp := ask(t, &fake{err: tt.err}, "GET", "/v1/entries", "", "")
		if got := problemOf(t, resp); resp.Code != tt.status || got != tt.want {
			t.Errorf("%s: %d %+v, want %d %+v", tt.name, resp.Code, got, tt.status, tt.want)
		}
	}
}

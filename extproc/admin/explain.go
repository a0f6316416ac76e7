package admin

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/httpcache"
)

// ExplainRequest is the query of GET /v1/explain: what would become of this
// request?
type ExplainRequest struct {
	Method string
	URL    *url.URL
	Header httpcache.Fields
	// Response is what the origin would answer; nil leaves that open.
	Response *httpcache.Response
	// Policy (namespace/name) and Route say which policy applies; both may be left
	// empty where there is only one.
	Policy, Route string
}

// ParseExplain reads the query parameters of GET /v1/explain.
func ParseExplain(q url.Values) (ExplainRequest, error) {
	r := ExplainRequest{Method: http.MethodGet, Policy: q.Get("policy"), Route: q.Get("route")}
	err := knownParameters(q, "url", "method", "header", "policy", "route", "status", "response-header")
	if err != nil {
		return r, err
	}
	if m := q.Get("method"); m != "" {
		r.Method = m
	}
	if r.URL, err = parseURL(q.Get("url")); err != nil {
		return r, err
	}
	if r.Header, err = parseHeaders(q["header"]); err != nil {
		return r, err
	}
	r.Response, err = parseResponse(q.Get("status"), q["response-header"])
	return r, err
}

// Request returns the request as Envoy would show it.
func (r *ExplainRequest) Request() httpcache.Request { return RequestOf(r.Method, r.URL, r.Header) }

// RequestOf returns a request for the URL as Envoy would show it.
func RequestOf(method string, u *url.URL, header httpcache.Fields) httpcache.Request {
	return httpcache.Request{Method: method, Scheme: u.Scheme, Authority: u.Host, Path: u.RequestURI(), Header: header}
}

func parseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, BadRequest("such as https://shop.example/products?id=7", "%q is no absolute URL", s)
	}
	return u, nil
}

func parseHeaders(lines []string) (httpcache.Fields, error) {
	var fields httpcache.Fields
	for _, line := range lines {
		f, err := ParseHeader(line)
		if err != nil {
			return nil, err
		}
		fields = append(fields, f)
	}
	return fields, nil
}

// ParseHeader reads "Name: value".
func ParseHeader(line string) (httpcache.Field, error) {
	name, value, ok := strings.Cut(line, ":")
	name = strings.ToLower(strings.TrimSpace(name))
	if !ok || name == "" || strings.ContainsAny(name, " \t\r\n") || strings.ContainsAny(value, "\r\n") {
		return httpcache.Field{}, BadRequest(`such as "Accept-Encoding: gzip"`, "header %q", line)
	}
	return httpcache.Field{Name: name, Value: strings.TrimSpace(value)}, nil
}

// parseResponse returns nil unless a part of the answer is given.
func parseResponse(status string, header []string) (*httpcache.Response, error) {
	if status == "" && len(header) == 0 {
		return nil, nil
	}
	r := &httpcache.Response{Status: http.StatusOK}
	if status != "" {
		n, err := strconv.Atoi(status)
		if err != nil || n < 200 || n > 599 {
			return nil, BadRequest("want a number from 200 to 599", "status %q", status)
		}
		r.Status = n
	}
	var err error
	r.Header, err = parseHeaders(header)
	return r, err
}

// FindPolicy returns the binding that a request falls under: that of the policy
// (namespace/name) or route given, or the only one there is. Nil without an
// error means that no policy applies.
func FindPolicy(set *cachepolicy.Set, policy, route string) (*cachepolicy.Binding, error) {
	if policy != "" || route != "" {
		binding, ok := set.Find(policy, route)
		if ok || policy == "" {
			return binding, nil // a route without a policy is a fact, not a fault
		}
		return nil, &Error{Status: http.StatusNotFound, Message: "no policy " + policy, Hint: "see /v1/status"}
	}
	var only *cachepolicy.Binding
	for binding := range set.Bindings() {
		if only != nil && only.Policy != binding.Policy {
			return nil, BadRequest("add policy=namespace/name or route=name", "there are several policies")
		}
		only = binding
	}
	return only, nil
}

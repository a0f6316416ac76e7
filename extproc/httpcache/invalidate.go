package httpcache

import (
	"net/url"
	"slices"
	"strings"
)

// Target is a URI whose stored responses are invalid now.
type Target struct {
	Scheme    string // lower case
	Authority string // lower case, without the scheme's default port
	Path      string // path and query
}

// IsUnsafe reports whether a method is not known to be safe (RFC 9110 §9.2.1 and
// the methods registered as safe): its success invalidates.
func IsUnsafe(method string) bool {
	switch method {
	case "GET", "HEAD", "OPTIONS", "TRACE", "PRI", "PROPFIND", "QUERY", "REPORT", "SEARCH":
		return false
	}
	return true
}

// InvalidatedBy returns the URIs that the answer to a request invalidates
// (RFC 9111 §4.4): after a non-error answer to an unsafe method the target URI,
// and those of Location and Content-Location that have the same origin. Relative
// references are resolved; fragments are dropped. At most three, all different.
func InvalidatedBy(req *Request, resp *Response) []Target {
	if !IsUnsafe(req.Method) || resp.Status < 200 || resp.Status > 399 {
		return nil
	}
	self := TargetOf(req)
	targets := []Target{self}
	base, err := url.ParseRequestURI(req.Path)
	if err != nil || !strings.HasPrefix(req.Path, "/") {
		return targets // such as "*": nothing relative can be resolved against it
	}
	base.Scheme, base.Host = self.Scheme, self.Authority
	for _, name := range [...]string{"location", "content-location"} {
		t, ok := resolve(base, resp.Header.Get(name))
		if ok && t.Scheme == self.Scheme && t.Authority == self.Authority && !slices.Contains(targets, t) {
			targets = append(targets, t)
		}
	}
	return targets
}

// resolve resolves a reference against the target URI (RFC 9110 §8.7, §10.2.2).
func resolve(base *url.URL, reference string) (Target, bool) {
	reference = trimOWS(reference)
	if reference == "" {
		return Target{}, false
	}
	u, err := base.Parse(reference)
	if err != nil || u.Opaque != "" {
		return Target{}, false
	}
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	if u.RawQuery != "" || u.ForceQuery {
		path += "?" + u.RawQuery
	}
	return Target{Scheme: u.Scheme, Authority: normalAuthority(u.Scheme, u.Host), Path: path}, true
}

// normalAuthority returns an authority in lower case and without the default
// port of the scheme (RFC 9110 §4.2.3).
func normalAuthority(scheme, authority string) string {
	authority = strings.ToLower(authority)
	switch strings.ToLower(scheme) {
	case "http":
		authority = strings.TrimSuffix(authority, ":80")
	case "https":
		authority = strings.TrimSuffix(authority, ":443")
	}
	return strings.TrimSuffix(authority, ":")
}

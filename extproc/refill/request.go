package refill

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/weirproxy/weir/extproc/httpcache"
)

// TokenHeader is the request header field that marks a fetch as weir's own.
const TokenHeader = "x-weir-refill"

// Request is what to fetch: the request that triggered the fetch, as Envoy showed
// it, to be sent without what belongs to its client (see Sanitize).
type Request struct {
	Method    string // GET, or HEAD
	Scheme    string // of the client's request: the origin is told by X-Forwarded-Proto
	Authority string
	Path      string // path and query as received
	Header    httpcache.Fields
	// Cookies are the names of the cookies that stay: those the policy's key holds.
	Cookies []string
	// Validators make the request conditional (If-None-Match, If-Modified-Since).
	Validators httpcache.Fields
}

// Possible reports whether requests with this scheme can be fetched: an entrance
// with TLS is one for https only; a plain one serves both.
func (f *Fetcher) Possible(scheme string) bool {
	return scheme == "https" || scheme == "http" && f.opts.TLS == nil
}

// build makes the HTTP request. Its token is minted last: it lives shortly.
func (f *Fetcher) build(ctx context.Context, req Request) (*http.Request, error) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		return nil, fmt.Errorf("%w: method %q", ErrRequest, req.Method)
	}
	if !f.Possible(req.Scheme) {
		return nil, fmt.Errorf("%w: scheme %q", ErrRequest, req.Scheme)
	}
	if req.Authority == "" || !httpguts.ValidHostHeader(req.Authority) {
		return nil, fmt.Errorf("%w: authority %q", ErrRequest, req.Authority)
	}
	target, err := targetOf(req.Path)
	if err != nil {
		return nil, err
	}
	target.Scheme, target.Host = "http", "refill" // one pool of connections
	if f.opts.TLS != nil {
		target.Scheme, target.Host = "https", req.Authority // for SNI
	}
	h, err := headerOf(Sanitize(req.Header, req.Cookies), req.Validators)
	if err != nil {
		return nil, err
	}
	h.Set("X-Forwarded-Proto", req.Scheme)
	if f.opts.Tokens != nil {
		h.Set(TokenHeader, f.opts.Tokens.Mint(req.Method, req.Authority, req.Path, time.Now()))
	}
	out := &http.Request{
		Method: req.Method, URL: target, Host: req.Authority, Header: h,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	return out.WithContext(ctx), nil
}

// headerOf returns the header with all fields and, in place of any of the same
// name, the validators.
func headerOf(fields, validators httpcache.Fields) (http.Header, error) {
	h := make(http.Header, len(fields)+len(validators)+3)
	for _, f := range slices.Concat(fields, validators) {
		if !httpguts.ValidHeaderFieldName(f.Name) || !httpguts.ValidHeaderFieldValue(f.Value) {
			return nil, fmt.Errorf("%w: field %q", ErrRequest, f.Name)
		}
		h.Add(f.Name, f.Value)
	}
	if h["User-Agent"] == nil {
		h.Set("User-Agent", "") // keeps net/http from inventing one
	}
	return h, nil
}

// targetOf returns a URL whose request target is path, byte for byte: the key was
// made of it and the token is bound to it.
func targetOf(path string) (*url.URL, error) {
	if !strings.HasPrefix(path, "/") {
		return nil, fmt.Errorf("%w: path does not begin with a slash", ErrRequest)
	}
	for i := range len(path) {
		if c := path[i]; c <= ' ' || c == 0x7f || c == '#' {
			return nil, fmt.Errorf("%w: path has the byte %#x at %d", ErrRequest, c, i)
		}
	}
	if !strings.HasPrefix(path, "//") {
		return &url.URL{Opaque: path}, nil
	}
	// net/url would take an opaque part that begins so for an authority.
	raw, query, hasQuery := strings.Cut(path, "?")
	plain, err := url.PathUnescape(raw)
	u := &url.URL{Path: plain, RawPath: raw, RawQuery: query, ForceQuery: hasQuery && query == ""}
	if err != nil || u.EscapedPath() != raw {
		return nil, fmt.Errorf("%w: path begins with // and is not a valid URL path", ErrRequest)
	}
	return u, nil
}

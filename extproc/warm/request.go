package warm

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/weirproxy/weir/extproc/httpcache"
)

// Bounds of a list.
const (
	MaxFileBytes = 16 << 20
	MaxRequests  = 100_000
	maxHeaders   = 32
)

// Request is one URL to load, as a request for it would look.
type Request struct {
	Scheme, Authority, Path string // the path with its query, byte for byte
	Header                  httpcache.Fields
	// Policy (namespace/name) and Route say under what the URL falls; both may be
	// left empty where there is only one.
	Policy, Route string
}

// URL returns the URL.
func (r *Request) URL() string { return r.Scheme + "://" + r.Authority + r.Path }

// Cache returns the request as the caching rules see it.
func (r *Request) Cache() *httpcache.Request {
	return &httpcache.Request{
		Method: "GET", Scheme: r.Scheme, Authority: r.Authority, Path: r.Path, Header: r.Header,
	}
}

// ParseURL reads an absolute URL, http or https. Path and query stay as they are
// written: the key of a cached answer is made of just these bytes.
func ParseURL(s string) (Request, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil, u.Host == "", u.Scheme != "http" && u.Scheme != "https":
		return Request{}, fmt.Errorf("%q: want an absolute URL, http or https", s)
	case u.User != nil:
		return Request{}, fmt.Errorf("%q: no user and password: what is loaded is for everybody", u.Redacted())
	case !httpguts.ValidHostHeader(u.Host):
		return Request{}, fmt.Errorf("%q: %q is no host", s, u.Host)
	}
	s, _, _ = strings.Cut(s, "#")
	_, rest, _ := strings.Cut(s, "://")
	path := "/"
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		path = rest[i:]
		if path[0] == '?' {
			path = "/" + path
		}
	}
	return Request{Scheme: u.Scheme, Authority: u.Host, Path: path}, nil
}

// ParseFile reads a list: URLs, one a line, each with what it falls under if that
// has to be said, and its header fields in indented lines below it. Empty lines and
// those that begin with # are passed over.
//
//	https://shop.example/products
//	  Accept-Encoding: gzip
//	https://shop.example/news?page=1 policy=shop/news route=news
//
// Every fault is reported, with its line in the file of that name.
func ParseFile(name string, data []byte) ([]Request, error) {
	if len(data) > MaxFileBytes {
		return nil, fmt.Errorf("%s is larger than %d bytes", name, MaxFileBytes)
	}
	var requests []Request
	var faults []error
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, MaxFileBytes+1)
	for n := 1; lines.Scan(); n++ {
		if err := parseLine(&requests, lines.Text()); err != nil {
			faults = append(faults, fmt.Errorf("%s:%d: %w", name, n, err))
		}
	}
	return requests, errors.Join(faults...)
}

func parseLine(requests *[]Request, line string) error {
	words := strings.Fields(line)
	switch {
	case len(words) == 0, strings.HasPrefix(words[0], "#"):
		return nil
	case line[0] == ' ', line[0] == '\t':
		if len(*requests) == 0 {
			return errors.New("a header without a URL above it")
		}
		return (*requests)[len(*requests)-1].AddHeader(line)
	case len(*requests) == MaxRequests:
		return fmt.Errorf("more than %d URLs", MaxRequests)
	}
	r, err := ParseURL(words[0])
	if err != nil {
		return err
	}
	for _, word := range words[1:] {
		switch name, value, _ := strings.Cut(word, "="); name {
		case "policy":
			r.Policy = value
		case "route":
			r.Route = value
		default:
			return fmt.Errorf("%q: want policy=namespace/name or route=name after the URL", word)
		}
	}
	*requests = append(*requests, r)
	return nil
}

// AddHeader adds a field, given as "Name: value".
func (r *Request) AddHeader(line string) error {
	name, value, ok := strings.Cut(line, ":")
	f := httpcache.Field{Name: strings.ToLower(strings.TrimSpace(name)), Value: strings.TrimSpace(value)}
	switch {
	case !ok, !httpguts.ValidHeaderFieldName(f.Name), !httpguts.ValidHeaderFieldValue(f.Value):
		return fmt.Errorf(`%q: want a header field such as "Accept-Encoding: gzip"`, strings.TrimSpace(line))
	case len(r.Header) == maxHeaders:
		return fmt.Errorf("more than %d header fields", maxHeaders)
	}
	r.Header = append(r.Header, f)
	return nil
}

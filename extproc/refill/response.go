package refill

import (
	"net/http"
	"slices"
	"strings"

	"github.com/dunglas/httpsfv"

	"github.com/weirproxy/weir/extproc/httpcache"
)

// NeverStored reports whether an answer with this status, met by a detached
// fetch, says something about the fetch rather than about the resource:
// redirects, and demands for credentials that the fetch does not carry. 304 is
// none of them.
func NeverStored(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired,
		http.StatusNetworkAuthenticationRequired:
		return true
	case http.StatusNotModified:
		return false
	}
	return status >= 300 && status < 400
}

// serviceTime is the field that Envoy's router adds to every answer that came from
// an upstream, unless suppress_envoy_headers is set, and never to its own.
const serviceTime = "x-envoy-upstream-service-time"

// MadeByEnvoy reports whether an error was made by Envoy (no healthy upstream, no
// route, a timeout) and the origin said nothing. It can tell once any answer that
// this Fetcher got came from an upstream and said so; until then it reports false.
func (f *Fetcher) MadeByEnvoy(status int, fields httpcache.Fields) bool {
	return status >= 400 && f.marked.Load() && !fields.Has(serviceTime)
}

// fieldsOf returns the field lines of h, names in lower case and in order, the
// lines of each in the order received.
func fieldsOf(h http.Header) httpcache.Fields {
	names := make([]string, 0, len(h))
	lines := 0
	for name, values := range h {
		names = append(names, name)
		lines += len(values)
	}
	slices.Sort(names)
	fields := make(httpcache.Fields, 0, lines)
	for _, name := range names {
		for _, v := range h[name] {
			fields = append(fields, httpcache.Field{Name: strings.ToLower(name), Value: v})
		}
	}
	return fields
}

// undelimited reports whether the end of the body is only the end of the
// connection (RFC 9112 §6.3 item 8). Envoy never sends such an answer to an
// HTTP/1.1 request.
func undelimited(resp *http.Response) bool {
	return resp.ContentLength < 0 && len(resp.TransferEncoding) == 0 && resp.Request.Method != http.MethodHead
}

// looped reports whether Cache-Status (RFC 9211) says that weir answered from its
// store: the fetch did not get past the filter it was to pass by, as when
// replicas have different keys. To store that would renew nothing, and two
// replicas could refresh from each other for ever.
func looped(fields httpcache.Fields) bool {
	var lines []string
	for _, f := range fields {
		if f.Name == "cache-status" {
			lines = append(lines, f.Value)
		}
	}
	if len(lines) == 0 {
		return false
	}
	list, err := httpsfv.UnmarshalList(lines)
	if err != nil {
		return false
	}
	for _, member := range list {
		if item, ok := member.(httpsfv.Item); ok && isWeir(item.Value) {
			if hit, ok := item.Params.Get("hit"); ok && hit != false {
				return true
			}
		}
	}
	return false
}

func isWeir(name any) bool { return name == httpsfv.Token("weir") || name == "weir" }

package refill

import (
	"slices"
	"strings"

	"github.com/weirproxy/weir/extproc/httpcache"
)

// Sanitize returns the fields of a client's request that a fetch on nobody's
// behalf sends: without credentials, cookies other than the named ones,
// conditions, ranges, the client's address, hop-by-hop and tracing fields, and
// what Envoy and weir add themselves. An answer belongs to the variant that these
// fields select (RFC 9111 §4.1), not to that of the client's own.
func Sanitize(header httpcache.Fields, cookies []string) httpcache.Fields {
	nominated := connectionOptions(header)
	out := make(httpcache.Fields, 0, len(header))
	for _, f := range header {
		switch {
		case dropped(f.Name), slices.Contains(nominated, f.Name):
		case f.Name == "cookie":
			if v := keepCookies(f.Value, cookies); v != "" {
				out = append(out, httpcache.Field{Name: f.Name, Value: v})
			}
		default:
			out = append(out, f)
		}
	}
	return out
}

// dropped reports whether a field of a client's request never goes along.
func dropped(name string) bool {
	switch name {
	// Credentials (RFC 9110 §11).
	case "authorization", "proxy-authorization",
		// Conditions and ranges (RFC 9110 §13, §14): the whole is wanted.
		"if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range", "range",
		// What the client allows a cache to do is not what we want of the origin.
		"cache-control", "pragma",
		// Connection and message framing (RFC 9110 §7.6.1, RFC 9112).
		"connection", "proxy-connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade",
		"content-length", "expect", "host", "http2-settings",
		// Who the client is, and which request of its this was.
		"x-forwarded-for", "x-real-ip", "x-request-id", "x-forwarded-client-cert",
		"traceparent", "tracestate", "b3":
		return true
	}
	for _, prefix := range [...]string{":", "x-envoy-", "x-weir-", "x-b3-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// connectionOptions returns the names that Connection nominates, in lower case.
func connectionOptions(header httpcache.Fields) []string {
	value, ok := header.Joined("connection")
	if !ok {
		return nil
	}
	var names []string
	for name := range strings.SplitSeq(value, ",") {
		names = append(names, strings.ToLower(strings.TrimSpace(name)))
	}
	return names
}

// keepCookies returns the cookie pairs with one of the names, in their order.
func keepCookies(value string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	var kept []string
	for pair := range strings.SplitSeq(value, ";") {
		pair = strings.TrimSpace(pair)
		name, _, _ := strings.Cut(pair, "=")
		if slices.Contains(names, name) {
			kept = append(kept, pair)
		}
	}
	return strings.Join(kept, "; ")
}

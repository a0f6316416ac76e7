package httpcache

import (
	"slices"
	"strings"
	"time"
)

// connectionSpecific reports whether a field belongs to one connection, or to
// the client's proxy configuration, and is never stored (RFC 9111 §3.1; RFC 9110
// §7.6.1, §6.6.2).
func connectionSpecific(name string) bool {
	switch name {
	case "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
		"proxy-authenticate", "proxy-authentication-info", "proxy-authorization":
		return true
	}
	return false
}

// neverStored reports whether no stored response carries the field: Age is made
// anew for every answer (RFC 9111 §5.1), and a cookie is for one client.
func neverStored(name string) bool {
	return name == "age" || name == "set-cookie" || connectionSpecific(name)
}

// excludes reports whether no-cache="…" or private="…" lists the field (RFC 9111
// §5.2.2.4, §5.2.2.7).
func (d *Directives) excludes(name string) bool {
	return slices.Contains(d.NoCacheFields, name) || slices.Contains(d.PrivateFields, name)
}

// nominated reports whether Connection names the field (RFC 9110 §7.6.1), which
// must not be said of fields that all recipients of the content need.
func nominated(f Fields, name string) bool {
	return !indispensable(name) && fieldHasMember(f, "connection", name)
}

// StorableFields returns the fields that are stored of a response (RFC 9111
// §3.1): all, known or not, in their order and on their lines, but for those of
// the connection, those that Connection, no-cache="…" or private="…" name, Age,
// and Set-Cookie.
func StorableFields(resp *Response, d Directives, r *Rules) Fields {
	if r.ignoreAll() {
		d.NoCacheFields, d.PrivateFields = nil, nil
	}
	return appendStorable(make(Fields, 0, len(resp.Header)), resp.Header, &d)
}

func appendStorable(dst, f Fields, d *Directives) Fields {
	connection := f.Has("connection")
	for _, field := range f {
		if neverStored(field.Name) || d.excludes(field.Name) || connection && nominated(f, field.Name) {
			continue
		}
		dst = append(dst, field)
	}
	return dst
}

// WithDate returns f with a Date that says when the message was received, if it
// has none (RFC 9110 §6.6.1: a recipient that stores a message must append it).
func WithDate(f Fields, received time.Time) Fields {
	if f.Has("date") {
		return f
	}
	return append(slices.Clip(f), Field{"date", received.UTC().Format(imfFixdate)})
}

// imfFixdate is the preferred form of HTTP-date, for time.Format (RFC 9110
// §5.6.7).
const imfFixdate = "Mon, 02 Jan 2006 15:04:05 GMT"

// NotModifiedFields returns the fields of a stored response that its 304 carries:
// without those that describe the content that is not sent (RFC 9110 §15.4.5).
func NotModifiedFields(stored Fields) Fields {
	out := make(Fields, 0, len(stored))
	for _, field := range stored {
		switch field.Name {
		case "content-length", "content-type", "content-encoding", "content-language", "content-range",
			"content-md5", "content-digest", "accept-ranges":
		default:
			out = append(out, field)
		}
	}
	return out
}

// mediaType returns the type/subtype of a Content-Type in lower case.
func mediaType(contentType string) string {
	t, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(trimOWS(t))
}

package cachepolicy

import (
	"strconv"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
)

// The targets a policy may have.
const (
	GatewayGroup       = "gateway.networking.k8s.io"
	KindHTTPRoute      = "HTTPRoute"
	KindGateway        = "Gateway"
	IstioGroup         = "networking.istio.io"
	KindVirtualService = "VirtualService"
	KindEnvoyRoute     = "EnvoyRoute" // group weir.dev; the name is that of a route in Envoy's configuration
)

func (v *validator) targetRefs(refs []gatewayv1.LocalPolicyTargetReferenceWithSectionName) {
	if v.tooMany("spec.targetRefs", len(refs), MaxTargetRefs) {
		return
	}
	first := make(map[string]int, len(refs))
	for i := range refs {
		path := "spec.targetRefs[" + strconv.Itoa(i) + "]"
		ref := &refs[i]
		v.targetRef(path, ref)
		id := string(ref.Group) + "\x00" + string(ref.Kind) + "\x00" + string(ref.Name) + "\x00" +
			string(or(ref.SectionName, ""))
		if at, twice := first[id]; twice {
			v.add(path, "%s %s: must not repeat targetRefs[%d]", quote(string(ref.Kind)), quote(string(ref.Name)), at)
			continue
		}
		first[id] = i
	}
}

func (v *validator) targetRef(path string, ref *gatewayv1.LocalPolicyTargetReferenceWithSectionName) {
	switch group, kind := string(ref.Group), string(ref.Kind); kind {
	case KindHTTPRoute, KindGateway:
		if group != GatewayGroup {
			v.add(path+".group", "%s: must be %s for kind %s", quote(group), GatewayGroup, kind)
		}
	case KindVirtualService:
		if group != IstioGroup {
			v.add(path+".group", "%s: must be %s for kind %s", quote(group), IstioGroup, kind)
		}
	case KindEnvoyRoute:
		if group != v1alpha1.GroupName {
			v.add(path+".group", "%s: must be %s for kind %s", quote(group), v1alpha1.GroupName, kind)
		}
		if ref.SectionName != nil {
			v.add(path+".sectionName", "%s: must not be set, an EnvoyRoute has no sections",
				quote(string(*ref.SectionName)))
		}
	default:
		v.add(path+".kind", "%s: must be one of %s, %s, %s, %s", quote(kind),
			KindHTTPRoute, KindGateway, KindVirtualService, KindEnvoyRoute)
	}
	switch name := string(ref.Name); {
	case name == "":
		v.add(path+".name", "must be set to the name of the target")
	case len(name) > MaxNameLength:
		v.add(path+".name", "%s: must have at most %d bytes", quote(name), MaxNameLength)
	}
}

func (v *validator) key(k *v1alpha1.Key) {
	if k == nil {
		return
	}
	v.query(k.Query)
	if !v.tooMany("spec.key.headers", len(k.Headers), MaxKeyHeaders) {
		first := make(map[string]int, len(k.Headers))
		for i, h := range k.Headers {
			path := "spec.key.headers[" + strconv.Itoa(i) + "]"
			v.header(path, string(h), reservedKeyHeader)
			v.unique(path, "headers", strings.ToLower(string(h)), i, first)
		}
	}
	if !v.tooMany("spec.key.cookies", len(k.Cookies), MaxKeyCookies) {
		first := make(map[string]int, len(k.Cookies))
		for i, c := range k.Cookies {
			path := "spec.key.cookies[" + strconv.Itoa(i) + "]"
			v.token(path, c, "cookie name")
			v.unique(path, "cookies", c, i, first)
		}
	}
}

func (v *validator) query(q *v1alpha1.Query) {
	if q == nil {
		return
	}
	enum(v, "spec.key.query.mode", q.Mode, QueryExclude, QueryInclude)
	if v.tooMany("spec.key.query.names", len(q.Names), MaxQueryNames) {
		return
	}
	first := make(map[string]int, len(q.Names))
	for i := range q.Names {
		path := "spec.key.query.names[" + strconv.Itoa(i) + "]"
		n := &q.Names[i]
		enum(v, path+".type", n.Type, MatchExact, MatchPrefix)
		switch {
		case n.Value == "":
			v.add(path+".value", "must be set to a parameter name")
		case len(n.Value) > MaxNameLength:
			v.add(path+".value", "%s: must have at most %d bytes", quote(n.Value), MaxNameLength)
		case strings.ContainsFunc(n.Value, neverInParameterName):
			v.add(path+".value", "%s: must be a parameter name as it is sent, percent-encoded, without = & ; # "+
				"spaces and control characters", quote(n.Value))
		}
		v.unique(path, "names", string(or(n.Type, v1alpha1.MatchType(MatchExact)))+" "+n.Value, i, first)
	}
}

// neverInParameterName: such a name would never match a parameter as sent.
func neverInParameterName(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune("=&;#", r)
}

func (v *validator) unique(path, list, id string, i int, first map[string]int) {
	if at, twice := first[id]; twice {
		v.add(path, "%s: must not repeat %s[%d]", quote(id), list, at)
		return
	}
	first[id] = i
}

// header checks a field name, and that it is not one of those for which
// reserved gives a reason.
func (v *validator) header(path, name string, reserved func(lower string) string) {
	if !v.token(path, name, "header field name") {
		return
	}
	if reason := reserved(strings.ToLower(name)); reason != "" {
		v.add(path, "%s: %s", quote(name), reason)
	}
}

// token checks for a token of RFC 9110 §5.6.2, which field names and cookie
// names (RFC 6265 §4.1.1) are.
func (v *validator) token(path, s, what string) bool {
	if s == "" || len(s) > MaxNameLength || strings.ContainsFunc(s, notTokenChar) {
		v.add(path, "%s: must be a %s: 1 to %d letters, digits or any of !#$%%&'*+-.^_`|~", quote(s), what, MaxNameLength)
		return false
	}
	return true
}

func notTokenChar(r rune) bool {
	return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
		r < 0x7f && strings.ContainsRune("!#$%&'*+-.^_`|~", r))
}

// reservedKeyHeader says why a field must not be named in the key.
func reservedKeyHeader(lower string) string {
	switch lower {
	case "cookie":
		return "must not be in the key as a whole; name the cookies in key.cookies"
	case "host":
		return "must not be named, the host is always in the key"
	case "x-forwarded-host", "x-forwarded-port", "x-forwarded-prefix", "forwarded":
		return "must not be named, it is always in the key when present"
	case "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade":
		return "must not be in the key, it is about the connection"
	}
	return ""
}

// reservedTagHeader says why a field cannot carry tags.
func reservedTagHeader(lower string) string {
	switch lower {
	case "set-cookie", "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade":
		return "cannot carry tags"
	}
	return ""
}

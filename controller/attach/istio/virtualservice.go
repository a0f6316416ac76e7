package istio

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/weirproxy/weir/cachepolicy/feed"
	"github.com/weirproxy/weir/controller/translate"
)

// virtualServiceSpec is what matters here of the spec of a VirtualService.
type virtualServiceSpec struct {
	Hosts    []string       `json:"hosts"`
	Gateways []string       `json:"gateways"`
	HTTP     []virtualRoute `json:"http"`
}

type virtualRoute struct {
	Name     string           `json:"name"`
	Match    []map[string]any `json:"match"`
	Route    []weighted       `json:"route"`
	Delegate map[string]any   `json:"delegate"`
}

type weighted struct {
	Weight int64 `json:"weight"`
}

// fromVirtualService brings a VirtualService into the form of translation. One that cannot be read, which the API
// server does not let through, has no routes.
func fromVirtualService(u *unstructured.Unstructured) *translate.VirtualService {
	out := &translate.VirtualService{Namespace: u.GetNamespace(), Name: u.GetName(),
		Created: u.GetCreationTimestamp().Time, Generation: u.GetGeneration()}
	var spec virtualServiceSpec
	if !specOf(u, &spec) {
		return out
	}
	out.Hosts, out.Gateways = spec.Hosts, spec.Gateways
	for i := range spec.HTTP {
		out.Routes = append(out.Routes, fromVirtualRoute(&spec.HTTP[i]))
	}
	return out
}

func fromVirtualRoute(r *virtualRoute) translate.VirtualRoute {
	out := translate.VirtualRoute{Name: r.Name}
	if r.Delegate != nil {
		out.Problem = "Its requests are divided by another VirtualService, to which it delegates."
	}
	positive := 0
	for _, destination := range r.Route {
		if destination.Weight > 0 {
			positive++
		}
	}
	out.Weighted = positive > 1 // the weight of a single one may be left out
	for _, match := range r.Match {
		out.Matches = append(out.Matches, fromVirtualMatch(match))
	}
	return out
}

// fromVirtualMatch translates what the data plane can match by, and keeps the rest as text.
func fromVirtualMatch(match map[string]any) translate.VirtualMatch {
	var out translate.VirtualMatch
	others := map[string]any{}
	for field, value := range match {
		done := false
		switch field {
		case "name":
			out.Name, done = value.(string)
		case "uri":
			out.Path, done = path(value)
		case "method":
			out.Method, done = exact(value)
		case "headers":
			out.Headers, done = values(value, strings.ToLower)
		case "queryParams":
			out.Query, done = values(value, func(name string) string { return name })
		}
		if !done {
			others[field] = value
		}
	}
	if len(others) > 0 {
		text, err := json.Marshal(others) // sorts by key
		if err != nil {
			text = []byte(err.Error()) // what came as JSON goes as JSON
		}
		out.Others = string(text)
	}
	return out
}

// path is a match of a path. A prefix is any, not only of whole segments as in the Gateway API.
func path(value any) (*feed.PathMatch, bool) {
	kind, text, ok := stringMatch(value)
	switch {
	case !ok:
		return nil, false
	case kind == "exact" && !strings.HasPrefix(text, "/"):
		return nil, false // no path is so
	case kind == "exact":
		return &feed.PathMatch{Type: "Exact", Value: text}, true
	case kind == "regex":
		return &feed.PathMatch{Type: "RegularExpression", Value: text}, true
	case text == "/":
		return nil, true
	}
	return &feed.PathMatch{Type: "RegularExpression", Value: regexp.QuoteMeta(text) + ".*"}, true
}

func exact(value any) (string, bool) {
	kind, text, ok := stringMatch(value)
	if !ok || kind != "exact" {
		return "", false
	}
	return text, true
}

// values are matches of header fields or query parameters, by name.
func values(value any, name func(string) string) ([]feed.ValueMatch, bool) {
	byName, ok := value.(map[string]any)
	if !ok {
		return nil, false
	}
	var out []feed.ValueMatch
	for key, match := range byName {
		kind, text, ok := stringMatch(match)
		if !ok {
			return nil, false
		}
		m := feed.ValueMatch{Type: "Exact", Name: name(key), Value: text}
		switch kind {
		case "regex":
			m.Type = "RegularExpression"
		case "prefix":
			m.Type, m.Value = "RegularExpression", regexp.QuoteMeta(text)+".*"
		}
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b feed.ValueMatch) int { return strings.Compare(a.Name, b.Name) })
	return out, true
}

// stringMatch is a StringMatch of Istio: exact, prefix or regex.
func stringMatch(value any) (kind, text string, ok bool) {
	m, isMap := value.(map[string]any)
	if !isMap || len(m) != 1 {
		return "", "", false
	}
	for kind, v := range m {
		text, ok = v.(string)
		return kind, text, ok && slices.Contains([]string{"exact", "prefix", "regex"}, kind)
	}
	return "", "", false
}

// classicSpec is what matters here of the spec of a Gateway of networking.istio.io.
type classicSpec struct {
	Selector map[string]string `json:"selector"`
	Servers  []struct {
		Port struct {
			Number   int32  `json:"number"`
			Protocol string `json:"protocol"`
		} `json:"port"`
		Hosts []string `json:"hosts"`
		TLS   *struct {
			Mode string `json:"mode"`
		} `json:"tls"`
	} `json:"servers"`
}

// fromClassicGateway brings a Gateway of networking.istio.io into the form of translation: its servers that take HTTP.
func fromClassicGateway(u *unstructured.Unstructured) *translate.ClassicGateway {
	out := &translate.ClassicGateway{Namespace: u.GetNamespace(), Name: u.GetName(),
		Created: u.GetCreationTimestamp().Time, Generation: u.GetGeneration()}
	var spec classicSpec
	if !specOf(u, &spec) {
		return out
	}
	for i := range spec.Servers {
		s := &spec.Servers[i]
		server := translate.ClassicServer{Port: s.Port.Number, Hosts: s.Hosts}
		switch strings.ToUpper(s.Port.Protocol) {
		case "HTTP", "HTTP2", "GRPC", "GRPC-WEB":
		case "HTTPS":
			if s.TLS == nil || s.TLS.Mode == "PASSTHROUGH" || s.TLS.Mode == "AUTO_PASSTHROUGH" {
				continue
			}
			server.TLS = true
		default:
			continue
		}
		out.Servers = append(out.Servers, server)
	}
	return out
}

func specOf(u *unstructured.Unstructured, into any) bool {
	spec, ok := u.Object["spec"].(map[string]any)
	return ok && runtime.DefaultUnstructuredConverter.FromUnstructured(spec, into) == nil
}

// classicGateway is a Gateway of networking.istio.io, and what it selects.
type classicGateway struct {
	*translate.ClassicGateway
	selects string
}

// classicGateways are the Gateways of networking.istio.io by namespace/name.
func classicGateways(list []unstructured.Unstructured) map[string]*classicGateway {
	out := make(map[string]*classicGateway, len(list))
	for i := range list {
		g := fromClassicGateway(&list[i])
		var spec classicSpec
		if specOf(&list[i], &spec) {
			selects := fmt.Sprintf("%q", selectorText(spec.Selector))
			out[g.Namespace+"/"+g.Name] = &classicGateway{g, selects}
		}
	}
	return out
}

// virtualPlaces are the virtual hosts that the routes of a VirtualService are in, each once.
func virtualPlaces(v *translate.VirtualService, gateways map[string]*classicGateway) map[place]bool {
	out := map[place]bool{}
	for _, parent := range v.Parents() {
		if parent.Kind == kindService {
			out[place{kind: kindService, parent: parent.Namespace + "/" + parent.Name}] = true
			continue
		}
		g := gateways[parent.Namespace+"/"+parent.Name]
		if g == nil || parent.Kind != kindGateway {
			continue
		}
		for _, s := range g.Servers {
			for _, server := range s.Hosts {
				if _, host, ok := strings.Cut(server, "/"); ok {
					server = host
				}
				for _, host := range hosts(server, v.Hosts) {
					out[place{kindClassic, g.selects, s.Port, host}] = true
				}
			}
		}
	}
	return out
}

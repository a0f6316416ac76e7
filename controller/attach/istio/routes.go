package istio

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weirproxy/weir/controller/translate"
)

// proxies are some of Istio's proxies: those that one EnvoyFilter patches.
type proxies struct {
	// context is GATEWAY or SIDECAR_OUTBOUND.
	context string
	// filter is the name of the filter in Envoy, which the routes that turn it on refer to.
	filter string
	// namespace and name are of the EnvoyFilter.
	namespace, name string
	// gateway is, of the Gateway API, the target; selector the labels of a classic Gateway's pods. Neither: all.
	gateway  string
	selector map[string]string
}

// The contexts of a patch.
const (
	contextGateway = "GATEWAY"
	contextSidecar = "SIDECAR_OUTBOUND"
)

// key tells proxies apart.
func (p *proxies) key() string { return p.namespace + "/" + p.name }

// route is a route in Envoy, as far as a patch can say which.
type route struct {
	host string // of the virtual host, without port
	port int32
	name string
}

func (r route) String() string {
	return fmt.Sprintf("the route name %q of the virtual host %q", r.name, r.virtualHost())
}

// virtualHost is the name that istiod gives the virtual host.
func (r route) virtualHost() string { return r.host + ":" + strconv.Itoa(int(r.port)) }

// proxiesOf says which proxies an attachment's routes are in, or why there are none.
func (o *Options) proxiesOf(a *translate.Attachment) (*proxies, error) {
	group, kind := string(deref(a.Parent.Group)), string(deref(a.Parent.Kind))
	parent := types.NamespacedName{Namespace: string(deref(a.Parent.Namespace)), Name: string(a.Parent.Name)}
	switch {
	case kind == kindGateway && group == groupGatewayAPI:
		return &proxies{context: contextGateway, filter: filterName, namespace: parent.Namespace,
			name: objectName("gateway", parent.Name), gateway: parent.Name}, nil
	case kind == kindGateway && group == groupIstio:
		selector := o.Selectors[parent]
		if len(selector) == 0 {
			return nil, fmt.Errorf("the Gateway %s of %s selects all proxies; give it a selector", parent, groupIstio)
		}
		// The pods may be in any namespace, so that the root namespace is the only one that is certain. Gateways with one
		// selector share their pods; pods that several selectors select have a filter for each, under names of their own,
		// and a route turns on the one that is meant.
		id := fmt.Sprintf("%016x", hash(selectorText(selector)...))
		return &proxies{context: contextGateway, filter: filterName + "-" + id, namespace: o.RootNamespace,
			name: objectName("classic", id), selector: selector}, nil
	default:
		// The sidecars of callers: of all, or, where the route is not the Service's owner's, of the route's namespace.
		p := &proxies{context: contextSidecar, filter: filterName, namespace: o.RootNamespace, name: objectName("mesh")}
		if kind == kindService && a.Route.Kind == kindHTTPRoute && a.Route.Namespace != parent.Namespace {
			p.namespace = a.Route.Namespace
		}
		return p, nil
	}
}

// selectorText is a selector as a list in which no two that differ are alike.
func selectorText(selector map[string]string) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		out = append(out, key, selector[key])
	}
	return out
}

// routesOf are the routes that istiod makes of an attachment's rule: one a host and name.
func (o *Options) routesOf(a *translate.Attachment) []route {
	hosts, ports := a.Hosts, []int32{a.Port}
	switch {
	case string(deref(a.Parent.Kind)) == kindService:
		// Whatever hostnames the route has: in the mesh they do not count.
		service := types.NamespacedName{Namespace: string(deref(a.Parent.Namespace)), Name: string(a.Parent.Name)}
		hosts = []string{o.serviceHost(service)}
		if a.Port == 0 {
			ports = o.ServicePorts[service]
		}
	case len(hosts) == 0:
		hosts = []string{"*"}
	}
	var out []route
	for _, host := range hosts {
		for _, port := range ports {
			for _, name := range routeNames(a) {
				out = append(out, route{host: strings.ToLower(host), port: port, name: name})
			}
		}
	}
	return out
}

// routeNames are what istiod calls the routes of a rule: its name alone, if it has one, or as translation says.
func routeNames(a *translate.Attachment) []string {
	switch {
	case len(a.EnvoyNames) > 0:
		return a.EnvoyNames
	case a.RuleName != "":
		return []string{a.RuleName}
	}
	return []string{a.Route.Namespace + "." + a.Route.Name + "." + strconv.Itoa(a.RuleIndex)}
}

func deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

package istio

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/weirproxy/weir/controller/attach"
	"github.com/weirproxy/weir/controller/translate"
)

const (
	// mostPatches is how many routes one EnvoyFilter patches, about: the API server takes 1.5 MB, a patch is some 500
	// bytes.
	mostPatches = 500
	// priority comes after that of most EnvoyFilters of others (0), which so stay before the cache: what they refuse is
	// not answered from it.
	priority = 10
	// maxObjectName is how long the name of an object may be.
	maxObjectName = 253
)

// labelComponent is set on what is written here, beside app.kubernetes.io/managed-by.
const labelComponent = "app.kubernetes.io/component"

// component is its value.
const component = "istio-attachment"

// ownLabels are those of every EnvoyFilter written here, by which it is found again.
func ownLabels() map[string]string {
	return map[string]string{
		"app.kubernetes.io/managed-by": attach.ManagedBy,
		"app.kubernetes.io/part-of":    "weir",
		labelComponent:                 component,
	}
}

// Placed says where an attachment went: the EnvoyFilter that turns the filter on, or why there is none.
type Placed struct {
	Namespace, Name string
	Problem         string // a full sentence; empty if there is none
}

// inForce is what is in force on a route, and by which attachments.
type inForce struct {
	scope string // empty: more than one claims the route
	// policy is for people: the data plane decides by the scope.
	policy      string
	attachments []int
}

// EnvoyFilters returns the EnvoyFilters that attach the filter, sorted by namespace and name, and for each attachment,
// by index, where it went.
func EnvoyFilters(attachments []translate.Attachment, o Options) ([]*unstructured.Unstructured, []Placed) {
	placed := make([]Placed, len(attachments))
	all := map[string]*proxies{}
	routes := map[string]map[route]*inForce{}
	for i := range attachments {
		a := &attachments[i]
		p, err := o.proxiesOf(a)
		if err != nil {
			placed[i].Problem = sentence(err.Error())
			continue
		}
		key := p.key()
		if all[key] == nil {
			all[key], routes[key] = p, map[route]*inForce{}
		}
		for _, r := range o.routesOf(a) {
			add(routes[key], r, a, i, placed)
		}
	}
	var out []*unstructured.Unstructured
	for _, key := range slices.Sorted(maps.Keys(all)) {
		out = append(out, o.forProxies(all[key], routes[key], placed)...)
	}
	out = append(out, o.filterForCallers(all)...)
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
	return out, placed
}

// add puts an attachment on a route. Two of different rules cannot both be: neither is then.
func add(routes map[route]*inForce, r route, a *translate.Attachment, index int, placed []Placed) {
	policy := ""
	if len(a.Layers) > 0 {
		policy = a.Layers[len(a.Layers)-1].Policy
	}
	f := routes[r]
	if f == nil {
		routes[r] = &inForce{policy: policy, scope: a.Scope, attachments: []int{index}}
		return
	}
	f.attachments = append(f.attachments, index)
	f.policy = min(f.policy, policy) // whatever the order in which they come
	if f.scope == a.Scope {
		return
	}
	f.scope = ""
	for _, i := range f.attachments {
		placed[i].Problem = fmt.Sprintf("Istio gives %s to different rules; give them names of their own, or none.", r)
	}
}

// forProxies makes the EnvoyFilters of some proxies: one, unless there are too many routes.
func (o *Options) forProxies(p *proxies, routes map[route]*inForce, placed []Placed) []*unstructured.Unstructured {
	buckets := 1
	for len(routes) > buckets*mostPatches {
		buckets *= 2 // a change of one route moves the others only when their number doubles
	}
	patches := make([][]any, buckets)
	for _, r := range sortedRoutes(routes) {
		f := routes[r]
		if f.scope == "" {
			continue
		}
		b := int(hash(r.virtualHost(), r.name) % uint64(buckets))
		patches[b] = append(patches[b], routePatch(p, r, f))
		for _, i := range f.attachments {
			placed[i].Namespace, placed[i].Name = p.namespace, shardName(p.name, b)
		}
	}
	var out []*unstructured.Unstructured
	for b := range patches {
		if len(patches[b]) == 0 {
			continue
		}
		if len(out) == 0 && p.context == contextGateway {
			patches[b] = append([]any{o.filterPatch(p)}, patches[b]...)
		}
		out = append(out, o.object(p, shardName(p.name, b), patches[b]))
	}
	return out
}

// filterForCallers puts the filter, off, into the sidecars of all callers, where any has a route that turns it on. It
// is an object of its own: a route may be patched from its namespace and from the root namespace, the filter is there
// once.
func (o *Options) filterForCallers(all map[string]*proxies) []*unstructured.Unstructured {
	for _, p := range all {
		if p.context == contextSidecar {
			root := &proxies{context: contextSidecar, filter: filterName, namespace: o.RootNamespace,
				name: objectName("mesh-filter")}
			return []*unstructured.Unstructured{o.object(root, root.name, []any{o.filterPatch(root)})}
		}
	}
	return nil
}

func (o *Options) object(p *proxies, name string, patches []any) *unstructured.Unstructured {
	spec := object{"priority": int64(priority), "configPatches": patches}
	switch {
	case p.gateway != "":
		spec["targetRefs"] = []any{object{"group": groupGatewayAPI, "kind": kindGateway, "name": p.gateway}}
	case p.selector != nil:
		selector := object{}
		for key, value := range p.selector {
			selector[key] = value
		}
		spec["workloadSelector"] = object{"labels": selector}
	}
	u := &unstructured.Unstructured{Object: object{"spec": spec}}
	u.SetAPIVersion(groupIstio + "/v1alpha3")
	u.SetKind("EnvoyFilter")
	u.SetNamespace(p.namespace)
	u.SetName(name)
	u.SetLabels(ownLabels())
	if o.Release != nil {
		u.SetOwnerReferences([]metav1.OwnerReference{*o.Release})
	}
	// Where istiod sends gateways only the clusters that their routes name, it is told of this one.
	u.SetAnnotations(map[string]string{"envoyfilter.istio.io/referenced-services": o.serviceHost(o.DataPlane.Service)})
	return u
}

// filterPatch puts the filter before the router of every listener, off.
func (o *Options) filterPatch(p *proxies) object {
	return object{
		"applyTo": "HTTP_FILTER",
		"match": object{
			"context": p.context,
			"proxy":   object{"proxyVersion": notTooOld},
			"listener": object{"filterChain": object{"filter": object{
				"name":      "envoy.filters.network.http_connection_manager",
				"subFilter": object{"name": "envoy.filters.http.router"},
			}}},
		},
		"patch": object{
			"operation": "INSERT_BEFORE",
			"value":     filter(p.filter, o.serviceHost(o.DataPlane.Service), o.DataPlane.Port),
		},
	}
}

// routePatch turns the filter on for a route.
func routePatch(p *proxies, r route, f *inForce) object {
	return object{
		"applyTo": "HTTP_ROUTE",
		"match": object{
			"context": p.context,
			"proxy":   object{"proxyVersion": notTooOld},
			"routeConfiguration": object{"vhost": object{
				"name":  r.virtualHost(),
				"route": object{"name": r.name},
			}},
		},
		"patch": object{"operation": "MERGE", "value": turnOn(p.filter, f.policy, f.scope)},
	}
}

func sortedRoutes(routes map[route]*inForce) []route {
	return slices.SortedFunc(maps.Keys(routes), func(a, b route) int {
		if c := strings.Compare(a.virtualHost(), b.virtualHost()); c != 0 {
			return c
		}
		return strings.Compare(a.name, b.name)
	})
}

// objectName joins parts to the name of an object, with a hash in place of what is too long.
func objectName(parts ...string) string {
	name := "weir-" + strings.Join(parts, "-")
	const room = len("-ffffffff") // of shardName
	if len(name) <= maxObjectName-room && len(parts) < 3 {
		return name
	}
	// Of three parts it is not told where one ends and the next begins.
	sum := fmt.Sprintf("-%016x", hash(parts...))
	return name[:min(len(name), maxObjectName-room-len(sum))] + sum
}

// shardName is the name of one of several EnvoyFilters for the same proxies.
func shardName(name string, shard int) string {
	if shard == 0 {
		return name
	}
	return name + "-" + strconv.Itoa(shard)
}

// hash is of strings, each with its end.
func hash(parts ...string) uint64 {
	h := fnv.New64a()
	for _, part := range parts {
		_, _ = h.Write([]byte(part)) // never fails
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

// sentence makes an error a message for a condition.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

package translate

import (
	"cmp"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/cachepolicy/feed"
)

const (
	kindGateway   = cachepolicy.KindGateway
	kindHTTPRoute = cachepolicy.KindHTTPRoute
	kindService   = "Service"
)

// fromHTTPRoute brings an HTTPRoute into the form that all routes have.
func fromHTTPRoute(o *gatewayv1.HTTPRoute) *route {
	r := &route{
		target:     Target{Kind: kindHTTPRoute, Namespace: o.Namespace, Name: o.Name},
		group:      gatewayv1.GroupName,
		created:    o.CreationTimestamp.Time,
		generation: o.Generation,
		hosts:      lowerHosts(o.Spec.Hostnames),
		rules:      make([]rule, len(o.Spec.Rules)),
		parents:    make([]parent, len(o.Spec.ParentRefs)),
	}
	for i := range o.Spec.Rules {
		s := &o.Spec.Rules[i]
		r.rules[i] = rule{name: string(deref(s.Name)), matches: httpMatches(s.Matches), weighted: weighted(s.BackendRefs)}
	}
	for i := range o.Spec.ParentRefs {
		ref := o.Spec.ParentRefs[i]
		r.parents[i] = parent{ref: ref, key: parentKey(ref, o.Namespace), answers: answers(o, ref)}
	}
	r.finish()
	return r
}

func lowerHosts(names []gatewayv1.Hostname) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = strings.ToLower(string(name))
	}
	return out
}

// answers are what implementations say of a route at a parent. Entries without
// Accepted (such as weir's own) say nothing.
func answers(o *gatewayv1.HTTPRoute, ref gatewayv1.ParentReference) []answer {
	var out []answer
	for i := range o.Status.Parents {
		s := &o.Status.Parents[i]
		if !sameRef(s.ParentRef, ref, o.Namespace) {
			continue
		}
		for j := range s.Conditions {
			if c := &s.Conditions[j]; c.Type == string(gatewayv1.RouteConditionAccepted) {
				out = append(out, answer{string(s.ControllerName), c.Status == metav1.ConditionTrue,
					c.Reason + ": " + c.Message})
			}
		}
	}
	return out
}

// sameRef compares two references with their defaults.
func sameRef(a, b gatewayv1.ParentReference, namespace string) bool {
	return parentKey(a, namespace) == parentKey(b, namespace) &&
		reflect.DeepEqual(a.SectionName, b.SectionName) && reflect.DeepEqual(a.Port, b.Port)
}

// parentKey is the object that a reference means.
func parentKey(ref gatewayv1.ParentReference, namespace string) ancestorKey {
	group, kind := gatewayv1.GroupName, kindGateway
	if ref.Group != nil {
		group = string(*ref.Group)
	}
	if ref.Kind != nil {
		kind = string(*ref.Kind)
	}
	if ref.Namespace != nil {
		namespace = string(*ref.Namespace)
	}
	return ancestorKey{group: group, kind: kind, namespace: namespace, name: string(ref.Name)}
}

// weighted reports whether more than one backend gets requests.
func weighted(backends []gatewayv1.HTTPBackendRef) bool {
	n := 0
	for i := range backends {
		if w := backends[i].Weight; w == nil || *w > 0 {
			n++
		}
	}
	return n > 1
}

func httpMatches(list []gatewayv1.HTTPRouteMatch) []feed.Match {
	if len(list) == 0 {
		return nil
	}
	out := make([]feed.Match, len(list))
	for i := range list {
		m := &list[i]
		out[i] = feed.Match{Path: httpPath(m.Path), Method: string(deref(m.Method))}
		for _, h := range m.Headers {
			out[i].Headers = appendFirst(out[i].Headers, feed.ValueMatch{
				Type: string(cmp.Or(deref(h.Type), gatewayv1.HeaderMatchExact)),
				Name: strings.ToLower(string(h.Name)), Value: h.Value})
		}
		for _, q := range m.QueryParams {
			out[i].Query = appendFirst(out[i].Query, feed.ValueMatch{
				Type: string(cmp.Or(deref(q.Type), gatewayv1.QueryParamMatchExact)),
				Name: string(q.Name), Value: q.Value})
		}
	}
	return out
}

// appendFirst appends v unless there is one of its name: of several, the Gateway API
// considers the first.
func appendFirst(list []feed.ValueMatch, v feed.ValueMatch) []feed.ValueMatch {
	for i := range list {
		if list[i].Name == v.Name {
			return list
		}
	}
	return append(list, v)
}

// httpPath is a path match; nil for every path, which the prefix "/" is too. A prefix
// is the same with a slash at its end and without.
func httpPath(p *gatewayv1.HTTPPathMatch) *feed.PathMatch {
	if p == nil {
		return nil
	}
	kind, value := cmp.Or(deref(p.Type), gatewayv1.PathMatchPathPrefix), "/"
	if p.Value != nil {
		value = *p.Value
	}
	if kind == gatewayv1.PathMatchPathPrefix {
		if value = strings.TrimSuffix(value, "/"); value == "" {
			return nil
		}
	}
	return &feed.PathMatch{Type: string(kind), Value: value}
}

func deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

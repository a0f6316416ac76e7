package envoygateway

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/weirproxy/weir/controller/translate"
)

// The kinds that policies of Envoy Gateway and of weir both point at.
const (
	kindGateway   = "Gateway"
	kindHTTPRoute = "HTTPRoute"
)

// targetRefs is how a policy of Envoy Gateway says what it is for.
type targetRefs struct {
	TargetRef       *targetRef       `json:"targetRef"`
	TargetRefs      []targetRef      `json:"targetRefs"`
	TargetSelectors []targetSelector `json:"targetSelectors"`
	MergeType       string           `json:"mergeType"`
}

type targetRef struct {
	Kind        string `json:"kind"`
	Name        string `json:"name"`
	SectionName string `json:"sectionName"`
}

type targetSelector struct {
	Kind             string                            `json:"kind"`
	MatchLabels      map[string]string                 `json:"matchLabels"`
	MatchExpressions []metav1.LabelSelectorRequirement `json:"matchExpressions"`
	Namespaces       *struct {
		From string `json:"from"`
	} `json:"namespaces"`
}

// labelled is an object that a selector may select.
type labelled struct {
	kind, namespace, name string
	labels                labels.Set
}

// target returns the object as a whole.
func (l *labelled) target() translate.Target {
	return translate.Target{Kind: l.kind, Namespace: l.namespace, Name: l.name}
}

// readSpec decodes part of an object's spec.
func readSpec(o *unstructured.Unstructured, into any) error {
	spec, _, err := unstructured.NestedMap(o.Object, "spec")
	if err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(spec, into)
}

// reachesElsewhere reports whether a selector reaches into other namespaces.
func (r *targetRefs) reachesElsewhere() bool {
	return slices.ContainsFunc(r.TargetSelectors, func(s targetSelector) bool { return s.elsewhere() })
}

func (s *targetSelector) elsewhere() bool {
	return s.Namespaces != nil && s.Namespaces.From != "" && s.Namespaces.From != "Same"
}

// resolve returns the Gateways and HTTPRoutes, or sections of them, that a policy in
// the namespace is for, sorted. A selector that reaches into other namespaces is taken
// to select there whatever it could, allowed by a ReferenceGrant or not.
func (r *targetRefs) resolve(namespace string, objects []labelled) []translate.Target {
	refs := r.TargetRefs
	if r.TargetRef != nil {
		refs = []targetRef{*r.TargetRef}
	}
	var targets []translate.Target
	for _, ref := range refs {
		if ref.Kind == kindGateway || ref.Kind == kindHTTPRoute {
			targets = append(targets, translate.Target{
				Kind: ref.Kind, Namespace: namespace, Name: ref.Name, SectionName: ref.SectionName,
			})
		}
	}
	for i := range r.TargetSelectors {
		s := &r.TargetSelectors[i]
		selector, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{
			MatchLabels: s.MatchLabels, MatchExpressions: s.MatchExpressions,
		})
		if err != nil {
			continue // Envoy Gateway selects nothing by it either
		}
		for j := range objects {
			o := &objects[j]
			if o.kind == s.Kind && (s.elsewhere() || o.namespace == namespace) && selector.Matches(o.labels) {
				targets = append(targets, o.target())
			}
		}
	}
	slices.SortFunc(targets, compareTargets)
	return slices.Compact(targets)
}

func compareTargets(a, b translate.Target) int {
	for _, pair := range [...][2]string{
		{a.Kind, b.Kind}, {a.Namespace, b.Namespace}, {a.Name, b.Name}, {a.SectionName, b.SectionName},
	} {
		if c := strings.Compare(pair[0], pair[1]); c != 0 {
			return c
		}
	}
	return 0
}

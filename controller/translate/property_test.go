package translate_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy/feed"
	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	"github.com/weirproxy/weir/controller/translate"
)

// inputs is how many random inputs a property is tried on.
const inputs = 200

// TestOrderDoesNotMatter translates the same objects in another order.
func TestOrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	for seed := range uint64(inputs) {
		r := newRandom(seed)
		in := r.input(false)
		before := encode(t, objectsOf(in))
		want := encode(t, translate.Translate(in))
		if after := encode(t, objectsOf(in)); after != before {
			t.Fatalf("seed %d: Translate changed its input", seed)
		}
		shuffle(r.Rand, in.CachePolicies)
		shuffle(r.Rand, in.GatewayClasses)
		shuffle(r.Rand, in.Gateways)
		shuffle(r.Rand, in.HTTPRoutes)
		shuffle(r.Rand, in.Namespaces)
		shuffle(r.Rand, in.Services)
		shuffle(r.Rand, in.Controllers)
		shuffle(r.Rand, in.VirtualServices)
		shuffle(r.Rand, in.ClassicGateways)
		shuffle(r.Rand, in.Guards)
		shuffle(r.Rand, in.Addresses)
		if diff := gocmp.Diff(want, encode(t, translate.Translate(in))); diff != "" {
			t.Fatalf("seed %d: the order of the objects matters:\n%s", seed, diff)
		}
	}
}

func objectsOf(in *translate.Input) []any {
	return []any{in.CachePolicies, in.GatewayClasses, in.Gateways, in.HTTPRoutes, in.Namespaces, in.Services,
		in.Controllers, in.VirtualServices, in.ClassicGateways, in.Guards, in.Addresses}
}

func shuffle[T any](r *rand.Rand, list []T) {
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}

func encode(t *testing.T, v any) string {
	t.Helper()
	data, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestWhatIsSaidIsServed holds verdicts against the feed.
func TestWhatIsSaidIsServed(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for seed := range uint64(inputs) {
		in := newRandom(seed).input(false)
		out := translate.Translate(in)
		checkFeed(t, out)
		checkAttached(t, out)
		if len(out.Verdicts) != len(in.CachePolicies) {
			t.Errorf("seed %d: %d verdicts of %d policies", seed, len(out.Verdicts), len(in.CachePolicies))
		}
		for i := range out.Verdicts {
			checkVerdict(t, out, &out.Verdicts[i], seen)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	for _, want := range []string{"Accepted", "Conflicted", "Invalid", "TargetNotFound", "TargetNotAttached", "Unsupported",
		"Authorization", "ServerAuthorizationRequired", "override Partial", "override Full", "override "} {
		if seen[want] == 0 {
			t.Errorf("%q never came up: the inputs are too tame", want)
		}
	}
}

func checkVerdict(t *testing.T, out *translate.Output, v *translate.Verdict, seen map[string]int) {
	t.Helper()
	if len(v.Ancestors) == 0 || len(v.Ancestors) > translate.MaxAncestors {
		t.Errorf("%s: %d ancestors", v.Policy, len(v.Ancestors))
	}
	sent := map[string]*feed.Route{}
	for i := range out.Routes {
		sent[out.Routes[i].Resource()] = &out.Routes[i]
	}
	for i := range v.Ancestors {
		a := &v.Ancestors[i]
		seen[a.Accepted.Reason]++
		if len(a.Accepted.Message) == 0 || len(a.ResolvedRefs.Message) == 0 {
			t.Errorf("%s at %s: nothing is said", v.Policy, viewRef(a.Ref))
		}
		if a.Accepted.Status != metav1.ConditionTrue {
			if len(a.Resources) > 0 || a.Override != translate.OverrideNone {
				t.Errorf("%s at %s is not accepted, yet there is more", v.Policy, viewRef(a.Ref))
			}
			continue
		}
		seen["override "+string(a.Override)]++
		if a.Resources[0] != feed.PolicyResource(v.Policy.String()) || !slices.IsSorted(a.Resources[1:]) {
			t.Errorf("%s at %s: resources %q", v.Policy, viewRef(a.Ref), a.Resources)
		}
		for _, name := range a.Resources[1:] {
			if sent[name] == nil {
				t.Errorf("%s at %s: %s is not in the feed", v.Policy, viewRef(a.Ref), name)
			}
		}
		if (a.Override == translate.OverrideNone) != (a.OverrideMessage == "") {
			t.Errorf("%s at %s: override %q: %q", v.Policy, viewRef(a.Ref), a.Override, a.OverrideMessage)
		}
	}
}

// TestChains holds the policies of each rule against a plain reading of the rules of
// precedence, on routes with one parent.
func TestChains(t *testing.T) {
	t.Parallel()
	compared := 0
	for seed := range uint64(inputs) {
		in := newRandom(seed).input(true)
		out := translate.Translate(in)
		got := map[string][]string{}
		for i := range out.Routes {
			for _, u := range out.Routes[i].Rules {
				if len(u.EnvoyRoutes) > 0 {
					got[u.EnvoyRoutes[0]] = u.Policies
				}
			}
		}
		for _, r := range in.HTTPRoutes {
			if len(r.Spec.ParentRefs) != 1 || len(r.Status.Parents) != 1 || len(r.Status.Parents[0].Conditions) == 0 {
				continue
			}
			gateway := string(*r.Spec.ParentRefs[0].Namespace) + "/" + string(r.Spec.ParentRefs[0].Name)
			for i, u := range r.Spec.Rules {
				name := fmt.Sprintf("httproute/%s/%s/rule/%d/*", r.Namespace, r.Name, i)
				if _, ok := got[name]; !ok {
					continue // repeats another, or cannot be sent, or nothing claims the route
				}
				section := ""
				if u.Name != nil && !slices.ContainsFunc(r.Spec.Rules[:i], func(o gatewayv1.HTTPRouteRule) bool {
					return o.Name != nil && *o.Name == *u.Name
				}) {
					section = string(*u.Name)
				}
				want := plainChain(in.CachePolicies, gateway, r.Namespace+"/"+r.Name, section)
				if len(got[name]) == 0 {
					continue // what is at fault is tested elsewhere
				}
				compared++
				if diff := gocmp.Diff(want, got[name]); diff != "" {
					t.Fatalf("seed %d: %s (-want +got):\n%s", seed, name, diff)
				}
			}
		}
	}
	if compared < inputs {
		t.Errorf("only %d rules were compared: the inputs are too tame", compared)
	}
}

// plainChain is the oldest policy of each target, the least specific first.
func plainChain(policies []*v1alpha1.CachePolicy, gateway, route, rule string) []string {
	sorted := slices.SortedFunc(slices.Values(policies), func(a, b *v1alpha1.CachePolicy) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name))
	})
	var out []string
	for _, level := range [][3]string{{"Gateway", gateway, ""}, {"Gateway", gateway, "http"}, {"HTTPRoute", route, ""},
		{"HTTPRoute", route, rule}} {
		for _, p := range sorted {
			if slices.ContainsFunc(p.Spec.TargetRefs, func(ref gatewayv1.LocalPolicyTargetReferenceWithSectionName) bool {
				section := ""
				if ref.SectionName != nil {
					section = string(*ref.SectionName)
				}
				return [3]string{string(ref.Kind), p.Namespace + "/" + string(ref.Name), section} == level
			}) {
				name := p.Namespace + "/" + p.Name
				out = slices.DeleteFunc(out, func(before string) bool { return before == name })
				out = append(out, name)
				break
			}
		}
	}
	return out
}

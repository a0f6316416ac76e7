package istio

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	"github.com/weirproxy/weir/controller/translate"
)

// FuzzVirtualService: whatever is in a VirtualService and a Gateway, nothing panics, and what the data plane would be
// told it takes.
func FuzzVirtualService(f *testing.F) {
	f.Add(`{"hosts":["a.test"],"gateways":["edge"],"http":[{"name":"r","match":[{"uri":{"prefix":"/"}}]}]}`,
		`{"selector":{"a":"b"},"servers":[{"port":{"number":80,"protocol":"HTTP"},"hosts":["*"]}]}`)
	f.Add(`{"hosts":["web","*.x"],"http":[{"name":"r","match":[{"uri":{"regex":"("},"headers":{"a":{"exact":"b"}}}]}]}`,
		`{"servers":[{"port":{"number":443,"protocol":"HTTPS"},"hosts":["./a","x/*"],"tls":{"mode":"SIMPLE"}}]}`)
	f.Add(`{"http":[{"match":[{"name":"m","uri":{"exact":"x"},"method":{"regex":"G"}}]},{"name":"r"},{"name":"r"}]}`, `{}`)
	f.Add(`{"hosts":"a","http":[null],"gateways":[1]}`, `{"servers":[{"hosts":["/"]}],"selector":[]}`)
	f.Fuzz(func(t *testing.T, virtual, classic string) {
		in := &observed{virtual: some(virtual, kindVirtual, "vs"), classic: some(classic, kindGateway, "edge")}
		learned := learn(in, config())
		policy := &v1alpha1.CachePolicy{}
		policy.Namespace, policy.Name = "shop", "p"
		policy.Spec.TargetRefs = []gatewayv1.LocalPolicyTargetReferenceWithSectionName{{}}
		policy.Spec.TargetRefs[0].Group, policy.Spec.TargetRefs[0].Kind = groupIstio, kindVirtual
		policy.Spec.TargetRefs[0].Name = "vs"
		out := translate.Translate(&translate.Input{
			CachePolicies: []*v1alpha1.CachePolicy{policy}, Controllers: New(config()).Controllers(),
			Guards: learned.Guards, VirtualServices: learned.VirtualServices, ClassicGateways: learned.ClassicGateways,
		})
		for i := range out.Routes {
			if err := cachepolicy.ValidateRoute(&out.Routes[i]); err != nil {
				t.Errorf("the data plane refuses what it is told: %v", err)
			}
		}
		filters, placed := EnvoyFilters(out.Attached, options(&attachmentsIn{}))
		if len(placed) != len(out.Attached) {
			t.Errorf("%d attachments, %d placed", len(out.Attached), len(placed))
		}
		for _, filter := range filters {
			filter.DeepCopy() // which panics at values that are no JSON
		}
	})
}

// some is an object with a spec; none if that is no JSON object.
func some(spec, kind, name string) []unstructured.Unstructured {
	var u unstructured.Unstructured
	document := `{"apiVersion":"networking.istio.io/v1","kind":"` + kind + `","metadata":{"namespace":"shop","name":"` + name +
		`"},"spec":` + spec + `}`
	if u.UnmarshalJSON([]byte(document)) != nil {
		return nil
	}
	return []unstructured.Unstructured{u}
}

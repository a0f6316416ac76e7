package translate_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/controller/translate"
)

func TestPermitted(t *testing.T) {
	t.Parallel()
	name := gatewayv1.ObjectName("one")
	grants := []*gatewayv1.ReferenceGrant{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "certs"}, Spec: gatewayv1.ReferenceGrantSpec{
			From: []gatewayv1.ReferenceGrantFrom{{Group: gatewayv1.GroupName, Kind: "Gateway", Namespace: "shop"}},
			To:   []gatewayv1.ReferenceGrantTo{{Kind: "Secret", Name: &name}, {Kind: "ConfigMap"}}}},
	}
	from := translate.From{Group: gatewayv1.GroupName, Kind: "Gateway", Namespace: "shop"}
	for name, tc := range map[string]struct {
		from          translate.From
		kind, ns, obj string
		want          bool
	}{
		"own namespace":      {translate.From{Namespace: "certs"}, "Secret", "certs", "two", true},
		"named":              {from, "Secret", "certs", "one", true},
		"another name":       {from, "Secret", "certs", "two", false},
		"any name":           {from, "ConfigMap", "certs", "two", true},
		"another kind":       {from, "Service", "certs", "one", false},
		"grant elsewhere":    {from, "Secret", "other", "one", false},
		"from another kind":  {translate.From{Group: gatewayv1.GroupName, Kind: "HTTPRoute", Namespace: "shop"}, "Secret", "certs", "one", false},
		"from another group": {translate.From{Kind: "Gateway", Namespace: "shop"}, "Secret", "certs", "one", false},
		"from elsewhere":     {translate.From{Group: gatewayv1.GroupName, Kind: "Gateway", Namespace: "blog"}, "Secret", "certs", "one", false},
	} {
		got := translate.Permitted(grants, tc.from, "", tc.kind, types.NamespacedName{Namespace: tc.ns, Name: tc.obj})
		if got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

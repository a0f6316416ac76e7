package istio

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/weirproxy/weir/controller/attach"
)

// TestLearn: from objects to what is refused and where Gateways are reached.
func TestLearn(t *testing.T) {
	t.Parallel()
	golden(t, "testdata/learn/*.in.yaml", func(t *testing.T, document []byte) string {
		in := read(t, document)
		got := learn(in, config())
		shuffle(in)
		if diff := cmp.Diff(got, learn(in, config())); diff != "" {
			t.Errorf("the order of the objects shows (-sorted +shuffled):\n%s", diff)
		}
		all := map[string]any{"guards": got.Guards, "addresses": got.Addresses}
		if got.VirtualServices != nil || got.ClassicGateways != nil {
			all["virtualServices"], all["classicGateways"] = got.VirtualServices, got.ClassicGateways
		}
		out, err := yaml.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	})
}

func config() Config { return Config{RootNamespace: "istio-system", ClusterDomain: "cluster.local"} }

// read decodes the documents of a file, by kind.
func read(t *testing.T, file []byte) *observed {
	t.Helper()
	in := &observed{}
	for document := range bytes.SplitSeq(file, []byte("---\n")) {
		u := decode[unstructured.Unstructured](t, document)
		switch u.GetKind() {
		case "GatewayClass":
			in.classes = append(in.classes, decode[gatewayv1.GatewayClass](t, document))
		case "VirtualService":
			in.virtual = append(in.virtual, u)
		case "Gateway":
			if u.GroupVersionKind().Group == groupIstio {
				in.classic = append(in.classic, u)
				break
			}
			in.gateways = append(in.gateways, decode[gatewayv1.Gateway](t, document))
		case "HTTPRoute":
			in.routes = append(in.routes, decode[gatewayv1.HTTPRoute](t, document))
		case "Service":
			in.services = append(in.services, decode[corev1.Service](t, document))
		case "Namespace":
			in.namespaces = append(in.namespaces, decode[corev1.Namespace](t, document))
		case "Deployment":
			in.deployments = append(in.deployments, u)
		case "AuthorizationPolicy":
			in.authorization = append(in.authorization, u)
		default:
			t.Fatalf("a document of kind %q", u.GetKind())
		}
	}
	return in
}

func decode[T any](t *testing.T, document []byte) T {
	t.Helper()
	var out T
	data, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		t.Fatalf("%v:\n%s", err, document)
	}
	if u, ok := any(&out).(*unstructured.Unstructured); ok {
		err = u.UnmarshalJSON(data) // with whole numbers, as from the API server
	} else {
		err = yaml.UnmarshalStrict(data, &out)
	}
	if err != nil {
		t.Fatalf("%v:\n%s", err, document)
	}
	return out
}

func shuffle(in *observed) {
	random := func(n int, swap func(i, j int)) { rand.Shuffle(n, swap) }
	random(len(in.routes), func(i, j int) { in.routes[i], in.routes[j] = in.routes[j], in.routes[i] })
	random(len(in.gateways), func(i, j int) { in.gateways[i], in.gateways[j] = in.gateways[j], in.gateways[i] })
	random(len(in.virtual), func(i, j int) { in.virtual[i], in.virtual[j] = in.virtual[j], in.virtual[i] })
	random(len(in.services), func(i, j int) { in.services[i], in.services[j] = in.services[j], in.services[i] })
}

// TestLearnNothing: no objects, no guards.
func TestLearnNothing(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(attach.Learned{}, learn(&observed{}, config())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

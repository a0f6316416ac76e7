package translate_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/cachepolicy/feed"
	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	"github.com/weirproxy/weir/controller/translate"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestTranslate goes through testdata: each NAME.in.yaml gives NAME.out.yaml.
func TestTranslate(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no input files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".in.yaml"), func(t *testing.T) {
			t.Parallel()
			out := translate.Translate(readInput(t, file))
			checkFeed(t, out)
			checkAttached(t, out)
			got, err := yaml.Marshal(viewOf(out))
			if err != nil {
				t.Fatal(err)
			}
			golden := strings.TrimSuffix(file, ".in.yaml") + ".out.yaml"
			if *update {
				if err := os.WriteFile(golden, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s\nIf this is right, run the test with -update.", golden, diff)
			}
		})
	}
}

// inputFile is what an input file has. Routes without a status count as accepted by
// each of their parents; without controllers it is Envoy Gateway's class eg, and with
// attachNone nobody's.
type inputFile struct {
	AttachNone  bool
	Controllers []controllerFile
	Guards      []translate.Guard
	Addresses   []translate.Address
	// Certificates are by namespace/name of the Secret.
	Certificates map[string]string
	Objects      []json.RawMessage
	// VirtualServices and ClassicGateways are as Translate has them.
	VirtualServices []*translate.VirtualService
	ClassicGateways []*translate.ClassicGateway
}

// controllerFile is a Controller with durations in words.
type controllerFile struct {
	Name, Attachment                              string
	RouteNames                                    translate.RouteNames
	Mesh                                          bool
	Refusal                                       string
	HoldMargin, MessageTimeout, MaxMessageTimeout metav1.Duration
}

const envoyGateway = "gateway.envoyproxy.io/gatewayclass-controller"

func readInput(t *testing.T, file string) *translate.Input {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var f inputFile
	if err := yaml.UnmarshalStrict(data, &f); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	in := &translate.Input{Guards: f.Guards, Addresses: f.Addresses,
		VirtualServices: f.VirtualServices, ClassicGateways: f.ClassicGateways,
		GatewayClasses: []*gatewayv1.GatewayClass{newClass("eg", envoyGateway)}}
	if len(f.Controllers) == 0 && !f.AttachNone {
		in.Controllers = []translate.Controller{envoyGatewayController()}
	}
	for _, c := range f.Controllers {
		in.Controllers = append(in.Controllers, translate.Controller{Name: c.Name, Attachment: c.Attachment,
			RouteNames: c.RouteNames, Mesh: c.Mesh, Refusal: c.Refusal, HoldMargin: c.HoldMargin.Duration,
			MessageTimeout: c.MessageTimeout.Duration, MaxMessageTimeout: c.MaxMessageTimeout.Duration})
	}
	for name, pem := range f.Certificates {
		if in.Certificates == nil {
			in.Certificates = map[types.NamespacedName][]byte{}
		}
		namespace, name, _ := strings.Cut(name, "/")
		in.Certificates[types.NamespacedName{Namespace: namespace, Name: name}] = []byte(pem)
	}
	for i, o := range f.Objects {
		if err := addObject(in, o); err != nil {
			t.Fatalf("%s: object %d: %v", file, i, err)
		}
	}
	for _, r := range in.HTTPRoutes {
		accept(in, r)
	}
	return in
}

func addObject(in *translate.Input, data []byte) error {
	var meta metav1.TypeMeta
	if err := json.Unmarshal(data, &meta); err != nil {
		return err
	}
	switch meta.Kind {
	case "CachePolicy":
		return decodeInto(&in.CachePolicies, data)
	case "GatewayClass":
		return decodeInto(&in.GatewayClasses, data)
	case "Gateway":
		return decodeInto(&in.Gateways, data)
	case "HTTPRoute":
		return decodeInto(&in.HTTPRoutes, data)
	case "ReferenceGrant":
		return decodeInto(&in.ReferenceGrants, data)
	case "Namespace":
		return decodeInto(&in.Namespaces, data)
	case "Service":
		return decodeInto(&in.Services, data)
	}
	return fmt.Errorf("kind %q is not known", meta.Kind)
}

func decodeInto[T any](list *[]*T, data []byte) error {
	o := new(T)
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	*list = append(*list, o)
	return d.Decode(o)
}

// accept makes a route accepted by its parents, if it has no status of its own.
func accept(in *translate.Input, r *gatewayv1.HTTPRoute) {
	if len(r.Status.Parents) > 0 {
		return
	}
	controllers := map[string]gatewayv1.GatewayController{}
	for _, g := range in.Gateways {
		for _, c := range in.GatewayClasses {
			if c.Name == string(g.Spec.GatewayClassName) {
				controllers[g.Namespace+"/"+g.Name] = c.Spec.ControllerName
			}
		}
	}
	for _, ref := range r.Spec.ParentRefs {
		namespace := r.Namespace
		if ref.Namespace != nil {
			namespace = string(*ref.Namespace)
		}
		r.Status.Parents = append(r.Status.Parents, gatewayv1.RouteParentStatus{ParentRef: ref,
			ControllerName: controllers[namespace+"/"+string(ref.Name)],
			Conditions: []metav1.Condition{{Type: string(gatewayv1.RouteConditionAccepted),
				Status: metav1.ConditionTrue, Reason: "Accepted"}}})
	}
}

func newClass(name, controller string) *gatewayv1.GatewayClass {
	return &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: gatewayv1.GatewayClassSpec{ControllerName: gatewayv1.GatewayController(controller)}}
}

// checkFeed decodes and compiles all there is in the feed, as a replica does.
func checkFeed(t *testing.T, out *translate.Output) {
	t.Helper()
	specs := map[string]*v1alpha1.CachePolicySpec{}
	entrances := map[string]bool{}
	var objects []feed.Object
	var changes []cachepolicy.Change
	for i := range out.Policies {
		p := &out.Policies[i]
		specs[p.Namespace+"/"+p.Name] = &p.Spec
		objects = append(objects, p)
	}
	for i := range out.Entrances {
		entrances[out.Entrances[i].Resource()] = true
		objects = append(objects, &out.Entrances[i])
	}
	for i := range out.Routes {
		objects = append(objects, &out.Routes[i])
	}
	for _, o := range objects {
		r, err := feed.Encode(o)
		if err != nil {
			t.Errorf("encode: %v", err)
			continue
		}
		decoded, err := feed.Decode(r.Name, r.Data)
		if err != nil {
			t.Errorf("decode %s: %v", r.Name, err)
		}
		changes = append(changes, cachepolicy.Change{Name: r.Name, Object: decoded})
	}
	_, verdicts := cachepolicy.NewTable().Apply(changes)
	for name, err := range verdicts {
		if err != nil {
			t.Errorf("a replica refuses %s: %v", name, err)
		}
	}
	for i := range out.Routes {
		checkRules(t, &out.Routes[i], specs, entrances)
	}
}

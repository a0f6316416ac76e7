package istio

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weirproxy/weir/controller/attach"
	"github.com/weirproxy/weir/controller/translate"
)

// Name is the word in --attach.
const Name = "istio"

// What is read and written beside the Gateway API and the core kinds.
//
//nolint:gochecknoglobals // constants, which Go has no way to say of structs
var (
	kindEnvoyFilter         = schema.GroupVersionKind{Group: groupIstio, Version: "v1alpha3", Kind: "EnvoyFilter"}
	kindClassicGateway      = schema.GroupVersionKind{Group: groupIstio, Version: "v1", Kind: kindGateway}
	kindVirtualService      = schema.GroupVersionKind{Group: groupIstio, Version: "v1", Kind: "VirtualService"}
	kindAuthorizationPolicy = schema.GroupVersionKind{
		Group: "security.istio.io", Version: "v1", Kind: "AuthorizationPolicy"}
)

// Config says what Istio is like.
type Config struct {
	// RootNamespace is where Istio takes settings for the whole mesh from: istio-system.
	RootNamespace string
	// ClusterDomain is the domain of Services: cluster.local.
	ClusterDomain string
}

// Attacher attaches the filter by EnvoyFilters.
type Attacher struct{ config Config }

var _ attach.Attacher = (*Attacher)(nil)

// New makes an Attacher.
func New(c Config) *Attacher { return &Attacher{c} }

// Name implements attach.Attacher.
func (*Attacher) Name() string { return Name }

// Controllers implements attach.Attacher. Waypoints are among them so that it can be said why they are refused.
func (*Attacher) Controllers() []translate.Controller {
	return []translate.Controller{
		{Name: GatewayController, Attachment: Name, Mesh: true, MessageTimeout: MessageTimeout,
			MaxMessageTimeout: MaxMessageTimeout},
		{Name: WaypointController, Attachment: Name, Refusal: refusalWaypoint},
	}
}

// Kinds implements attach.Attacher.
func (*Attacher) Kinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{kindEnvoyFilter, kindClassicGateway, kindVirtualService, kindAuthorizationPolicy,
		KindDeployment}
}

// Learn implements attach.Attacher.
func (a *Attacher) Learn(ctx context.Context, cached client.Reader) (attach.Learned, error) {
	in, err := observe(ctx, cached)
	if err != nil {
		return attach.Learned{}, fmt.Errorf("learn of Istio: %w", err)
	}
	return learn(in, a.config), nil
}

// Attach implements attach.Attacher.
func (a *Attacher) Attach(ctx context.Context, c client.Client, w attach.Wanted) ([]attach.Verdict, error) {
	verdicts := make([]attach.Verdict, len(w.Attachments))
	var wanted []*unstructured.Unstructured
	var placed []Placed
	if w.DataPlane.Resolves {
		selectors, err := selectors(ctx, c)
		if err != nil {
			return pending(verdicts, err.Error()), err
		}
		ports, err := servicePorts(ctx, c)
		if err != nil {
			return pending(verdicts, err.Error()), err
		}
		wanted, placed = EnvoyFilters(w.Attachments, Options{RootNamespace: a.config.RootNamespace,
			ClusterDomain: a.config.ClusterDomain, DataPlane: w.DataPlane, Release: w.Release,
			Selectors: selectors, ServicePorts: ports})
	} else {
		pending(verdicts, fmt.Sprintf("The Service %s of the data plane does not exist, or has no port %d.",
			w.DataPlane.Service, w.DataPlane.Port))
	}
	outcome, err := bring(ctx, c, wanted)
	if placed == nil {
		return verdicts, err
	}
	for i, p := range placed {
		verdicts[i] = outcome.verdict(p)
	}
	return verdicts, err
}

func pending(verdicts []attach.Verdict, message string) []attach.Verdict {
	for i := range verdicts {
		verdicts[i] = attach.Verdict{State: attach.Pending, Message: message}
	}
	return verdicts
}

// servicePorts are the ports of all Services.
func servicePorts(ctx context.Context, c client.Reader) (map[types.NamespacedName][]int32, error) {
	var list corev1.ServiceList
	if err := c.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Services: %w", err)
	}
	out := make(map[types.NamespacedName][]int32, len(list.Items))
	for i := range list.Items {
		s := &list.Items[i]
		for _, port := range s.Spec.Ports {
			if port.Protocol != corev1.ProtocolUDP {
				out[client.ObjectKeyFromObject(s)] = append(out[client.ObjectKeyFromObject(s)], port.Port)
			}
		}
	}
	return out, nil
}

// selectors are those of the classic Gateways.
func selectors(ctx context.Context, c client.Reader) (map[types.NamespacedName]map[string]string, error) {
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(kindClassicGateway)
	if err := c.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list the Gateways of %s: %w", groupIstio, err)
	}
	out := map[types.NamespacedName]map[string]string{}
	for i := range list.Items {
		g := &list.Items[i]
		selector, _, err := unstructured.NestedStringMap(g.Object, "spec", "selector")
		if err == nil {
			out[client.ObjectKeyFromObject(g)] = selector
		}
	}
	return out, nil
}

// outcome is what became of the EnvoyFilters, by namespace/name: nil for one that is as wanted.
type outcome map[string]error

// errForeign is that an object of the name is somebody else's.
var errForeign = errors.New("an object of that name is there which weir did not make; rename or delete it")

// bring writes the EnvoyFilters that are not as wanted and deletes those that are not wanted. One that cannot be
// written does not keep the others from it.
func bring(ctx context.Context, c client.Client, wanted []*unstructured.Unstructured) (outcome, error) {
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(kindEnvoyFilter)
	if err := c.List(ctx, &list); err != nil {
		return outcome{}, fmt.Errorf("list EnvoyFilters: %w", err)
	}
	there := map[client.ObjectKey]*unstructured.Unstructured{}
	for i := range list.Items {
		there[client.ObjectKeyFromObject(&list.Items[i])] = &list.Items[i]
	}
	out := outcome{}
	var errs []error
	want := map[client.ObjectKey]bool{}
	for _, w := range wanted {
		key := client.ObjectKeyFromObject(w)
		want[key] = true
		err := write(ctx, c, there[key], w)
		out[key.String()] = err
		if !errors.Is(err, errForeign) { // which a user must mend, and is seen when that is done
			errs = append(errs, err)
		}
	}
	for key, have := range there {
		if ours(have) && !want[key] {
			if err := client.IgnoreNotFound(c.Delete(ctx, have)); err != nil {
				errs = append(errs, fmt.Errorf("delete the EnvoyFilter %s: %w", key, err))
			}
		}
	}
	return out, errors.Join(errs...)
}

// write applies an EnvoyFilter if it is not so already.
func write(ctx context.Context, c client.Client, have, want *unstructured.Unstructured) error {
	if have != nil && !ours(have) {
		return errForeign
	}
	if have != nil && same(have, want) {
		return nil
	}
	configuration := client.ApplyConfigurationFromUnstructured(want.DeepCopy())
	if err := c.Apply(ctx, configuration, attach.FieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("write the EnvoyFilter %s: %w", client.ObjectKeyFromObject(want), err)
	}
	return nil
}

// ours says whether weir made an object.
func ours(u *unstructured.Unstructured) bool {
	have := u.GetLabels()
	return have["app.kubernetes.io/managed-by"] == attach.ManagedBy && have[labelComponent] == component
}

// same says whether an object has all that is wanted of it.
func same(have, want *unstructured.Unstructured) bool {
	return equality.Semantic.DeepEqual(have.Object["spec"], want.Object["spec"]) &&
		contains(have.GetLabels(), want.GetLabels()) && contains(have.GetAnnotations(), want.GetAnnotations()) &&
		equality.Semantic.DeepEqual(have.GetOwnerReferences(), want.GetOwnerReferences())
}

func contains(have, want map[string]string) bool {
	for key, value := range want {
		if have[key] != value {
			return false
		}
	}
	return true
}

// verdict says what became of an attachment.
func (o outcome) verdict(p Placed) attach.Verdict {
	name := p.Namespace + "/" + p.Name
	err, written := o[name]
	switch {
	case p.Problem != "":
		return attach.Verdict{State: attach.Blocked, Message: p.Problem}
	case !written:
		return attach.Verdict{State: attach.Pending, Message: fmt.Sprintf("The EnvoyFilter %s is not written yet.", name)}
	case errors.Is(err, errForeign):
		return attach.Verdict{State: attach.Blocked,
			Message: fmt.Sprintf("The EnvoyFilter %s cannot be written: %v.", name, err)}
	case err != nil:
		return attach.Verdict{State: attach.Pending, Message: sentence(err.Error())}
	}
	return attach.Verdict{State: attach.Attached}
}

package envoygateway

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/controller/attach"
	"github.com/weirproxy/weir/controller/translate"
)

// The API of Envoy Gateway.
const (
	group   = "gateway.envoyproxy.io"
	version = "v1alpha1"

	kindExtensionPolicy      = "EnvoyExtensionPolicy"
	kindSecurityPolicy       = "SecurityPolicy"
	kindBackendTrafficPolicy = "BackendTrafficPolicy"
	kindClientTrafficPolicy  = "ClientTrafficPolicy"

	// controllerName is the one that Envoy Gateway has by default.
	controllerName = "gateway.envoyproxy.io/gatewayclass-controller"
)

const (
	labelManagedBy = "app.kubernetes.io/managed-by"
	labelPartOf    = "app.kubernetes.io/part-of"
	// grantPrefix begins the names of ReferenceGrants; the namespace they are for
	// follows.
	grantPrefix = "weir-envoy-gateway-"
)

// Attacher attaches to the Gateways of Envoy Gateway. It implements [attach.Attacher].
type Attacher struct{}

var _ attach.Attacher = (*Attacher)(nil)

// Name implements [attach.Attacher].
func (*Attacher) Name() string { return "envoy-gateway" }

// Controllers implements [attach.Attacher].
func (a *Attacher) Controllers() []translate.Controller {
	return []translate.Controller{{
		Name: controllerName, Attachment: a.Name(), RouteNames: translate.RouteNamesEnvoyGateway, HoldMargin: holdMargin,
	}}
}

// Kinds implements [attach.Attacher].
func (*Attacher) Kinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		gvk(kindExtensionPolicy), gvk(kindSecurityPolicy), gvk(kindBackendTrafficPolicy), gvk(kindClientTrafficPolicy),
	}
}

func gvk(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: version, Kind: kind}
}

func grantGVK() schema.GroupVersionKind {
	return schema.GroupVersion(gatewayv1.GroupVersion).WithKind("ReferenceGrant")
}

// Attach implements [attach.Attacher].
func (*Attacher) Attach(ctx context.Context, c client.Client, w attach.Wanted) ([]attach.Verdict, error) {
	objects, err := listLabelled(ctx, c)
	if err != nil {
		return nil, err
	}
	others, ours := extensions{}, map[objectKey]*unstructured.Unstructured{}
	err = each(ctx, c, kindExtensionPolicy, func(o *unstructured.Unstructured) error {
		if isOurs(o) {
			ours[objectKey{o.GetNamespace(), o.GetName()}] = o
			return nil
		}
		return others.add(o, objects)
	})
	if err != nil {
		return nil, err
	}
	p := makePlan(w.Attachments, others)
	if !w.DataPlane.Resolves {
		p.withdraw(w.DataPlane)
	}
	errs := p.write(ctx, c, w, ours)
	status := map[objectKey]*judged{}
	for i, key := range p.carriers {
		if key == (objectKey{}) || p.verdicts[i].State != "" {
			continue
		}
		if status[key] == nil {
			status[key] = readStatus(key, ours[key])
		}
		p.verdicts[i] = status[key].verdict(&w.Attachments[i])
	}
	return p.verdicts, errs
}

// isOurs reports whether the object is one that this package wrote.
func isOurs(o *unstructured.Unstructured) bool {
	return o.GetLabels()[labelManagedBy] == attach.ManagedBy
}

// withdraw attaches nothing: a filter whose backend does not resolve is an error to
// Envoy Gateway. (1.9 bypasses it if it fails open, after it replaced what a user has
// on the Gateway above; earlier ones answer 500.)
func (p *plan) withdraw(dataPlane attach.DataPlane) {
	p.objects = nil
	for i := range p.carriers {
		p.carriers[i] = objectKey{}
		if p.verdicts[i].State == "" {
			p.verdicts[i] = attach.Verdict{State: attach.Pending, Message: fmt.Sprintf(
				"There is no Service %s with port %d, so nothing is attached and requests pass uncached.",
				dataPlane.Service, dataPlane.Port)}
		}
	}
}

// write brings the objects of the API server to what is planned. A grant comes before
// the policy that needs it, and goes after it.
func (p *plan) write(ctx context.Context, c client.Client, w attach.Wanted,
	ours map[objectKey]*unstructured.Unstructured) error {
	var errs []error
	grants, err := listGrants(ctx, c, w.DataPlane.Service.Namespace)
	if err != nil {
		return err
	}
	keys := slices.SortedFunc(maps.Keys(p.objects), func(a, b objectKey) int {
		return strings.Compare(a.namespace+"/"+a.name, b.namespace+"/"+b.name)
	})
	needed := map[string]bool{}
	for _, key := range keys {
		if key.namespace == w.DataPlane.Service.Namespace {
			continue
		}
		grant := referenceGrant(key.namespace, w.DataPlane)
		needed[grant.GetName()] = true
		errs = append(errs, apply(ctx, c, grant, grants[grant.GetName()]))
	}
	for _, key := range keys {
		err := apply(ctx, c, extensionPolicy(key, p.objects[key], &w), ours[key])
		errs = append(errs, p.told(key, err))
	}
	for key, o := range ours {
		if p.objects[key] == nil {
			errs = append(errs, remove(ctx, c, o))
		}
	}
	for name, o := range grants {
		if !needed[name] {
			errs = append(errs, remove(ctx, c, o))
		}
	}
	return errors.Join(errs...)
}

// told turns an error that a user must mend into verdicts.
func (p *plan) told(key objectKey, err error) error {
	if !errors.Is(err, errForeign) {
		return err
	}
	for i := range p.carriers {
		if p.carriers[i] == key {
			p.verdicts[i] = attach.Verdict{State: attach.Blocked, Message: fmt.Sprintf(
				"EnvoyExtensionPolicy %s/%s has the name that weir-controller needs, but not its label. Rename it.",
				key.namespace, key.name)}
		}
	}
	return nil
}

func listGrants(ctx context.Context, c client.Reader, namespace string) (map[string]*unstructured.Unstructured, error) {
	list := &gatewayv1.ReferenceGrantList{}
	err := c.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{labelManagedBy: attach.ManagedBy})
	if err != nil {
		return nil, fmt.Errorf("list ReferenceGrants: %w", err)
	}
	grants := map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		g := &list.Items[i]
		if !strings.HasPrefix(g.Name, grantPrefix) {
			continue
		}
		u, err := toUnstructured(g, grantGVK())
		if err != nil {
			return nil, err
		}
		grants[g.Name] = u
	}
	return grants, nil
}

// remove deletes an object that is not wanted any more.
func remove(ctx context.Context, c client.Client, o *unstructured.Unstructured) error {
	err := c.Delete(ctx, o, client.Preconditions{UID: new(o.GetUID())})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete %s %s/%s: %w", o.GetKind(), o.GetNamespace(), o.GetName(), err)
	}
	return nil
}

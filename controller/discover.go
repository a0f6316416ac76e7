package controller

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	"github.com/weirproxy/weir/controller/attach"
)

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, gatewayv1.Install, v1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("make a scheme: %w", err)
		}
	}
	return scheme, nil
}

// watched are the kinds of which every change is looked at, but for those of the
// attachments.
func watched() []client.Object {
	return []client.Object{
		&v1alpha1.CachePolicy{}, &gatewayv1.GatewayClass{}, &gatewayv1.Gateway{}, &gatewayv1.HTTPRoute{},
		&gatewayv1.ReferenceGrant{}, &corev1.Namespace{}, &corev1.Service{}, &discoveryv1.EndpointSlice{},
	}
}

// requirement is a group of kinds, and what to install where it is not there.
type requirement struct {
	kinds   []schema.GroupVersionKind
	install string
}

func requirements(attachers []attach.Attacher) []requirement {
	var r []requirement
	weir, gateway := v1alpha1.GroupVersion(), schema.GroupVersion(gatewayv1.GroupVersion)
	r = append(r,
		requirement{
			[]schema.GroupVersionKind{weir.WithKind(v1alpha1.Kind), weir.WithKind(v1alpha1.InvalidationKind)},
			"install the chart weir-crds, of the release of this program",
		},
		requirement{
			[]schema.GroupVersionKind{
				gateway.WithKind("GatewayClass"), gateway.WithKind("Gateway"), gateway.WithKind("HTTPRoute"),
				gateway.WithKind("ReferenceGrant"),
			},
			"install the Gateway API, standard channel, v1.5 or later",
		})
	for _, a := range attachers {
		install := "it is needed by --attach=" + a.Name() + ": install its CRDs, or attach to others"
		r = append(r, requirement{a.Kinds(), install})
	}
	return r
}

// discover reports which of the kinds that are needed the API server does not know,
// with what to do.
func discover(mapper meta.RESTMapper, needed []requirement) error {
	var faults []error
	for _, r := range needed {
		for _, kind := range r.kinds {
			_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
			switch {
			case meta.IsNoMatchError(err):
				faults = append(faults, fmt.Errorf("the API server does not know %s of %s: %s",
					kind.Kind, kind.GroupVersion(), r.install))
			case err != nil:
				return fmt.Errorf("ask the API server for %s: %w", kind, err)
			}
		}
	}
	return errors.Join(faults...)
}

// ofKind returns an empty object to watch.
func ofKind(kind schema.GroupVersionKind) client.Object {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	return o
}

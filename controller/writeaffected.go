package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/controller/status"
	"github.com/weirproxy/weir/controller/translate"
)

// writeAffected tells the objects on which policies are in force, and takes it back
// from those on which they no longer are.
func (w *writer) writeAffected(ctx context.Context, s *state) error {
	gateways, routes := map[types.NamespacedName]*translate.Affected{}, map[types.NamespacedName]*translate.Affected{}
	for i := range s.out.Affected {
		a := &s.out.Affected[i]
		switch a.Kind {
		case "Gateway":
			gateways[types.NamespacedName{Namespace: a.Namespace, Name: a.Name}] = a
		case "HTTPRoute":
			routes[types.NamespacedName{Namespace: a.Namespace, Name: a.Name}] = a
		}
	}
	return errors.Join(w.affectedGateways(ctx, gateways, s.now), w.affectedRoutes(ctx, routes, s.now))
}

func (w *writer) affectedGateways(ctx context.Context, affected map[types.NamespacedName]*translate.Affected,
	now time.Time) error {
	var list gatewayv1.GatewayList
	if err := w.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Gateways: %w", err)
	}
	var errs []error
	for i := range list.Items {
		g := &list.Items[i]
		want := affected[client.ObjectKeyFromObject(g)]
		c, changed := status.GatewayCondition(g.Status.Conditions, want, g.Generation, now)
		if changed && (want == nil || want.Generation == g.Generation) {
			errs = append(errs, w.applyCondition(ctx, g, c))
		}
	}
	return errors.Join(errs...)
}

// applyCondition writes one condition of a Gateway by server-side apply, which leaves
// those of others alone; nil takes it back.
func (w *writer) applyCondition(ctx context.Context, g *gatewayv1.Gateway, c *metav1.Condition) error {
	conditions := []any{}
	if c != nil {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c)
		if err != nil {
			return err
		}
		conditions = append(conditions, content)
	}
	o := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": g.Namespace, "name": g.Name, "uid": string(g.UID)},
		"status":   map[string]any{"conditions": conditions},
	}}
	o.SetGroupVersionKind(schema.GroupVersion(gatewayv1.GroupVersion).WithKind("Gateway"))
	configuration := client.ApplyConfigurationFromUnstructured(o)
	err := w.client.Status().Apply(ctx, configuration, affectedFieldOwner, client.ForceOwnership)
	if err == nil {
		w.metrics.writes.WithLabelValues(writeAffected).Inc()
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // gone, or another of the name
		return nil
	}
	return err
}

// affectedFieldOwner owns that condition alone.
const affectedFieldOwner = client.FieldOwner("weir-controller-affected")

func (w *writer) affectedRoutes(ctx context.Context, affected map[types.NamespacedName]*translate.Affected,
	now time.Time) error {
	var list gatewayv1.HTTPRouteList
	if err := w.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list HTTPRoutes: %w", err)
	}
	var errs []error
	for i := range list.Items {
		r := &list.Items[i]
		want := affected[client.ObjectKeyFromObject(r)]
		parents, changed := status.RouteParents(r.Status.Parents, want, r.Namespace, r.Generation, now)
		if !changed || want != nil && want.Generation != r.Generation {
			continue
		}
		next := *r
		next.Status.Parents = parents
		patch := client.MergeFromWithOptions(r, client.MergeFromWithOptimisticLock{})
		// A copy, since the answer is decoded into it, and r is the cache's.
		err := w.client.Status().Patch(ctx, next.DeepCopy(), patch, attachFieldOwner)
		switch {
		case err == nil:
			w.metrics.writes.WithLabelValues(writeAffected).Inc()
		case !apierrors.IsNotFound(err) && !apierrors.IsConflict(err):
			errs = append(errs, fmt.Errorf("write the status of HTTPRoute %s/%s: %w", r.Namespace, r.Name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

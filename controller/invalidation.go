package controller

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	wire "github.com/weirproxy/weir/cachepolicy/feed"
	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	"github.com/weirproxy/weir/controller/feed"
	"github.com/weirproxy/weir/controller/status"
)

const (
	// invalidateTimeout bounds how long replicas are waited for.
	invalidateTimeout = 20 * time.Second
	// invalidateAtOnce bounds how many are carried out at one time.
	invalidateAtOnce = 4
	// giveUpAfter is for how long an invalidation is tried that no replica has taken.
	giveUpAfter = 10 * time.Minute
)

// invalidator carries out CacheInvalidations, on the elected replica alone.
//
// That one was begun is written before any replica is told, and the outcome after. A
// controller that dies in between leaves one that was begun: the next leader tells the
// replicas again, since to do it twice costs a few fetches, and to do it never would be
// wrong.
type invalidator struct {
	client  client.Client
	feed    *feed.Server
	metrics *metrics
	log     *slog.Logger
}

func addInvalidations(mgr manager.Manager, server *feed.Server, m *metrics, log *slog.Logger) error {
	return builder.ControllerManagedBy(mgr).Named("cacheinvalidation").For(&v1alpha1.CacheInvalidation{}).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: invalidateAtOnce,
			SkipNameValidation:      new(true), // a process may run more than one, as tests do
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
				500*time.Millisecond, 30*time.Second),
		}).
		Complete(&invalidator{client: mgr.GetClient(), feed: server, metrics: m, log: log})
}

// Reconcile implements [reconcile.Reconciler].
func (r *invalidator) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	o := &v1alpha1.CacheInvalidation{}
	if err := r.client.Get(ctx, req.NamespacedName, o); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	now := time.Now()
	switch {
	case !o.DeletionTimestamp.IsZero():
		return reconcile.Result{}, nil
	case o.Status.CompletionTime != nil:
		return r.expire(ctx, o, now)
	case o.Status.StartTime == nil:
		started := o.DeepCopy()
		status.Begin(started, now)
		return reconcile.Result{}, r.write(ctx, o, started) // whose event leads on
	}
	ctx, cancel := context.WithTimeout(ctx, invalidateTimeout)
	defer cancel()
	outcome, err := r.feed.Invalidate(ctx, invalidation(o))
	finished := o.DeepCopy()
	now = time.Now()
	if err != nil && now.Sub(o.Status.StartTime.Time) < giveUpAfter {
		status.Fail(finished, err.Error(), now, false)
		if errWrite := r.write(ctx, o, finished); errWrite != nil {
			return reconcile.Result{}, errWrite
		}
		return reconcile.Result{}, fmt.Errorf("invalidate: %w", err) // again, after a while
	}
	if err != nil {
		status.Fail(finished, err.Error(), now, true)
	} else {
		status.Finish(finished, status.Outcome{
			Covered: outcome.Covered, Confirmed: outcome.Confirmed, Total: outcome.Total, Silent: outcome.Silent,
			Warnings: outcome.Warnings,
		}, now)
	}
	r.log.Info("Invalidation finished", "name", req.String(), "confirmed", outcome.Confirmed, "total", outcome.Total)
	return reconcile.Result{}, r.write(context.WithoutCancel(ctx), o, finished)
}

// write patches the status, if it differs.
func (r *invalidator) write(ctx context.Context, before, after *v1alpha1.CacheInvalidation) error {
	if status.SameInvalidation(before, after) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	err := r.client.Status().Patch(ctx, after, patch, attachFieldOwner)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // another event comes
	}
	if err == nil {
		r.metrics.writes.WithLabelValues(writeInvalidation).Inc()
	}
	return err
}

// expire removes a finished invalidation when its time is up.
func (r *invalidator) expire(ctx context.Context, o *v1alpha1.CacheInvalidation, now time.Time) (
	reconcile.Result, error) {
	ttl := o.Spec.TTLSecondsAfterFinished
	if ttl == nil {
		return reconcile.Result{}, nil
	}
	left := o.Status.CompletionTime.Add(time.Duration(*ttl) * time.Second).Sub(now)
	if left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	err := r.client.Delete(ctx, o, client.Preconditions{UID: &o.UID, ResourceVersion: &o.ResourceVersion})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, err
}

// invalidation is what the object asks of the data plane.
func invalidation(o *v1alpha1.CacheInvalidation) wire.Invalidate {
	i := wire.Invalidate{Namespace: o.Namespace, Mode: string(v1alpha1.InvalidationHard)}
	if o.Spec.Mode != nil {
		i.Mode = string(*o.Spec.Mode)
	}
	switch s := &o.Spec; {
	case s.URL != nil:
		i.By, i.Value = "Url", *s.URL
	case s.Tag != nil:
		i.By, i.Value = "Tag", *s.Tag
	case s.Host != nil:
		i.By, i.Value = "Host", *s.Host
	case s.Policy != nil:
		i.By, i.Value = "Policy", string(*s.Policy)
	}
	return i
}

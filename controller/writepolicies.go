package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	"github.com/weirproxy/weir/controller/status"
	"github.com/weirproxy/weir/controller/translate"
)

// writePolicies brings the status of every CachePolicy to what holds.
func (w *writer) writePolicies(ctx context.Context, s *state) error {
	var policies v1alpha1.CachePolicyList
	if err := w.client.List(ctx, &policies, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list CachePolicies: %w", err)
	}
	verdicts := make(map[types.NamespacedName]*translate.Verdict, len(s.out.Verdicts))
	for i := range s.out.Verdicts {
		verdicts[s.out.Verdicts[i].Policy] = &s.out.Verdicts[i]
	}
	var errs []error
	for i := range policies.Items {
		p := &policies.Items[i]
		v := verdicts[client.ObjectKeyFromObject(p)]
		if v == nil || v.Generation != p.Generation || !p.DeletionTimestamp.IsZero() {
			continue // the next translation knows it
		}
		errs = append(errs, w.writePolicy(ctx, s, p, v))
		if ctx.Err() != nil {
			break
		}
	}
	w.forget(verdicts)
	return errors.Join(errs...)
}

// forget drops what is remembered of policies that are gone.
func (w *writer) forget(verdicts map[types.NamespacedName]*translate.Verdict) {
	gone := func(policy string) bool {
		namespace, name, _ := strings.Cut(policy, "/")
		return verdicts[types.NamespacedName{Namespace: namespace, Name: name}] == nil
	}
	for policy := range w.since {
		if gone(policy) {
			delete(w.since, policy)
			delete(w.counted, policy)
		}
	}
	for policy := range w.omitted {
		if gone(policy) {
			delete(w.omitted, policy)
		}
	}
}

// writePolicy writes one policy's status, if it changes. p is the cache's own.
func (w *writer) writePolicy(ctx context.Context, s *state, p *v1alpha1.CachePolicy, v *translate.Verdict) error {
	wanted := make([]status.Ancestor, 0, len(v.Ancestors))
	for i := range v.Ancestors {
		wanted = append(wanted, w.ancestor(s, p, &v.Ancestors[i]))
	}
	merged := status.Ancestors(p.Status.Ancestors, wanted, p.Generation, s.now)
	w.sayOmitted(p, v, merged.Omitted)
	traffic := w.trafficOf(s, p)
	if !merged.Changed && traffic == nil {
		return nil
	}
	next := *p
	next.Status.Ancestors = merged.Ancestors
	if traffic != nil {
		next.Status.Traffic = traffic
	}
	// The lock keeps a pass that sees an old status from writing what is there already.
	patch := client.MergeFromWithOptions(p, client.MergeFromWithOptimisticLock{})
	// A copy, since the answer is decoded into it, and p is the cache's.
	err := w.client.Status().Patch(ctx, next.DeepCopy(), patch, attachFieldOwner)
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		return nil // the cache will know, and poke
	case err != nil:
		return fmt.Errorf("write the status of CachePolicy %s/%s: %w", p.Namespace, p.Name, err)
	}
	w.metrics.writes.WithLabelValues(writePolicy).Inc()
	if traffic != nil {
		w.startPeriod(s, p.Namespace+"/"+p.Name)
	}
	for _, t := range merged.Transitions {
		w.sayTransition(p, t)
	}
	return nil
}

// sayTransition makes an event of a condition that changed.
func (w *writer) sayTransition(p *v1alpha1.CachePolicy, t status.Transition) {
	kind := corev1.EventTypeNormal
	if t.Status == metav1.ConditionFalse && t.Reason != v1alpha1.PolicyReasonReconciling {
		kind = corev1.EventTypeWarning
	}
	w.recorder.Eventf(p, nil, kind, t.Reason, "Reconcile", "%s", note(fmt.Sprintf("%s is %s at %s: %s",
		t.Type, t.Status, nameOf(&t.Ref), t.Message)))
}

// sayOmitted says once, while it holds, that not all ancestors have room in the status.
func (w *writer) sayOmitted(p *v1alpha1.CachePolicy, v *translate.Verdict, omitted int) {
	policy := p.Namespace + "/" + p.Name
	omitted += v.Omitted
	if omitted > 0 && w.omitted[policy] != omitted {
		w.recorder.Eventf(p, nil, corev1.EventTypeWarning, "AncestorsOmitted", "Reconcile", "%s", note(fmt.Sprintf(
			"The status has no room for %d more ancestors: the API allows %d, those of other controllers included.",
			omitted, translate.MaxAncestors)))
	}
	if w.omitted[policy] = omitted; omitted == 0 {
		delete(w.omitted, policy)
	}
}

// note is a text that an event can carry.
func note(text string) string {
	const most = 1024
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most-len("…")], "") + "…"
	}
	return text
}

func nameOf(ref *gatewayv1.ParentReference) string {
	s := string(ref.Name)
	if ref.Namespace != nil {
		s = string(*ref.Namespace) + "/" + s
	}
	if ref.Kind != nil {
		s = string(*ref.Kind) + " " + s
	}
	return s
}

// ancestor says what holds of a policy at an ancestor.
func (w *writer) ancestor(s *state, p *v1alpha1.CachePolicy, a *translate.Ancestor) status.Ancestor {
	out := status.Ancestor{Ref: a.Ref, Accepted: a.Accepted, ResolvedRefs: a.ResolvedRefs}
	if a.Accepted.Status != metav1.ConditionTrue {
		return out
	}
	policy := p.Namespace + "/" + p.Name
	facts := status.Facts{
		Override: a.Override, OverrideMessage: a.OverrideMessage, Ready: len(s.ready), Starting: s.starting,
		Before: status.Find(p.Status.Ancestors, &a.Ref, v1alpha1.PolicyConditionProgrammed),
		Manual: len(w.attachers) == 0, Instructions: w.instructions(policy), Seen: s.traffic[policy].Requests > 0,
	}
	if facts.Before != nil && facts.Before.ObservedGeneration != p.Generation {
		facts.Before = nil
	}
	for _, replica := range s.ready {
		switch {
		case !s.connected[replica]:
			facts.Unheard = append(facts.Unheard, replica)
		case !w.feed.Runs(replica, a.Resources...):
			facts.Waiting = append(facts.Waiting, replica)
		}
	}
	if len(facts.Waiting) > 0 {
		facts.Rejections = w.rejections(a.Resources, facts.Waiting)
	}
	key := ancestorKey{policy: policy, named: string(a.Ref.Name)}
	if a.Ref.Kind != nil {
		key.kind = string(*a.Ref.Kind)
	}
	if a.Ref.Namespace != nil {
		key.ns = string(*a.Ref.Namespace)
	}
	facts.Attachments = s.verdicts[key]
	out.Programmed = status.Programmed(&facts)
	return out
}

// rejections are the reasons for which some of the replicas refuse resources; of each
// the first.
func (w *writer) rejections(resources, replicas []string) map[string]string {
	out := map[string]string{}
	for _, resource := range resources {
		for replica, reason := range w.feed.Rejections(resource) {
			for _, r := range replicas {
				if r == replica && out[r] == "" {
					out[r] = resource + ": " + reason
				}
			}
		}
	}
	return out
}

// instructions say what a user has to configure who attaches the filter.
func (w *writer) instructions(policy string) string {
	return fmt.Sprintf("The controller attaches nothing (--attach=none). Have Envoy's ext_proc filter call "+
		"%s.%s.svc:%d with the initial metadata x-weir-policy: %s on the routes, or with the attribute xds.route_name; "+
		"see docs/how-to. This becomes True with the first request.", w.service.Name, w.service.Namespace, w.port, policy)
}

// trafficOf returns what is to be written of a policy's traffic; nil: nothing now.
func (w *writer) trafficOf(s *state, p *v1alpha1.CachePolicy) *v1alpha1.CachePolicyTraffic {
	policy := p.Namespace + "/" + p.Name
	since, ok := w.since[policy]
	if !ok {
		w.startPeriod(s, policy)
		return nil
	}
	if s.now.Sub(since) < status.TrafficPeriod || recently(p.Status.Traffic, s.now) {
		return nil
	}
	return status.Traffic(p.Status.Traffic, w.counted[policy], s.traffic[policy], since, s.now)
}

// recently reports whether traffic was written less than a period ago, by whichever
// replica was the leader.
func recently(t *v1alpha1.CachePolicyTraffic, now time.Time) bool {
	return t != nil && t.LastUpdateTime != nil && now.Sub(t.LastUpdateTime.Time) < status.TrafficPeriod
}

func (w *writer) startPeriod(s *state, policy string) {
	w.since[policy], w.counted[policy] = s.now, s.traffic[policy]
}

// attachFieldOwner is the field manager of status writes.
const attachFieldOwner = client.FieldOwner("weir-controller")

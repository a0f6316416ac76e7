package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	wire "github.com/weirproxy/weir/cachepolicy/feed"
	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	"github.com/weirproxy/weir/controller/attach"
	"github.com/weirproxy/weir/controller/feed"
	"github.com/weirproxy/weir/controller/translate"
)

const (
	// settleTime is for how long the writer waits after something happened, before it
	// looks: replicas take a change one after the other, and what they say together is
	// one write.
	settleTime = 200 * time.Millisecond
	// writeRetry and writeRetryMax are when a pass that failed is tried again.
	writeRetry    = 500 * time.Millisecond
	writeRetryMax = 30 * time.Second
	// lookAgain is when a pass is made although nothing happened: for what follows from
	// time alone, and what was waited for in vain.
	lookAgain = 30 * time.Second
	// startGrace is for how long a replica of the data plane that is ready may not have
	// reported, without a policy being said not to be in force any more.
	startGrace = 30 * time.Second
)

// writerOptions are what a writer is told of the configuration.
type writerOptions struct {
	attachers []attach.Attacher
	service   types.NamespacedName
	port      int32
	// ownerRole is the ClusterRole that owns what is attached; empty: the policies do.
	ownerRole string
}

// writer attaches and writes status. It runs on the elected replica alone.
type writer struct {
	writerOptions
	client   client.Client
	api      client.Reader // not cached
	loop     *loop
	feed     *feed.Server
	metrics  *metrics
	recorder events.EventRecorder
	log      *slog.Logger

	// Of this term as leader.
	firstSeen map[string]time.Time    // of ready replicas
	counted   map[string]wire.Traffic // by policy, when its period began
	since     map[string]time.Time    // when it did
	omitted   map[string]int          // by policy, ancestors without room, as an event has said
	owner     *metav1.OwnerReference  // the ClusterRole, once it was read
}

func newWriter(mgr manager.Manager, l *loop, o writerOptions) *writer {
	return &writer{
		writerOptions: o, client: mgr.GetClient(), api: mgr.GetAPIReader(), loop: l, feed: l.feed, metrics: l.metrics,
		recorder: mgr.GetEventRecorder("weir-controller"), log: l.log,
	}
}

// NeedLeaderElection implements [manager.LeaderElectionRunnable].
func (*writer) NeedLeaderElection() bool { return true }

// Start implements [manager.Runnable].
func (w *writer) Start(ctx context.Context) error {
	w.firstSeen, w.counted, w.since = map[string]time.Time{}, map[string]wire.Traffic{}, map[string]time.Time{}
	w.omitted, w.owner = map[string]int{}, nil
	again, wait := time.NewTimer(0), writeRetry
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.loop.told:
		case <-w.feed.Changed():
		case <-again.C:
		}
		if !sleep(ctx, settleTime) {
			return nil
		}
		next := lookAgain
		if err := w.pass(ctx); err != nil && ctx.Err() == nil {
			w.log.Warn("Not all was written, trying again", "in", wait, "error", err)
			next, wait = wait, min(2*wait, writeRetryMax)
		} else {
			wait = writeRetry
		}
		again.Reset(next)
	}
}

// state is what one pass follows from.
type state struct {
	now       time.Time
	out       *translate.Output
	ready     []string // replicas of the data plane
	connected map[string]bool
	starting  bool // a ready replica may not have had time to report
	traffic   map[string]wire.Traffic
	// verdicts are, by policy and ancestor, what became of the attachments there.
	verdicts map[ancestorKey][]attach.Verdict
}

// ancestorKey is a policy at an ancestor.
type ancestorKey struct {
	policy          string // namespace/name
	kind, ns, named string
}

// pass attaches and writes what differs from what is there.
func (w *writer) pass(ctx context.Context) error {
	current := w.loop.current.Load()
	if current == nil {
		return nil
	}
	s := &state{now: time.Now(), out: current.out, connected: map[string]bool{}, traffic: w.feed.Traffic()}
	plane, ready, err := readDataPlane(ctx, w.client, w.service, w.port)
	if err != nil {
		return err
	}
	s.ready = ready
	for _, r := range w.feed.Replicas() {
		s.connected[r.Name] = true
	}
	s.starting = w.starting(s)
	var errs []error
	errs = append(errs, w.attach(ctx, s, plane), w.writePolicies(ctx, s), w.writeAffected(ctx, s))
	w.log.Debug("Status looked at", "policies", len(s.out.Verdicts), "took", time.Since(s.now))
	return errors.Join(errs...)
}

// starting notes when ready replicas were seen first, and reports whether all of those
// that are not connected were seen a short while ago.
func (w *writer) starting(s *state) bool {
	seen, starting := map[string]time.Time{}, true
	for _, name := range s.ready {
		first, ok := w.firstSeen[name]
		if !ok || s.connected[name] {
			first = s.now // of one that was connected: since it went
		}
		seen[name] = first
		if !s.connected[name] && s.now.Sub(first) > startGrace {
			starting = false
		}
	}
	w.firstSeen = seen
	return starting
}

// attach has every Attacher attach what is its own.
func (w *writer) attach(ctx context.Context, s *state, plane attach.DataPlane) error {
	s.verdicts = map[ancestorKey][]attach.Verdict{}
	owners, err := w.owners(ctx)
	if err != nil {
		return err
	}
	release, err := w.release(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, a := range w.attachers {
		wanted := attach.Wanted{DataPlane: plane, Owners: owners, Release: release}
		for i := range s.out.Attached {
			if handles(a, &s.out.Attached[i]) {
				wanted.Attachments = append(wanted.Attachments, s.out.Attached[i])
			}
		}
		verdicts, err := a.Attach(ctx, w.client, wanted)
		errs = append(errs, err)
		for i := range wanted.Attachments {
			v := attach.Verdict{State: attach.Pending, Message: "It is being attached."}
			if i < len(verdicts) {
				v = verdicts[i]
			}
			s.note(&wanted.Attachments[i], v)
		}
	}
	return errors.Join(errs...)
}

// note adds a verdict to every policy that is in force there.
func (s *state) note(a *translate.Attachment, v attach.Verdict) {
	key := ancestorKey{named: string(a.Parent.Name)}
	if a.Parent.Kind != nil {
		key.kind = string(*a.Parent.Kind)
	}
	if a.Parent.Namespace != nil {
		key.ns = string(*a.Parent.Namespace)
	}
	for _, l := range a.Layers {
		key.policy = l.Policy
		s.verdicts[key] = append(s.verdicts[key], v)
	}
}

// handles reports whether the attachment is the Attacher's.
func handles(a attach.Attacher, at *translate.Attachment) bool {
	for _, c := range a.Controllers() {
		if c.Name == at.Controller || at.Controller == "" && c.Mesh {
			return true
		}
	}
	return false
}

// release is a reference to the ClusterRole that owns what is attached; nil: none.
func (w *writer) release(ctx context.Context) (*metav1.OwnerReference, error) {
	if w.ownerRole == "" || w.owner != nil {
		return w.owner, nil
	}
	var role rbacv1.ClusterRole
	if err := w.api.Get(ctx, types.NamespacedName{Name: w.ownerRole}, &role); err != nil {
		return nil, fmt.Errorf("--owner-cluster-role: %w", err)
	}
	w.owner = &metav1.OwnerReference{
		APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole", Name: role.Name, UID: role.UID,
	}
	return w.owner, nil
}

// owners are the references to the policies that there are.
func (w *writer) owners(ctx context.Context) (map[string]metav1.OwnerReference, error) {
	var policies v1alpha1.CachePolicyList
	if err := w.client.List(ctx, &policies, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	owners := make(map[string]metav1.OwnerReference, len(policies.Items))
	for i := range policies.Items {
		p := &policies.Items[i]
		owners[p.Namespace+"/"+p.Name] = metav1.OwnerReference{
			APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.Kind, Name: p.Name, UID: p.UID,
		}
	}
	return owners, nil
}

package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/cachepolicy/feed"
	"github.com/weirproxy/weir/extproc/admin"
	"github.com/weirproxy/weir/extproc/feedclient"
	"github.com/weirproxy/weir/extproc/metrics"
	"github.com/weirproxy/weir/extproc/refill"
)

// followController makes what keeps the policies at what the controller says. Until
// its first word there are none: requests pass by. Nothing is dialled before run.
func (b *backend) followController(entrances *refill.Entrances) (*policies, error) {
	p := &policies{stop: func() {}}
	replica := cmp.Or(b.cfg.ReplicaName, replicaName())
	if b.fleet != nil {
		replica = b.fleet.replica
	}
	client, err := feedclient.New(feedclient.Options{
		Address: b.cfg.ControllerAddress,
		TLS: feedclient.TLSFiles{
			CA: b.cfg.ControllerCAFile, Cert: b.cfg.ControllerTLS.CertFile, Key: b.cfg.ControllerTLS.KeyFile,
		},
		ServerName: b.cfg.ControllerServerName, Replica: replica, Version: b.build.Version, Started: b.started,
		OnChange: func(set *cachepolicy.Set) {
			p.set.Store(set)
			entrances.Keep(set.Entrances())
		},
		Traffic: b.traffic, Invalidate: b.invalidateByCommand, Logger: b.log,
	})
	if err != nil {
		return nil, fmt.Errorf("--controller-address: %w", err)
	}
	p.feed = client
	metrics.ObserveFeed(b.registry, p.feedStats)
	return p, nil
}

// awaitPolicies waits for the controller's first word, at most for --controller-wait:
// a data plane without a controller serves too, as one without policies.
func (b *backend) awaitPolicies(ctx context.Context) {
	wait := time.NewTimer(b.cfg.ControllerWait)
	defer wait.Stop()
	select {
	case <-b.policies.feed.Synced():
	case <-wait.C:
		b.log.Warn("No word of the controller yet: until then requests pass by",
			"controller", b.cfg.ControllerAddress, "error", b.policies.feed.Status().LastError)
	case <-ctx.Done():
	}
}

// traffic returns what is reported to the controller.
func (b *backend) traffic() map[string]feed.Traffic {
	counted := b.service.Traffic(b.policies.set.Load())
	out := make(map[string]feed.Traffic, len(counted))
	for policy, t := range counted {
		out[policy] = feed.Traffic{Requests: t.Requests, Hits: t.Hits, Stale: t.Stale, OriginSaved: t.OriginSaved}
	}
	return out
}

// invalidateByCommand carries out the controller's order, as POST /v1/invalidate does.
func (b *backend) invalidateByCommand(ctx context.Context, i feed.Invalidate) feed.Result {
	r, err := admin.InvalidateRequest{By: i.By, Value: i.Value, Namespace: i.Namespace, Mode: i.Mode}.Normalize()
	if err != nil {
		return feed.Result{Error: err.Error()}
	}
	got, err := b.Invalidate(ctx, r)
	if err != nil {
		return feed.Result{Error: err.Error()}
	}
	b.log.Info("Invalidated by the controller", "by", r.By, "value", r.Value, "namespace", r.Namespace, "mode", r.Mode,
		"position", got.Position, "confirmed", got.Confirmed, "replicas", got.Replicas)
	// The controller knows whether there are others.
	warnings := slices.DeleteFunc(got.Warnings, func(w string) bool { return w == warnAlone })
	return feed.Result{
		Covered: coveredText(&r), Shared: b.fleet != nil, Confirmed: got.Confirmed, Total: got.Replicas,
		Silent: got.Silent, Warnings: warnings,
	}
}

// coveredText says what is invalid.
func coveredText(r *admin.InvalidateRequest) string {
	var text string
	switch r.By {
	case admin.ByAll:
		text = "everything"
	case admin.ByNamespace:
		text = "namespace " + r.Namespace
	case admin.ByPolicy:
		text = "policy " + r.Namespace + "/" + r.Value
	default:
		text = strings.ToLower(r.By) + " " + r.Value
		if r.Namespace != "" {
			text += " in namespace " + r.Namespace
		}
	}
	if r.Mode == admin.ModeSoft {
		text += ", stale from now on"
	}
	return text
}

// feedStats are what metrics are read from.
func (p *policies) feedStats() metrics.FeedStats {
	s := p.feed.Status()
	return metrics.FeedStats{
		Connected: s.Address != "", Synced: s.Synced, Resources: s.Resources, Rejected: s.Rejected,
		Reporting: s.Reporting, Updates: s.Updates, Failures: s.Failures, UpdatedAt: s.UpdatedAt,
	}
}

// feedStatus is the part of the admin API's status about the controller.
func (b *backend) feedStatus() admin.PolicyStatus {
	s := b.policies.feed.Status()
	f := &admin.FeedStatus{
		Controller: b.cfg.ControllerAddress, Connected: s.Address != "", Address: s.Address, ConnectedAt: s.ConnectedAt,
		Synced: s.Synced, Resources: s.Resources, Rejected: s.Rejected, Reporting: s.Reporting, Failures: s.Failures,
		LastError: s.LastError,
	}
	if !s.UpdatedAt.IsZero() {
		f.AgeSeconds = time.Since(s.UpdatedAt).Seconds()
	}
	for _, e := range s.Errors {
		f.Errors = append(f.Errors, admin.RefusedResource{Resource: e.Name, Error: e.Error})
	}
	slices.SortFunc(f.Errors, func(a, b admin.RefusedResource) int { return cmp.Compare(a.Resource, b.Resource) })
	return admin.PolicyStatus{
		Generation: s.Updates, LoadedAt: s.UpdatedAt, Count: b.policies.set.Load().Len(), Feed: f,
	}
}

// validateController checks what belongs to --controller-address.
func (c *Config) validateController() error {
	var faults []error
	if c.ControllerAddress == "" {
		for flag, value := range map[string]string{
			"--controller-ca-file": c.ControllerCAFile, "--controller-tls-cert-file": c.ControllerTLS.CertFile,
			"--controller-tls-key-file": c.ControllerTLS.KeyFile, "--controller-server-name": c.ControllerServerName,
		} {
			if value != "" {
				faults = append(faults, fmt.Errorf("%s: wants --controller-address", flag))
			}
		}
		if c.PolicyDir == "" {
			faults = append(faults, errors.New("--policy-dir: must be set, or --controller-address; "+
				"without policies nothing is cached"))
		}
		return errors.Join(faults...)
	}
	if c.PolicyDir != "" {
		faults = append(faults, errors.New("--policy-dir and --controller-address: policies come from one of them"))
	}
	if c.RefillAddress != "" {
		faults = append(faults, errors.New("--refill-address: not under a controller, which says of each route where "+
			"detached fetches may enter"))
	}
	if err := validateBind("--controller-address", c.ControllerAddress); err != nil {
		faults = append(faults, err)
	} else if c.ControllerCAFile == "" && !isLoopback(c.ControllerAddress) {
		faults = append(faults, fmt.Errorf("--controller-address %s is on another machine: set --controller-ca-file, "+
			"by which it is known to be the controller", c.ControllerAddress))
	}
	if c.ControllerTLS.CertFile != "" && c.ControllerCAFile == "" {
		faults = append(faults, errors.New("--controller-tls-cert-file: wants --controller-ca-file"))
	}
	if c.ControllerWait < 0 {
		faults = append(faults, errors.New("--controller-wait must not be negative; 0s is not to wait"))
	}
	return errors.Join(append(faults,
		validateTLS("--controller-tls-cert-file", "--controller-tls-key-file", c.ControllerTLS))...)
}

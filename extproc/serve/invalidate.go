package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/weirproxy/weir/extproc/admin"
	"github.com/weirproxy/weir/extproc/fleet"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store/memory"
)

// Invalidate implements [admin.Backend].
func (b *backend) Invalidate(ctx context.Context, r admin.InvalidateRequest) (admin.InvalidateResult, error) {
	result := admin.InvalidateResult{InvalidateRequest: r}
	i, receipt, err := b.invalidate(ctx, &r)
	if _, refused := errors.AsType[*admin.Error](err); refused {
		return result, err
	}
	result.Position, result.Queued, result.Silent = receipt.Position, receipt.Queued, receipt.Silent
	result.Confirmed, result.Replicas = receipt.Confirmed, receipt.Replicas
	result.TookSeconds = receipt.Took.Seconds()
	result.Certain = b.fleet != nil && err == nil && receipt.Confirmed == receipt.Replicas
	result.Covers = covers(b.fleet != nil, &result)
	m := b.match(&i, &r)
	result.Matched, result.MatchedAtLeast = m.named, m.partly
	result.Warnings = append(b.fleetWarnings(&result, err), b.nameWarnings(&r, m)...)
	return result, nil
}

// invalidate carries the request out.
func (b *backend) invalidate(
	ctx context.Context, r *admin.InvalidateRequest,
) (fleet.Invalidation, fleet.Receipt, error) {
	kind, ok := fleet.ParseKind(r.By)
	mode, okMode := fleet.ParseMode(r.Mode)
	if !ok || !okMode {
		return fleet.Invalidation{}, fleet.Receipt{}, admin.BadRequest("", "by %q, mode %q", r.By, r.Mode)
	}
	i := fleet.Invalidation{Kind: kind, Namespace: r.Namespace, Value: r.Value, Mode: mode}
	switch kind {
	case fleet.ByURL:
		u, err := url.Parse(r.Value)
		if err != nil {
			return fleet.Invalidation{}, fleet.Receipt{}, admin.BadRequest("", "%s", err)
		}
		req := admin.RequestOf(http.MethodGet, u, nil)
		i.Value = httpcache.TargetOf(&req).String()
	case fleet.ByPolicy:
		// A Gateway's policy is in force in other namespaces too; its name says whose it is.
		i.Namespace, i.Value = "", r.Namespace+"/"+r.Value
	case fleet.ByNamespace:
		i.Value = r.Namespace
	case fleet.ByTag, fleet.ByHost, fleet.ByAll:
	}
	receipt, err := b.service.Invalidate(ctx, i)
	return i, receipt, err
}

// covers says which replicas follow an invalidation.
func covers(inFleet bool, r *admin.InvalidateResult) string {
	switch {
	case !inFleet:
		return "this process only"
	case r.Queued:
		return "this process only, until Redis is back"
	case !r.Certain:
		return fmt.Sprintf("%d of %d replicas", r.Confirmed, r.Replicas)
	case r.Replicas == 1:
		return "the only replica"
	}
	return fmt.Sprintf("all %d replicas", r.Replicas)
}

// warnAlone is the warning of a process that is alone.
const warnAlone = "without --redis-url this process cannot know whether there are others, and they do not hear of it"

// fleetWarnings says what is not known of the other replicas.
func (b *backend) fleetWarnings(r *admin.InvalidateResult, err error) []string {
	switch {
	case b.fleet == nil:
		return []string{warnAlone}
	case r.Queued:
		return []string{fmt.Sprintf("Redis is away: the other replicas are told once it is back (%v)", err)}
	case err != nil:
		return []string{fmt.Sprintf("Redis has the invalidation, but whether the other replicas have applied it "+
			"could not be found out (%v)", err)}
	case !r.Certain:
		return []string{fmt.Sprintf("no word from %s: gone without a goodbye, or cut off; a replica that is cut off "+
			"applies the invalidation before it serves by Redis again", strings.Join(r.Silent, ", "))}
	}
	return nil
}

// nameWarnings says what may be a mistake in what was named. Which hosts a policy
// covers is Envoy's to know.
func (b *backend) nameWarnings(r *admin.InvalidateRequest, m matches) []string {
	var warnings []string
	set := b.policies.set.Load()
	_, policy := set.ByName(r.Namespace + "/" + r.Value)
	namespace := r.Namespace == ""
	for bound := range set.Bindings() {
		namespace = namespace || bound.Tenant() == r.Namespace
		policy = policy || slices.Contains(bound.Policy.Layers, r.Namespace+"/"+r.Value)
	}
	if r.By == admin.ByPolicy && !policy {
		warnings = append(warnings, fmt.Sprintf("this process has no policy %s/%s", r.Namespace, r.Value))
	} else if !namespace {
		warnings = append(warnings, fmt.Sprintf("this process has no policy of namespace %q", r.Namespace))
	}
	if (r.By == admin.ByURL || r.By == admin.ByHost) && !m.host && !m.partly {
		warnings = append(warnings,
			"this process holds nothing of that host: whether any policy covers it cannot be known here")
	}
	return warnings
}

// matches is what an invalidation names of what this process holds.
type matches struct {
	named  int
	host   bool // there is something of the host that was named
	partly bool // not all was looked at
}

// match counts what an invalidation names.
func (b *backend) match(i *fleet.Invalidation, r *admin.InvalidateRequest) (m matches) {
	now, host := time.Now(), r.Value
	if r.By == admin.ByURL {
		host = fleet.HostOf(i.Value)
	}
	probe := b.stamps.Probe()
	probe.Add(i.Kind, i.Namespace, i.Value, i.Mode, now)
	for after, scanned := "", 0; ; {
		entries, next, err := b.store.Page(after, memory.MaxPage)
		if err != nil {
			return m // no cursor of ours
		}
		for _, e := range entries {
			covered := fleet.CoveredBy(e, e.Key.Tenant())
			covered.Birth = 0
			if probe.Check(covered) != fleet.Valid {
				m.named++
			}
			m.host = m.host || covered.Host == host
		}
		after, scanned = next, scanned+len(entries)
		if next == "" {
			return m
		}
		if scanned >= maxScanned {
			m.partly = true
			return m
		}
	}
}

package cachepolicy

import (
	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
)

// Merge returns the policy that holds where several apply, the least specific
// first (Gateway before route). Each leaf is taken from the most specific policy
// that sets it; a list replaces the whole list, and an empty list is a list. Nil
// specs are skipped, no input is changed, and the result shares no memory with
// them.
func Merge(specs ...*v1alpha1.CachePolicySpec) *v1alpha1.CachePolicySpec {
	out := &v1alpha1.CachePolicySpec{}
	for _, spec := range specs {
		if spec != nil {
			mergeSpec(out, spec.DeepCopy())
		}
	}
	return out
}

// set overwrites a leaf that the more specific policy has.
func set[T any](dst **T, src *T) {
	if src != nil {
		*dst = src
	}
}

func setList[T any](dst *[]T, src []T) {
	if src != nil {
		*dst = src
	}
}

// block merges a group of leaves that the more specific policy has.
func block[T any](dst **T, src *T, merge func(dst, src *T)) {
	switch {
	case src == nil:
	case *dst == nil:
		*dst = src
	default:
		merge(*dst, src)
	}
}

func mergeSpec(dst, src *v1alpha1.CachePolicySpec) {
	setList(&dst.TargetRefs, src.TargetRefs)
	set(&dst.Mode, src.Mode)
	block(&dst.TTL, src.TTL, mergeTTL)
	set(&dst.JitterPercent, src.JitterPercent)
	setList(&dst.NegativeTTL, src.NegativeTTL)
	block(&dst.XFetch, src.XFetch, mergeXFetch)
	block(&dst.Stale, src.Stale, mergeStale)
	block(&dst.Coalescing, src.Coalescing, mergeCoalescing)
	block(&dst.OriginLimits, src.OriginLimits, mergeOriginLimits)
	block(&dst.Key, src.Key, mergeKey)
	block(&dst.Storage, src.Storage, mergeStorage)
	block(&dst.Tags, src.Tags, mergeTags)
	set(&dst.RequestDirectives, src.RequestDirectives)
	block(&dst.Mesh, src.Mesh, mergeMesh)
}

func mergeTTL(dst, src *v1alpha1.TTL) {
	set(&dst.Default, src.Default)
	set(&dst.Min, src.Min)
	set(&dst.Max, src.Max)
	set(&dst.Origin, src.Origin)
	set(&dst.Heuristic, src.Heuristic)
}

func mergeXFetch(dst, src *v1alpha1.XFetch) {
	set(&dst.Mode, src.Mode)
	set(&dst.Beta, src.Beta)
	set(&dst.MaxLeadPercent, src.MaxLeadPercent)
}

func mergeStale(dst, src *v1alpha1.Stale) {
	set(&dst.WhileRevalidate, src.WhileRevalidate)
	set(&dst.IfError, src.IfError)
	set(&dst.SoftTimeout, src.SoftTimeout)
}

func mergeCoalescing(dst, src *v1alpha1.Coalescing) {
	set(&dst.Scope, src.Scope)
	set(&dst.MaxWait, src.MaxWait)
	set(&dst.MaxWaiters, src.MaxWaiters)
	set(&dst.OnTimeout, src.OnTimeout)
}

func mergeOriginLimits(dst, src *v1alpha1.OriginLimits) {
	set(&dst.MaxConcurrentFetches, src.MaxConcurrentFetches)
	set(&dst.MaxQueue, src.MaxQueue)
	set(&dst.OnOverflow, src.OnOverflow)
}

func mergeKey(dst, src *v1alpha1.Key) {
	block(&dst.Query, src.Query, mergeQuery)
	setList(&dst.Headers, src.Headers)
	setList(&dst.Cookies, src.Cookies)
}

func mergeQuery(dst, src *v1alpha1.Query) {
	set(&dst.Mode, src.Mode)
	setList(&dst.Names, src.Names)
}

func mergeStorage(dst, src *v1alpha1.Storage) {
	set(&dst.MaxObjectSize, src.MaxObjectSize)
	set(&dst.MaxVariants, src.MaxVariants)
	set(&dst.SetCookie, src.SetCookie)
	set(&dst.RequestCookies, src.RequestCookies)
	set(&dst.Sharing, src.Sharing)
}

func mergeTags(dst, src *v1alpha1.Tags) {
	set(&dst.ResponseHeader, src.ResponseHeader)
}

func mergeMesh(dst, src *v1alpha1.Mesh) {
	set(&dst.ServerAuthorization, src.ServerAuthorization)
}

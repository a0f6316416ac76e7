package status

import (
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weirproxy/weir/cachepolicy/feed"
	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
)

// TrafficPeriod is how often, at most, what a policy did for its traffic is written.
const TrafficPeriod = 5 * time.Minute

// Traffic returns what a policy did between two readings of its counters, the first
// taken at since; nil: nothing that differs from what is there.
func Traffic(there *v1alpha1.CachePolicyTraffic, before, after feed.Traffic, since, now time.Time,
) *v1alpha1.CachePolicyTraffic {
	requests := minus(after.Requests, before.Requests)
	period := int64(now.Sub(since) / time.Second)
	if requests == 0 || period < 1 {
		return nil
	}
	answered := minus(after.OriginSaved, before.OriginSaved)
	t := &v1alpha1.CachePolicyTraffic{
		LastUpdateTime:      new(metav1.NewTime(now.Truncate(time.Second))),
		PeriodSeconds:       int32(min(period, math.MaxInt32)),
		HitPercent:          new(int32(min(100, answered*100/requests))),
		OriginRequestsSaved: new(int64(min(answered, math.MaxInt64))),
		StaleServed:         new(int64(min(minus(after.Stale, before.Stale), math.MaxInt64))),
	}
	if there != nil && *t.HitPercent == value(there.HitPercent) && *t.StaleServed == value(there.StaleServed) &&
		*t.OriginRequestsSaved == value(there.OriginRequestsSaved) {
		return nil
	}
	return t
}

// minus is a - b for counters, which start again at 0 with their process.
func minus(a, b uint64) uint64 {
	if a < b {
		return a
	}
	return a - b
}

// value is what p points at; what is absent differs from every count.
func value[T int32 | int64](p *T) T {
	if p == nil {
		return -1
	}
	return *p
}

package refill

import (
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// RampOptions say how fetches are let through after a cold start: at first From
// per second, growing exponentially to To within Duration, then without bound.
type RampOptions struct {
	From, To float64 // per second; 0 < From <= To
	Duration time.Duration
}

// Ramp spreads the fetches of a cold cache, so that an origin used to a warm one
// is not struck by all traffic at once. It is safe for concurrent use; nil never
// holds anything back.
type Ramp struct {
	opts RampOptions

	mu     sync.Mutex
	start  time.Time
	over   bool
	bucket *rate.Limiter
}

// NewRamp returns a Ramp that begins at now.
func NewRamp(o RampOptions, now time.Time) *Ramp {
	r := &Ramp{opts: o}
	r.Restart(now)
	return r
}

// Restart begins the ramp anew: the cache is cold again.
func (r *Ramp) Restart(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.start, r.over = now, false
	r.bucket = rate.NewLimiter(rate.Limit(r.opts.From), burst(r.opts.From))
}

// Reserve returns how long the next fetch has to wait, and takes its place in the
// order. False: it would have to wait for longer than atMost, and takes none.
func (r *Ramp) Reserve(now time.Time, atMost time.Duration) (time.Duration, bool) {
	if r == nil {
		return 0, true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return 0, true
	}
	elapsed := max(now.Sub(r.start), 0)
	if elapsed >= r.opts.Duration {
		r.over = true
		return 0, true
	}
	share := float64(elapsed) / float64(r.opts.Duration)
	perSecond := r.opts.From * math.Pow(r.opts.To/r.opts.From, share)
	r.bucket.SetLimitAt(now, rate.Limit(perSecond))
	r.bucket.SetBurstAt(now, burst(perSecond))
	place := r.bucket.ReserveN(now, 1)
	wait := min(place.DelayFrom(now), r.opts.Duration-elapsed)
	if wait > atMost {
		place.CancelAt(now)
		return 0, false
	}
	return wait, true
}

// burst is what may come at once: a tenth of a second's fetches.
func burst(perSecond float64) int { return max(int(perSecond/10), 1) }

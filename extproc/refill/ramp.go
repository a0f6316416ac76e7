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
	From, To float64 // per second; 0 < From <= To, or From 0 for no ramp
	Duration time.Duration
}

// Ramp is a token bucket that spreads the fetches of a cold cache, so that an
// origin used to a warm one is not struck by all traffic at once. It is safe for
// concurrent use; nil never holds anything back.
type Ramp struct {
	opts RampOptions

	mu     sync.Mutex
	start  time.Time
	over   bool
	bucket *rate.Limiter
}

// NewRamp returns a Ramp that begins at now, or nil if the options ask for none.
func NewRamp(o RampOptions, now time.Time) *Ramp {
	if o.From <= 0 || o.Duration <= 0 {
		return nil
	}
	r := &Ramp{opts: o}
	r.Restart(now)
	return r
}

// Restart begins the ramp anew: the cache is cold again.
func (r *Ramp) Restart(now time.Time) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.start, r.over = now, false
	r.bucket = rate.NewLimiter(rate.Limit(r.opts.From), burst(r.opts.From))
}

// Take lets a fetch through and returns 0, or returns how long until it may be
// asked again. It keeps no order among those who ask.
func (r *Ramp) Take(now time.Time) time.Duration {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	perSecond := r.rate(now)
	if perSecond == 0 {
		return 0
	}
	r.bucket.SetLimitAt(now, rate.Limit(perSecond))
	r.bucket.SetBurstAt(now, burst(perSecond))
	if r.bucket.AllowN(now, 1) {
		return 0
	}
	missing := 1 - r.bucket.TokensAt(now)
	wait := time.Duration(missing / perSecond * float64(time.Second))
	return max(min(wait, r.start.Add(r.opts.Duration).Sub(now)), time.Millisecond)
}

// Rate returns how many fetches a second are let through; 0: all.
func (r *Ramp) Rate(now time.Time) float64 {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rate(now)
}

// rate is Rate; the caller holds mu.
func (r *Ramp) rate(now time.Time) float64 {
	elapsed := max(now.Sub(r.start), 0)
	if r.over || elapsed >= r.opts.Duration {
		r.over = true
		return 0
	}
	return r.opts.From * math.Pow(r.opts.To/r.opts.From, float64(elapsed)/float64(r.opts.Duration))
}

// burst is what may come at once: a tenth of a second's fetches.
func burst(perSecond float64) int { return max(int(perSecond/10), 1) }

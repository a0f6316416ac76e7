package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/weirproxy/weir/extproc/admin"
	"github.com/weirproxy/weir/extproc/refill"
	"github.com/weirproxy/weir/extproc/warm"
)

// rampGrowth is how many times the rate of a ramp grows within its duration.
const rampGrowth = 100

func (c *Config) ramp() refill.RampOptions {
	return refill.RampOptions{From: c.RampRate, To: rampGrowth * c.RampRate, Duration: c.RampDuration}
}

// readWarmFile reads --warm-file; no name is no list.
func readWarmFile(path string) ([]warm.Request, error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--warm-file: %w", err)
	}
	requests, err := warm.ParseFile(path, data)
	if err != nil {
		return nil, fmt.Errorf("--warm-file: %w", err)
	}
	return requests, nil
}

// newWarmer makes what loads URLs by the service.
func (b *backend) newWarmer() *warm.Warmer {
	return warm.New(warm.Options{
		Load: b.load, Rate: b.cfg.WarmRate, Concurrency: b.cfg.WarmConcurrency, Patience: b.cfg.WarmTimeout, Log: b.log,
	})
}

// load loads one URL, under what it falls under now.
func (b *backend) load(ctx context.Context, r *warm.Request) warm.Outcome {
	set, req := b.policies.set.Load(), r.Cache()
	if set.Fed() && r.Route == "" {
		if binding := set.Match(matchOf(req)); binding != nil {
			return b.service.Warm(ctx, binding, req)
		}
	}
	binding, err := warm.Bind(set, r.Policy, r.Route)
	if err != nil {
		return warm.Outcome{Result: warm.Failed, Reason: err.Error()}
	}
	return b.service.Warm(ctx, binding, req)
}

// warmUp loads a list and returns when that is done, or after --warm-timeout.
func (b *backend) warmUp(ctx context.Context, file string, requests []warm.Request) error {
	_, done, err := b.warmer.Add("file "+file, requests, time.Now())
	if err != nil {
		return err
	}
	timeout := time.NewTimer(b.cfg.WarmTimeout)
	defer timeout.Stop()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timeout.C:
		return errWarmTimeout
	}
}

var errWarmTimeout = errors.New("--warm-timeout is over; the rest is loaded behind traffic")

// Warm implements [admin.Backend].
func (b *backend) Warm(_ context.Context, r admin.WarmRequest) (admin.WarmResult, error) {
	if b.cfg.RefillAddress == "" && len(b.policies.set.Load().Entrances()) == 0 {
		return admin.WarmResult{}, &admin.Error{Status: http.StatusConflict,
			Message: "no detached fetch is possible", Hint: "set --refill-address; under a controller, it names no entrance"}
	}
	requests, err := r.Requests()
	if err != nil {
		return admin.WarmResult{}, err
	}
	id, _, err := b.warmer.Add("admin API", requests, time.Now())
	if errors.Is(err, warm.ErrBusy) {
		return admin.WarmResult{}, &admin.Error{Status: http.StatusTooManyRequests, Message: err.Error(),
			Hint: "see /v1/warm"}
	}
	return admin.WarmResult{Job: id, Total: len(requests)}, err
}

// WarmJobs implements [admin.Backend].
func (b *backend) WarmJobs() []warm.Job { return b.warmer.Jobs() }

// Top implements [admin.Backend].
func (b *backend) Top(_ context.Context, r admin.TopRequest) (admin.TopResult, error) {
	sketch := b.service.Popularity()
	top := admin.TopResult{HalfLifeSeconds: sketch.HalfLife().Seconds(), Keys: []admin.HotKey{}}
	for _, hot := range sketch.Top(0, time.Now()) {
		if r.Policy != "" && hot.Policy != r.Policy {
			continue
		}
		key := admin.HotKey{URI: hot.URI, Policy: hot.Policy, Route: hot.Route, Rate: hot.Rate, Cookies: hot.Cookies}
		for _, f := range hot.Header {
			if key.Headers == nil {
				key.Headers = map[string]string{}
			}
			key.Headers[f.Name] = f.Value
		}
		if top.Keys = append(top.Keys, key); len(top.Keys) == r.Limit {
			break
		}
	}
	return top, nil
}

// origins are the policies whose fetches are worth telling of.
func (b *backend) origins() []admin.Origin {
	var shown []admin.Origin
	for _, o := range b.service.Origins() {
		if len(shown) < maxListed && (o.Running > 0 || o.Queued > 0 || o.Refused > 0 || o.Rate > 0) {
			shown = append(shown, admin.Origin{
				Policy: o.Policy, Running: o.Running, Queued: o.Queued, Refused: o.Refused, RampPerSecond: o.Rate,
			})
		}
	}
	return shown
}

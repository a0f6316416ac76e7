package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/weirproxy/weir/extproc/popularity"
	"github.com/weirproxy/weir/extproc/store/redis"
	"github.com/weirproxy/weir/extproc/warm"
)

// What is kept of hot keys in Redis, for replicas that start.
const (
	maxHotKeys  = 1000
	hotInterval = 30 * time.Second // one replica saves the list within each
	// hotFade is what is left of the rate of a key, from one saving to the next, of
	// which the replica that saves knows nothing: it has a part of the traffic.
	hotFade = 0.5
	minRate = 0.001 // reads per second, below which a key is not hot
)

// How a replica that starts loads them.
const (
	hotPatience    = 5 * time.Second // it is ready after that, whatever was loaded
	touchPatience  = 2 * time.Second // for Redis, of that
	hotPerSecond   = 2000
	hotConcurrency = 16
)

// warmUpAll loads what is to be loaded before the process is ready: what the fleet
// reads most, and then the list of --warm-file.
func (b *backend) warmUpAll(ctx context.Context, list []warm.Request) error {
	var hot, file error
	if b.fleet != nil {
		hot = b.loadHot(ctx)
	}
	if len(list) > 0 {
		file = b.warmUp(ctx, b.cfg.WarmFile, list)
	}
	return errors.Join(hot, file)
}

// saveHot saves the list now and then, when it is this replica's turn, and when ctx
// ends: a replica that goes leaves what it knows to the one that comes.
func (b *backend) saveHot(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			b.fleet.saveHot(last, b.service.Popularity(), b.log)
			return nil
		case <-time.After(hotInterval/2 + rand.N(hotInterval)):
			won, err := b.fleet.shared.HotTurn(ctx, b.fleet.replica, hotInterval)
			if err == nil && won {
				b.fleet.saveHot(ctx, b.service.Popularity(), b.log)
			}
		}
	}
}

// saveHot adds what this replica knows of hot keys to the list in Redis.
func (m *membership) saveHot(ctx context.Context, sketch *popularity.Sketch, log *slog.Logger) {
	data, err := m.shared.LoadHot(ctx)
	if err == nil {
		own := sketch.Top(maxHotKeys, time.Now())
		err = m.shared.SaveHot(ctx, encodeHot(mergeHot(decodeHot(data), own)))
	}
	if err != nil {
		log.Debug("The list of hot keys was not saved", "error", err)
	}
}

// mergeHot returns the hottest of what was saved and what this replica knows.
func mergeHot(saved, own []popularity.Hot) []popularity.Hot {
	merged := make([]popularity.Hot, 0, len(saved)+len(own))
	known := make(map[string]bool, len(own))
	add := func(h popularity.Hot) {
		id := fmt.Sprint(h.Policy, "\x00", h.Route, "\x00", h.URI, "\x00", h.Header)
		if !known[id] && h.Rate >= minRate && len(h.Cookies) == 0 {
			known[id] = true
			merged = append(merged, h)
		}
	}
	for _, h := range own {
		add(h)
	}
	for _, h := range saved {
		h.Rate *= hotFade
		add(h)
	}
	slices.SortStableFunc(merged, func(a, b popularity.Hot) int { return cmp.Compare(b.Rate, a.Rate) })
	return merged[:min(len(merged), maxHotKeys)]
}

// encodeHot writes as many as there is room for.
func encodeHot(list []popularity.Hot) []byte {
	for n := len(list); ; n = n * 3 / 4 {
		data, err := json.Marshal(list[:n])
		if err == nil && len(data) <= redis.MaxHot || n == 0 {
			return data
		}
	}
}

// decodeHot reads what encodeHot wrote; what is none is an empty list.
func decodeHot(data []byte) []popularity.Hot {
	var list []popularity.Hot
	if json.Unmarshal(data, &list) != nil {
		return nil
	}
	return list[:min(len(list), maxHotKeys)]
}

// loadHot brings what the fleet reads most from Redis into memory, at a bounded
// rate. The origin is not asked: what is not there is fetched when it is asked for.
func (b *backend) loadHot(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, hotPatience)
	defer cancel()
	if !b.fleet.awaitTouch(ctx) {
		return errors.New("hot keys: Redis is away")
	}
	data, err := b.fleet.shared.LoadHot(ctx)
	if err != nil {
		return err
	}
	list, start := decodeHot(data), time.Now()
	var loaded, bytes atomic.Int64
	pace := rate.NewLimiter(hotPerSecond, hotConcurrency)
	var g errgroup.Group
	g.SetLimit(hotConcurrency)
	for i := range list {
		if pace.Wait(ctx) != nil || bytes.Load() > b.memory.store/2 {
			break
		}
		g.Go(func() error {
			if n, ok := b.loadHotKey(ctx, &list[i]); ok {
				loaded.Add(1)
				bytes.Add(n)
			}
			return nil
		})
	}
	_ = g.Wait() // no error comes of it
	b.log.Info("Hot keys loaded", "known", len(list), "loaded", loaded.Load(), "bytes", bytes.Load(),
		"took", time.Since(start))
	return nil
}

// loadHotKey brings one of them, and returns what it occupies.
func (b *backend) loadHotKey(ctx context.Context, h *popularity.Hot) (size int64, ok bool) {
	r, err := warm.ParseURL(h.URI)
	if err != nil {
		return 0, false
	}
	r.Header = h.Header
	binding, err := warm.Bind(b.policies.set.Load(), h.Policy, h.Route)
	if err != nil {
		return 0, false
	}
	e := b.service.LoadShared(ctx, binding, r.Cache())
	if e == nil {
		return 0, false
	}
	return e.Size(), true
}

// awaitTouch waits for what becomes of Redis: true if this process is in touch.
func (m *membership) awaitTouch(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, touchPatience)
	defer cancel()
	for !m.fleet.InTouch() && !m.fleet.CaughtUp(time.Now()) { // it is neither before it is known
		select {
		case <-ctx.Done():
			return false
		case <-time.After(5 * time.Millisecond):
		}
	}
	return m.fleet.InTouch()
}

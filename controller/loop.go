package controller

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weirproxy/weir/controller/feed"
	"github.com/weirproxy/weir/controller/translate"
)

// minInterval is how far translations are apart at least. The first change after a rest
// is translated at once; those that come meanwhile are one.
const minInterval = 50 * time.Millisecond

// retryInterval is when a translation that failed is tried again.
const retryInterval = time.Second

// translation is the last word on what there is: what was read, and what it means.
type translation struct {
	in  *translate.Input
	out *translate.Output
}

// loop translates on every change and serves the outcome. It runs on every replica of
// the controller.
type loop struct {
	gatherer *gatherer
	cache    cache.Cache
	kinds    []client.Object
	feed     *feed.Server
	metrics  *metrics
	log      *slog.Logger

	poked   chan struct{} // something changed
	current atomic.Pointer[translation]
	told    chan struct{} // there may be something to write; the writer listens
}

// NeedLeaderElection implements [manager.LeaderElectionRunnable].
func (*loop) NeedLeaderElection() bool { return false }

// poke says that something changed.
func (l *loop) poke() { signal(l.poked) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is known already
	}
}

// ready reports, for /readyz, whether there is something to serve.
func (l *loop) ready() error {
	if l.current.Load() == nil {
		return fmt.Errorf("nothing was translated yet")
	}
	return nil
}

// Start implements [manager.Runnable].
func (l *loop) Start(ctx context.Context) error {
	if err := l.watch(ctx); err != nil {
		return err
	}
	l.poke()
	retry := time.NewTimer(retryInterval)
	defer retry.Stop()
	retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.poked:
		case <-retry.C:
		}
		if err := l.translate(ctx); err != nil {
			l.metrics.translateErrors.Inc()
			l.log.Error("Translation failed, what was served stays", "error", err)
			retry.Reset(retryInterval)
		}
		if !sleep(ctx, minInterval) {
			return nil
		}
	}
}

// watch has every change of the kinds poke, and waits until the cache has them all.
func (l *loop) watch(ctx context.Context) error {
	for _, kind := range l.kinds {
		informer, err := l.cache.GetInformer(ctx, kind)
		if err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
		handler := toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { l.poke() },
			UpdateFunc: l.updated,
			DeleteFunc: func(any) { l.poke() },
		}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
	}
	if !l.cache.WaitForCacheSync(ctx) && ctx.Err() == nil {
		return fmt.Errorf("wait for what is there: the cache did not fill")
	}
	return nil
}

// updated does what an update asks for.
func (l *loop) updated(before, after any) {
	b, okBefore := before.(client.Object)
	a, okAfter := after.(client.Object)
	if !okBefore || !okAfter {
		l.poke()
		return
	}
	switch effectOf(b, a) {
	case effectTranslate:
		l.poke()
	case effectWrite:
		signal(l.told)
	case effectNone:
	}
}

// translate reads, translates and serves, once.
func (l *loop) translate(ctx context.Context) error {
	begun := time.Now()
	in, err := l.gatherer.gather(ctx)
	if err != nil {
		return err
	}
	out := translate.Translate(in)
	changed, err := l.feed.Set(out.Policies, out.Routes, out.Entrances)
	if err != nil {
		// What cannot be sent is left out, by name; the rest is served.
		l.log.Error("Resources not sent", "error", err)
	}
	l.current.Store(&translation{in, out})
	signal(l.told)
	took := time.Since(begun)
	l.metrics.translated(took, out, changed)
	l.log.Debug("Translated", "policies", len(out.Policies), "routes", len(out.Routes), "changed", changed, "took", took)
	return nil
}

// sleep waits for d, or returns false when ctx ends.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

package serve

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc"
	"github.com/weirproxy/weir/extproc/feedclient"
	"github.com/weirproxy/weir/extproc/fleet"
	"github.com/weirproxy/weir/extproc/metrics"
	"github.com/weirproxy/weir/extproc/policydir"
	"github.com/weirproxy/weir/extproc/refill"
	"github.com/weirproxy/weir/extproc/store/memory"
	"github.com/weirproxy/weir/extproc/wire"
)

// sweepInterval is how often entries past their last window are removed.
const sweepInterval = 10 * time.Second

// assemble makes the parts of weir-extproc: policies from files or a controller,
// entries in memory and, with --redis-url, in a fleet's Redis.
func assemble(_ context.Context, env environment) (*parts, error) {
	secrets, err := newSecrets(env.cfg.SecretFile, env.log)
	if err != nil {
		return nil, err
	}
	toWarm, err := readWarmFile(env.cfg.WarmFile)
	if err != nil {
		return nil, err
	}
	fetcher, err := newFetcher(env.cfg.RefillAddress, secrets.tokens)
	if err != nil {
		return nil, err
	}
	b := &backend{
		environment: env,
		store:       memory.New(memory.Options{Limit: env.memory.store}),
		stamps:      fleet.NewStamps(0),
	}
	if b.fleet, err = newMembership(env, secrets.keyring, b.store, b.stamps); err != nil {
		return nil, err
	}
	entrances := refill.NewEntrances(refill.Options{Tokens: secrets.tokens})
	if b.policies, err = b.newPolicies(entrances); err != nil {
		return nil, errors.Join(err, b.fleet.close())
	}
	b.service = extproc.New(b.fleet.share(extproc.Options{
		Policies: b.policies.set.Load, Store: b.store, Stamps: b.stamps, Fetcher: fetcher,
		Entrances: entrances, Tokens: secrets.tokens, Metrics: env.metrics, Logger: env.log,
		MessageTimeout: env.cfg.EnvoyMessageTimeout, MaxMessageTimeout: env.cfg.EnvoyMaxMessageTimeout,
		Ramp: env.cfg.ramp(),
	}))
	b.warmer = b.newWarmer()
	metrics.Observe(env.registry, b.sources())
	p := &parts{
		register:   b.service.Register,
		codec:      wire.NewCodec(),
		release:    b.service.Drain,
		admin:      b,
		warm:       func(ctx context.Context) error { return b.warmUpAll(ctx, toWarm) },
		background: b.background(secrets),
		close: func() error {
			b.service.Close()
			if fetcher != nil {
				fetcher.Close()
			}
			b.policies.stop()
			entrances.Keep(nil)
			return b.fleet.close()
		},
	}
	if b.policies.feed != nil {
		p.loaded = b.awaitPolicies
	}
	return p, nil
}

// background is what runs as long as the process serves.
func (b *backend) background(secrets *secrets) []func(context.Context) error {
	all := []func(context.Context) error{func(ctx context.Context) error {
		b.store.Run(ctx, sweepInterval)
		return nil
	}, func(ctx context.Context) error {
		b.warmer.Run(ctx)
		return nil
	}}
	if b.fleet != nil {
		all = append(append(all, b.fleet.background()...), b.saveHot)
	}
	if b.policies.feed != nil {
		all = append(all, b.policies.feed.Run)
	}
	if secrets.file != "" {
		all = append(all, secrets.watch)
	}
	return all
}

// newFetcher makes what fetches through the address; nil without one.
func newFetcher(address string, tokens *refill.Tokens) (*refill.Fetcher, error) {
	if address == "" {
		return nil, nil
	}
	return refill.New(refill.Options{Addr: address, Tokens: tokens})
}

// policies are those in use, kept at what the directory or the controller says.
type policies struct {
	set     atomic.Pointer[cachepolicy.Set]
	watcher *policydir.Watcher // nil under a controller
	feed    *feedclient.Client // nil with a directory
	stop    func()
}

func (b *backend) newPolicies(entrances *refill.Entrances) (*policies, error) {
	if b.cfg.ControllerAddress != "" {
		return b.followController(entrances)
	}
	return watchPolicies(b.environment)
}

// watchPolicies loads the policies. To start with a directory that is not valid
// is an error: nobody would notice a cache that caches nothing. Later an error
// leaves what was in use.
func watchPolicies(env environment) (*policies, error) {
	p := &policies{}
	ctx, cancel := context.WithCancel(context.Background())
	p.watcher = policydir.Watch(ctx, env.cfg.PolicyDir, env.log, p.set.Store)
	p.stop = func() {
		cancel()
		<-p.watcher.Done()
	}
	if p.set.Load() != nil {
		return p, nil
	}
	p.stop()
	var faults []error
	for _, e := range p.watcher.Status().Errors {
		faults = append(faults, e)
	}
	return nil, errors.Join(faults...)
}

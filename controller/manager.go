package controller

import (
	"fmt"
	"log/slog"
	"net/http"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/weirproxy/weir/controller/attach/istio"
	"github.com/weirproxy/weir/controller/feed"
)

// leaseName is the name of the Lease that replicas are elected by.
const leaseName = "weir-controller"

// stopTimeout bounds how long parts may take to end.
const stopTimeout = 15 * time.Second

// newManager puts the parts together. Nothing runs yet.
func newManager(cfg *Config, api *rest.Config, log *slog.Logger) (manager.Manager, error) {
	mgr, err := bareManager(cfg, api)
	if err != nil {
		return nil, err
	}
	chosen := cfg.chosen()
	if err := discover(mgr.GetRESTMapper(), requirements(chosen)); err != nil {
		return nil, err
	}
	server := feed.New(feed.Options{Logger: log})
	serving, err := newFeedServer(cfg, server, log)
	if err != nil {
		return nil, err
	}
	m := newMetrics(ctrlmetrics.Registry, server)
	l := &loop{
		gatherer: &gatherer{cached: mgr.GetCache(), attachers: chosen}, cache: mgr.GetCache(), kinds: watched(),
		feed: server, metrics: m, log: log, poked: make(chan struct{}, 1), told: make(chan struct{}, 1),
	}
	if cfg.ListenerCertificates {
		l.gatherer.certificates = &certificates{api: mgr.GetAPIReader(), log: log}
	}
	for _, a := range chosen {
		for _, kind := range a.Kinds() {
			l.kinds = append(l.kinds, ofKind(kind))
		}
	}
	service, err := cfg.dataPlane()
	if err != nil {
		return nil, err
	}
	w := newWriter(mgr, l, writerOptions{
		attachers: chosen, service: service, port: cfg.DataPlanePort, ownerRole: cfg.OwnerClusterRole,
	})
	for _, part := range []manager.Runnable{serving, l, w} {
		if err := mgr.Add(part); err != nil {
			return nil, err
		}
	}
	if err := addInvalidations(mgr, server, m, log); err != nil {
		return nil, err
	}
	if err := mgr.AddReadyzCheck("translated", func(*http.Request) error { return l.ready() }); err != nil {
		return nil, err
	}
	return mgr, mgr.AddHealthzCheck("alive", healthz.Ping)
}

func bareManager(cfg *Config, api *rest.Config) (manager.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	service, err := cfg.dataPlane()
	if err != nil {
		return nil, err
	}
	mgr, err := manager.New(api, manager.Options{
		Scheme: scheme,
		Cache: cache.Options{
			DefaultTransform: cache.TransformStripManagedFields(),
			// Of EndpointSlices, which change with every pod, only the data plane's.
			ByObject: map[client.Object]cache.ByObject{
				&discoveryv1.EndpointSlice{}: {Namespaces: map[string]cache.Config{service.Namespace: {}}},
				// Of Deployments those of Istio's Gateways.
				ofKind(istio.KindDeployment): {Label: istio.Deployments()},
			},
		},
		Client:                        client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		LeaderElection:                cfg.LeaderElect,
		LeaderElectionID:              leaseName,
		LeaderElectionNamespace:       cfg.LeaderElectionNamespace,
		LeaderElectionReleaseOnCancel: true, // the process ends with its manager
		LeaseDuration:                 &cfg.LeaseDuration,
		RenewDeadline:                 &cfg.RenewDeadline,
		RetryPeriod:                   &cfg.RetryPeriod,
		Metrics:                       metricsserver.Options{BindAddress: addressOrNone(cfg.MetricsBindAddress)},
		HealthProbeBindAddress:        addressOrNone(cfg.HealthBindAddress),
		GracefulShutdownTimeout:       new(stopTimeout),
	})
	if err != nil {
		return nil, fmt.Errorf("make the manager: %w", err)
	}
	return mgr, nil
}

// addressOrNone turns an address left empty into the manager's word for none.
func addressOrNone(address string) string {
	if address == "" {
		return "0"
	}
	return address
}
